"""A run can be watched from outside, and what it cost is one table."""

import csv
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.workflow


@pytest.fixture
def half(finished, tmp_path):
    """A run that lacks one (model, task), for which a job failed and another was interrupted."""
    shutil.copytree(finished.root, tmp_path / "copy", symlinks=True)
    results = tmp_path / "copy/results/smoke"
    for path in [*results.glob("**/demo-small/arithmetic.*"), results / "metrics.parquet"]:
        path.unlink()
    for folder in ("tables", "figures", "logs"):
        shutil.rmtree(results / folder)
    for step, said in (
        ("generate", "10:00:00 generate/demo-small/arithmetic: error: No space left (x)\n"),
        ("search_beams", "10:00:00 search_beams/demo-small/arithmetic: beams: 20%\n"),
    ):
        log = results / f"logs/{step}/demo-small/arithmetic.log"
        log.parent.mkdir(parents=True)
        log.write_text(said)
        os.utime(log, (time.time() - 60,) * 2)
    return type(finished)(tmp_path / "copy")


def status(checkout):
    return subprocess.run(
        [
            sys.executable,
            "workflow_scripts",
            "status",
            "--configfile",
            "config/smoke.yaml",
        ],
        cwd=checkout.root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_the_state_of_a_finished_run(finished):
    text = status(finished)
    done, in_all = re.match(
        r"(\d+) done, 0 running, 0 failed, 0 remaining; (\d+) jobs", text
    ).groups()
    assert done == in_all
    assert text.endswith("Finished.\n")


def test_the_state_of_a_half_finished_run(half):
    text = status(half)
    remaining = half.scheduled()
    states = {name: int(n) for n, name in re.findall(r"(\d+) (\w+)", text.split(";")[0])}
    assert states["failed"] + states["remaining"] == sum(remaining.values())
    assert "failed   generate demo-small/arithmetic" in text
    assert "error: No space left (x)" in text
    assert "failed   search_beams demo-small/arithmetic" in text
    assert "it was interrupted" in text
    assert re.search(r"Work ahead: about 0:\d\d:\d\d .* No run is active\.", text)


def test_the_state_can_be_asked_while_a_run_goes_on(half):
    # A run holds the lock, and its job has begun.
    locks = half.root / ".snakemake/locks"
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("results/smoke/traces/demo-small/arithmetic.arrow\n")
    log = half.root / "results/smoke/logs/generate/demo-small/arithmetic.log"
    log.write_text("10:00:00 generate/demo-small/arithmetic: decoding: 45%\n")
    text = status(half)
    assert "1 running, 0 failed" in text
    assert "decoding: 45%" in text
    assert "the end is expected at" in text


def test_costs_are_gathered_after_all_other_jobs(finished):
    jobs = {}
    for target in ("all", "costs"):
        output = finished.snakemake("--dry-run", "--forceall", target).stdout
        table = output.split("Job stats:")[1].split("\n\n")[0]
        jobs[target] = dict(re.findall(r"^(\w+) +(\d+)$", table, re.M))
    for own in ("all", "total"):
        del jobs["all"][own]
    assert jobs["costs"].items() >= jobs["all"].items()
    assert jobs["costs"]["tabulate_costs"] == "1"


def test_costs_are_gathered_from_every_job(finished):
    finished.snakemake("costs")
    path = finished.root / "results/smoke/tables/costs.csv"
    with path.open(encoding="utf-8") as file:
        rows = {(row["step"], row["model"]): row for row in csv.DictReader(file)}
    logs = set((finished.root / "results/smoke/logs").rglob("*.log"))
    measured = {log for log in logs if " took " in log.read_text().splitlines()[-1]}
    own = finished.root / "results/smoke/logs/tabulate_costs.log"
    assert sum(int(row["jobs"]) for row in rows.values()) == len(measured - {own})
    assert rows["generate", "demo-small"]["jobs"] == "2"
    assert float(rows["generate", "demo-small"]["tokens_per_second"]) > 0
    assert rows["audit_traces", "demo-small"]["tokens"] == ""
