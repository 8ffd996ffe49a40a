"""A run's progress, read from what Snakemake prints."""

import subprocess
import sys
from pathlib import Path

import pytest

from tracecal.errors import InputError
from tracecal.stages import Stages, log_of

ROOT = Path(__file__).resolve().parents[1]
STATS = """Job stats:
job         count
--------  -------
generate        3
calibrate      12
all             1
total          16

""".splitlines()  # fmt: skip


def stages(*lines, start=100.0):
    """The state after STATS and `lines`, pairs of seconds since the start and text."""
    made = Stages()
    for line in STATS:
        made.read(line, start)
    for second, line in lines:
        made.read(line, start + second)
    return made


def test_jobs_are_counted_by_rule_once():
    made = stages()
    for line in STATS:  # as a second DAG would print them
        made.read(line, 200.0)
    assert made.jobs == {"generate": 3, "calibrate": 12, "all": 1}
    assert made.begun == 100.0


def test_the_time_left_is_the_mean_of_each_rule_and_of_all_where_a_rule_is_new():
    lines = [(0, "Job 7: Decoding a"), (20, "Finished jobid: 7 (Rule: generate)")]
    for number in range(9):
        lines += [
            (20, f"Job {number}: Calibrating"),
            (22, f"Finished jobid: {number} (Rule: calibrate)"),
        ]
    made = stages(*lines)
    # 2 x 20 s of generate, 3 x 2 s of calibrate, 1 of `all` with the mean (20 + 9 x 2) / 10
    assert made.left(1) == pytest.approx(2 * 20 + 3 * 2 + 3.8)
    assert made.left(2) == pytest.approx(made.left(1) / 2)
    assert "10 of 16 steps (62 %)  about 0:00:25 left" in made.line(122.0, 2)


def test_before_enough_has_finished_no_time_is_promised():
    made = stages((0, "Job 7: Decoding a"))
    assert made.left(1) is None
    assert (
        made.line(130.0, 1) == "0:00:30     0 of 16 steps (0 %)  estimating time left  Decoding a"
    )


def test_a_failed_job_no_longer_runs():
    made = stages((0, "Job 7: Decoding a"), (1, "Error in rule generate:"), (1, "    jobid: 7"))
    assert "Decoding" not in made.line(110.0, 1)


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("23:07:34 generate/a/b: error: the disk is full.", True),
        ("23:07:34 generate/a/b: unexpected error", True),
        ("WorkflowError:", True),
        ("TypeError: job() got an unexpected keyword argument", True),
        ("23:07:34 generate/a/b: decoding: 10%", False),
        ("Select jobs to execute...", False),
    ],
)
def test_errors_are_shown_at_once_and_nothing_else(line, seen):
    assert (stages().read(line + "\n", 101.0) == line) is seen


@pytest.mark.parametrize("status", [0, 1])
def test_the_file_holds_all_that_was_printed_and_the_status_is_snakemakes(tmp_path, status):
    (tmp_path / "Snakefile").write_text(
        "rule all:\n    input: 'a.txt'\nrule a:\n    output: 'a.txt'\n    message: 'Making a'\n"
        f"    shell: 'touch a.txt; echo printed by the job; exit {status}'\n"
    )
    (tmp_path / "mine.yaml").write_text("run: mine\n")
    start = [sys.executable, ROOT / "workflow_scripts/run.py", "--cores", "1"]
    process = subprocess.run(
        [*start, "--configfile", "mine.yaml"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
    )
    assert process.returncode == status
    assert "printed by the job" in (tmp_path / "results/mine/logs/run.log").read_text()
    assert "printed by the job" not in process.stdout
    assert ("results/mine/logs/run.log" in process.stdout) is bool(status)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "error: mine.yaml cannot be read in "),
        ("run: mine\nmodels: [\n", "error: mine.yaml, line 3, column 1: not YAML"),
        ("run: mine\nmodles: []\n", "mine.yaml: unknown key 'modles' (did you mean 'models'?)"),
    ],
)
def test_what_stops_a_run_before_it_begins_is_shown_whole(tmp_path, config, said):
    if config is not None:
        (tmp_path / "mine.yaml").write_text(config)
    start = [sys.executable, ROOT / "workflow_scripts/run.py", "--cores", "1", "--dry-run"]
    process = subprocess.run(
        [*start, "--snakefile", ROOT / "Snakefile", "--configfile", "mine.yaml"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
    )
    assert process.returncode == 1
    assert said in process.stdout + process.stderr
    assert "Traceback" not in process.stdout + process.stderr


def test_a_configuration_without_settings_is_named(tmp_path):
    (tmp_path / "mine.yaml").write_text("- run\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml holds no settings; write keys and values"):
        log_of(["--configfile", str(tmp_path / "mine.yaml")])
