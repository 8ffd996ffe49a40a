"""A run's progress, from the events that Snakemake logs."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trace_workflow.jobs.run_progress import RunProgress

ROOT = Path(__file__).resolve().parents[3]
STATS = {"generate": 3, "calibrate": 12, "all": 1, "costs": 1, "total": 17}


def record(event=None, text="", level=logging.INFO, **fields):
    """An event as Snakemake logs it."""
    made = logging.LogRecord("snakemake", level, "", 0, text, (), None)
    vars(made).update(fields | ({"event": event} if event else {}))
    return made


def started(number, rule, message=None):
    return record("job_info", jobid=number, rule_name=rule, rule_msg=message)


def finished(number):
    return record("job_finished", job_id=number)


def progress(*events, start=100.0, cores=1):
    """The state after a start and `events`, pairs of seconds since the start and records."""
    made = RunProgress(["costs", "--cores", "all"])
    made.read(record("resources_info", cores=cores), start)
    made.read(record("run_info", stats=STATS), start)
    for second, event in events:
        made.read(event, start + second)
    return made


def test_jobs_are_counted_by_rule_once_and_targets_are_no_steps():
    made = progress((50, record("run_info", stats=STATS)))  # as a second DAG would tell it
    assert made.jobs == {"generate": 3, "calibrate": 12}
    assert made.begun == 100.0
    for event in (started(1, "all"), finished(1)):
        made.read(event, 110.0)
    assert "   0 of 15 steps" in made.line(111.0)


def test_the_time_left_is_the_mean_of_each_rule_on_the_cores_of_this_run():
    events = [(0, started(7, "generate", "Decoding a")), (20, finished(7))]
    for number in range(9):
        events += [(20, started(number, "calibrate")), (22, finished(number))]
    assert progress(*events).left() == pytest.approx(2 * 20 + 3 * 2)
    halved = progress(*events, cores=2)
    assert halved.left() == pytest.approx(23)
    assert "10 of 15 steps (67 %)  about 0:00:23 left" in halved.line(122.0)


def test_before_enough_has_finished_no_time_is_promised():
    made = progress((0, started(7, "generate", "Decoding a")))
    assert made.left() is None
    assert made.line(130.0) == "0:00:30     0 of 15 steps (0 %)  estimating time left  Decoding a"


def test_a_failed_job_no_longer_runs_and_its_own_log_says_why(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("23:07:34 generate/a/b: 10%\n23:07:35 generate/a/b: error: the disk is full.\n")
    made = progress((0, started(7, "generate", "Decoding a")))
    failed = record("job_error", "Error in rule", logging.ERROR, jobid=7, rule_name="generate")
    failed.log = [str(log)]
    assert made.read(failed, 101.0) == "generate failed: error: the disk is full."
    assert "Decoding" not in made.line(110.0)
    failed.log = [str(tmp_path / "none.log")]
    assert made.read(failed, 101.0) == "generate failed: it logged no error"


def test_errors_are_shown_at_once_and_nothing_else():
    made = progress()
    assert made.read(record(None, "WorkflowError: no such file", logging.ERROR), 101.0) == (
        "WorkflowError: no such file"
    )
    assert made.read(record(None, "Select jobs to execute..."), 101.0) is None
    assert made.read(record("shellcmd", "", shellcmd="x"), 101.0) is None


SNAKEFILE = """
rule all:
    input: 'a.txt'
rule a:
    output: 'a.txt'
    log: 'a.log'
    message: 'Making a'
    shell: 'echo printed by the job; echo "a: error: no disk" > {log}; touch a.txt; exit STATUS'
"""


@pytest.mark.parametrize("status", [0, 1])
def test_snakemake_finds_the_plugin_and_its_lines_are_of_the_run(tmp_path, status):
    """In a file as in a terminal; what Snakemake shows is the same as without it."""
    (tmp_path / "Snakefile").write_text(
        SNAKEFILE.replace("touch", "sleep 2; touch").replace("STATUS", str(status))
    )
    plugin = "import snakemake_logger_plugin_trace as plugin; plugin.EVERY = 0.5"
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
    assert "Making a" in process.stderr
    said = (tmp_path / "progress").read_text()
    assert re.search(
        r"^0:00:0\d +0 of 1 steps \(0 %\)  estimating time left  Making a$", said, re.M
    )
    assert ("a failed: error: no disk\n" in said) is bool(status)


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
    ("config", "said"),
    [
        (None, "error: mine.yaml cannot be read in "),
        ("run: mine\nmodels: [\n", "error: mine.yaml, line 3, column 1: not YAML"),
        ("run: mine\nmodles: []\n", "error: mine.yaml: unknown key 'modles' (did you mean 'mod"),
        ("run: mine\nrun: x\n", "error: mine.yaml, line 2, column 1: not YAML (the key 'run' is"),
    ],
)
def test_what_stops_a_run_before_it_begins_names_the_users_file(tmp_path, config, said):
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
    assert said in process.stdout + process.stderr
    assert "Traceback" not in process.stdout + process.stderr


def test_the_labels_that_are_made_first_are_named():
    made = RunProgress()
    made.read(record("run_info", stats={"label_answers": 2, "total": 2}), 0.0)
    for number in (1, 2):
        begun = record("job_info", jobid=number, rule_name="label_answers", rule_msg=None)
        begun.output = [f"labels/m/t{number}.parquet"]
        made.read(begun, 1.0)
    assert made.labelled == []
    for number in (2, 1):
        made.read(finished(number), 2.0)
    assert made.labelled == [Path("labels/m/t2.parquet")]
