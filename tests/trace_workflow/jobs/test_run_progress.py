"""A run's progress, from the events that Snakemake logs."""

import csv
import fcntl
import heapq
import logging
import os
import re
import struct
import subprocess
import sys
import termios
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from trace_workflow.jobs.run_progress import RunProgress

ROOT = Path(__file__).resolve().parents[3]
STATS = {"generate": 3, "calibrate": 12, "all": 1, "costs": 1, "total": 17}


def record(event=None, text="", level=logging.INFO, **fields):
    """An event as Snakemake logs it."""
    state = logging.LogRecord("snakemake", level, "", 0, text, (), None)
    vars(state).update(fields | ({"event": event} if event else {}))
    return state


def started(number, rule, **wildcards):
    return record("job_info", jobid=number, rule_name=rule, wildcards=wildcards)


def finished(number):
    return record("job_finished", job_id=number)


def progress(*events, start=100.0, cores=1):
    """The state after a start and `events`, pairs of seconds since the start and records."""
    state = RunProgress(["costs", "--cores", "all"])
    state.read(record("resources_info", cores=cores), start)
    state.read(record("run_info", stats=STATS), start)
    for second, event in events:
        state.read(event, start + second)
    return state


def test_jobs_are_counted_by_rule_once_and_targets_are_no_steps():
    state = progress((50, record("run_info", stats=STATS)))  # as a second DAG would tell it
    assert state.jobs == {"generate": 3, "calibrate": 12}
    assert state.start == 100.0
    for event in (started(1, "all"), finished(1)):
        state.read(event, 110.0)
    assert "   0 of 15 steps" in state.line(111.0)


def test_steps_of_a_later_plan_are_added_and_nothing_is_complete_before_it():
    state = progress()
    for number in range(15):
        state.read(started(number, "calibrate" if number < 12 else "generate"), 101.0)
        state.read(finished(number), 102.0)
    assert state.line(110.0) == "0:00:10    15 steps done, looking for what follows"
    state.read(record("run_info", stats=STATS), 111.0)
    assert "  15 of 30 steps (50 %)" in state.line(112.0)


def test_a_job_that_no_plan_announced_is_a_step():
    state = progress((1, started(1, "gather_shards")))
    assert "   0 of 16 steps (0 %)" in state.line(102.0)


def test_a_run_that_goes_on_is_never_complete():
    state = RunProgress()
    state.read(record("run_info", stats={"calibrate": 400}), 0.0)
    for number in range(399):
        state.read(started(number, "calibrate"), 1.0)
        state.read(finished(number), 2.0)
    assert " 399 of 400 steps (99 %)" in state.line(3.0)


def recorded(slower, cores):
    """The jobs of a recorded demo, by their processor times, one after the other on each core: their
    rule, start and end. Starting a job takes about half a second besides.
    """
    free = [0.0] * cores
    with (Path(__file__).parent / "demo_jobs.csv").open() as file:
        for row in csv.DictReader(file):
            start = heapq.heappop(free)
            end = start + slower * (float(row["cpu"]) + 0.6)
            heapq.heappush(free, end)
            yield row["rule"], start, end


@pytest.mark.parametrize(("slower", "cores"), [(1, 2), (3, 2), (0.5, 2), (1, 4)])
def test_the_time_left_is_about_right_from_a_fifth_of_the_demo_on(slower, cores):
    """On a machine that is slower or faster than the one that was measured, too."""
    jobs = list(recorded(slower, cores))
    events = [
        event
        for number, (rule, start, end) in enumerate(jobs)
        for event in ((start, 1, started(number, rule)), (end, 0, finished(number)))
    ]
    events.sort(key=lambda event: event[:2])
    ended = events[-1][0]
    state = RunProgress()
    state.read(record("resources_info", cores=cores), 0)
    state.read(record("run_info", stats=Counter(rule for rule, *_ in jobs)), 0)
    for step in range(4, 19):
        now = ended * step / 20
        while events[0][0] <= now:
            second, _, event = events.pop(0)
            state.read(event, second)
        assert 1 / 1.5 < state.time_left(now) / (ended - now) < 1.5, step


def test_the_time_left_falls_with_the_cores_but_not_below_a_running_job():
    events = [(0, started(7, "generate", shard="", model="m", task="a")), (20, finished(7))]
    for number in range(9):
        events += [(20, started(number, "calibrate")), (22, finished(number))]
    alone, halved = progress(*events), progress(*events, cores=2)
    assert halved.time_left(122.0) == pytest.approx(alone.time_left(122.0) / 2)
    assert "10 of 15 steps (67 %)  about 0:00:" in halved.line(122.0)
    many = progress(*events, (22, started(8, "generate")), cores=100)
    assert many.time_left(122.0) > 10, "the decoding that has just begun"


def test_before_enough_has_finished_no_time_is_promised():
    state = progress((0, started(7, "generate", shard="", model="m", task="a")))
    assert state.time_left(130.0) is None
    assert (
        state.line(130.0) == "0:00:30     0 of 15 steps (0 %)  estimating time left  generate m a"
    )


def test_a_failed_job_no_longer_runs_and_its_own_log_says_why(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("23:07:34 generate/a/b: 10%\n23:07:35 generate/a/b: error: the disk is full.\n")
    state = progress((0, started(7, "generate", shard="", model="m", task="a")))
    failed = record("job_error", "Error in rule", logging.ERROR, jobid=7, rule_name="generate")
    failed.log = [str(log)]
    assert state.read(failed, 101.0) == "generate failed: error: the disk is full."
    assert "generate" not in state.line(110.0)
    failed.log = [str(tmp_path / "none.log")]
    assert state.read(failed, 101.0) == (
        "generate failed: it ended without an error in its log; the run's log has what it printed"
    )


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (None, "; the run's log has what it printed"),
        ("Fetching\ncurl: (6) Could not resolve host\n\n", "; its log ends with: curl: (6) Could"),
    ],
)
def test_a_failed_command_says_what_is_known_of_it(tmp_path, log, reason):
    path = tmp_path / "a.log"
    if log is not None:
        path.write_text(log)
    failed = record("job_error", "Error in rule", logging.ERROR, jobid=7, rule_name="generate")
    failed.log, failed.shellcmd = [str(path)], "curl --fail https://host/rows"
    output = progress((0, started(7, "generate"))).read(failed, 101.0)
    assert output.startswith(f"generate failed: its command ended with an error{reason}")


def test_errors_are_shown_at_once_and_nothing_else():
    state = progress()
    assert state.read(record(None, "WorkflowError: no such file", logging.ERROR), 101.0) == (
        "WorkflowError: no such file"
    )
    assert state.read(record(None, "Select jobs to execute..."), 101.0) is None
    assert state.read(record("shellcmd", "", shellcmd="x"), 101.0) is None


SNAKEFILE = """
rule all:
    input: 'a.txt'
rule a:
    output: 'a.txt'
    log: 'a.log'
    shell: 'echo printed by the job; echo "a: error: no disk" > {log}; touch a.txt; exit STATUS'
"""


@pytest.mark.parametrize("status", [0, 1])
def test_snakemake_finds_the_plugin_and_its_lines_are_of_the_run(tmp_path, status):
    """In a file as in a terminal; what Snakemake shows is the same as without it."""
    (tmp_path / "Snakefile").write_text(
        SNAKEFILE.replace("touch", "sleep 2; touch").replace("STATUS", str(status))
    )
    plugin = "import snakemake_logger_plugin_trace as plugin; plugin.SECONDS_BETWEEN_LINES = 0.5"
    start = f"import sys; from snakemake.cli import main; {plugin}; main(sys.argv[1:])"
    with (tmp_path / "progress").open("w") as lines:
        command = ["--logger", "trace", "--logger-trace-descriptor", str(lines.fileno())]
        process = subprocess.run(
            [sys.executable, "-c", start, "--cores", "1", *command],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            pass_fds=[lines.fileno()],
            env=os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts")},
        )
    assert process.returncode == status, process.stderr
    assert "rule a:" in process.stderr
    output = (tmp_path / "progress").read_text()
    assert re.search(r"^0:00:0\d +0 of 1 steps \(0 %\)  estimating time left  a$", output, re.M)
    assert ("a failed: error: no disk\n" in output) is bool(status)


def test_a_terminal_has_one_line_that_renews_itself(tmp_path):
    (tmp_path / "Snakefile").write_text(
        SNAKEFILE.replace("touch", "sleep 4; touch").replace("STATUS", "1")
    )
    (tmp_path / "mine.yaml").write_bytes((ROOT / "config/smoke.yaml").read_bytes())
    controlling, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    start = [sys.executable, ROOT / "workflow_scripts", "run", "--cores", "1"]
    command = [*start, "--configfile", "mine.yaml"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=terminal, env=environment) as process:
        os.close(terminal)
        output = b""
        with suppress(OSError):  # the end of a terminal
            while piece := os.read(controlling, 1024):
                output += piece
    assert process.returncode == 1
    renewed, *later = output.decode().split("\r\n")
    lines = renewed.split("\r\x1b[K")
    assert len(lines) > 3 and all(len(line) < 30 for line in lines[:-1])
    assert lines[-1] == "a failed: error: no disk"
    assert "The run did not finish" in later[0]


@pytest.mark.parametrize("status", [0, 1])
def test_the_file_holds_all_that_was_printed_and_the_status_is_snakemakes(tmp_path, status):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("STATUS", str(status)))
    (tmp_path / "mine.yaml").write_bytes((ROOT / "config/smoke.yaml").read_bytes())
    start = [sys.executable, ROOT / "workflow_scripts", "run", "--cores", "1"]
    process = subprocess.run(
        [*start, "--configfile", "mine.yaml"], cwd=tmp_path, text=True, capture_output=True
    )
    assert process.returncode == status
    log = tmp_path / "results/smoke/logs/run.log"
    assert "printed by the job" in log.read_text()
    assert "printed by the job" not in process.stdout
    assert ("a failed: error: no disk" in process.stdout) is bool(status)
    assert ("results/smoke/logs/run.log" in process.stdout) is bool(status)
    assert "results/smoke/work/configs/" in log.read_text(), "the copy is what is read"


@pytest.mark.parametrize(
    ("config", "output"),
    [
        (None, "error: mine.yaml cannot be read in "),
        ("run: mine\nmodels: [\n", "error: mine.yaml, line 3, column 1: not YAML"),
        ("run: mine\nmodles: []\n", "error: mine.yaml: unknown key 'modles' (did you mean 'mod"),
        ("run: mine\nrun: x\n", "error: mine.yaml, line 2, column 1: not YAML (the key 'run' is"),
    ],
)
def test_what_stops_a_run_before_it_begins_names_the_users_file(tmp_path, config, output):
    if config is not None:
        (tmp_path / "mine.yaml").write_text(config)
    start = [sys.executable, ROOT / "workflow_scripts", "run", "--cores", "1", "--dry-run"]
    process = subprocess.run(
        [*start, "--snakefile", ROOT / "Snakefile", "--configfile", "mine.yaml"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
    )
    assert process.returncode == 1
    assert output in process.stdout + process.stderr
    assert "Traceback" not in process.stdout + process.stderr


def test_the_first_labels_are_named_once():
    state = RunProgress()
    state.read(record("run_info", stats={"label_answers": 3, "total": 3}), 0.0)
    for number, pair in enumerate(("m/t1", "n/t2", "m/t3")):
        begun = record("job_info", jobid=number, rule_name="label_answers", rule_msg=None)
        begun.output = [f"labels/{pair}.parquet"]
        state.read(begun, 1.0)
    assert state.first_labels == []
    for number in (1, 0, 2):
        state.read(finished(number), 2.0)
    assert state.first_labels == [Path("labels/n/t2.parquet")]
