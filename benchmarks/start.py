"""What starting the command costs: its help, that of `calibrate`, and a Tab behind it.

The plain recipe is a command of typer without any option.
"""

from collections.abc import Iterator

from benchmarks.before import compared
from benchmarks.timing import Row

STARTS = {
    "--help": (["--help"], {}),
    "calibrate --help": (["calibrate", "--help"], {}),
    "a Tab behind calibrate": (
        [],
        {
            "_TRACECAL_COMPLETE": "complete_bash",
            "COMP_WORDS": "tracecal calibrate --",
            "COMP_CWORD": "2",
        },
    ),
}
# A process of its own for each time, whose seconds are those of a child.
START = """
import os, subprocess
environment = os.environ | {environment}
def work():
    command = [sys.executable, "-c", {code!r}, *{arguments}]
    subprocess.run(command, env=environment, capture_output=True)
    return []
def process_time():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
time.process_time = process_time
"""
OURS = "from tracecal.cli.main import main; import sys; sys.argv[0] = 'tracecal'; sys.exit(main())"
PLAIN = "import typer; app = typer.Typer(); app.command()(lambda: None); app(['--help'])"


def rows() -> Iterator[Row]:
    for name, (arguments, environment) in STARTS.items():
        ours, plain = (
            START.format(environment=environment, code=code, arguments=arguments)
            for code in (OURS, PLAIN)
        )
        yield next(compared(name, ours, plain))
