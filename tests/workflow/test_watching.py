"""What a run cost is one table."""

import csv
import re

import pytest

pytestmark = pytest.mark.runs


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
    benchmarks = [*(finished.root / "results/smoke/benchmarks").rglob("*.tsv")]
    assert sum(int(row["jobs"]) for row in rows.values()) == len(benchmarks)
    assert rows["generate", "demo-small"]["jobs"] == "2"
    assert float(rows["generate", "demo-small"]["tokens_per_second"]) > 0
    assert rows["audit_traces", "demo-small"]["tokens"] == ""
