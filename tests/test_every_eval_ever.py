"""examples/every_eval_ever.py: records of Every Eval Ever hold a run's numbers."""

import json
import subprocess
import sys
import uuid
from pathlib import Path

import polars as pl
import pytest

from examples.every_eval_ever import METRICS, write_records
from trace_workflow.analyses.averages import AVERAGES
from trace_workflow.config.run import load_run
from tracecal.io.files import write_parquet
from tracecal.io.input_files import read_yaml
from tracecal.io.regular_files import write_text
from tracecal.statistics.metrics import ACCURACY, NAMES

ROOT = Path(__file__).resolve().parents[1]
RUN = Path("results/smoke")
MODEL, TASK = "demo-small", "arithmetic"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A folder with the analyses of a finished run."""
    monkeypatch.chdir(tmp_path)
    pair = (None, MODEL, TASK, "trace_plus")
    rows = [
        (*pair, "brier", 0.125, 0.5, 2, 0, 4.0, [0.0, 0.25]),
        (*pair, "auroc", None, None, 2, 2, 4.0, [None, None]),
        ("main", MODEL, None, "trace_plus", "brier", 0.5, 0.0, 2, 0, 4.0, [0.5, 0.5]),
    ]
    averages = pl.DataFrame(rows, schema=AVERAGES, orient="row")
    accuracy = pl.DataFrame([(MODEL, TASK, 8, 6, 0.75, 1, 0, 0)], schema=ACCURACY, orient="row")
    write_parquet(averages, RUN / "analyses/averages.parquet")
    write_parquet(accuracy, RUN / "analyses/accuracy.parquet")
    resolved = load_run(read_yaml(ROOT / "config/smoke.yaml"), "config", ROOT).resolved
    write_text(resolved, RUN / "config.yaml")
    return tmp_path


def test_a_record_holds_the_means_that_are_defined(run):
    expected = "1 records in data; 1 undefined metrics are left out"
    for _ in range(2):  # a second call replaces the file
        assert write_records(RUN, "us", Path("data"), "them") == expected
    (path,) = run.glob("data/**/*.json")
    assert path.parent == run / "data" / TASK / "them" / MODEL
    assert uuid.UUID(path.stem).version == 4
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["evaluation_id"] == f"{TASK}/{MODEL}/{record['retrieved_timestamp']}"
    assert record["source_metadata"]["source_organization_name"] == "us"
    scores = {
        result["evaluation_result_id"]: result["score_details"]["score"]
        for result in record["evaluation_results"]
    }
    assert scores == {f"{TASK}/accuracy": 0.75, f"{TASK}/brier/trace_plus": 0.125}
    brier = record["evaluation_results"][1]
    assert brier["metric_config"]["lower_is_better"] is True
    assert brier["metric_config"]["metric_parameters"] == {"estimator": "trace_plus"}
    assert brier["score_details"]["details"]["sd_over_splits"] == "0.5"


def test_every_metric_has_a_direction():
    assert METRICS.keys() == {"accuracy", *NAMES}


def test_a_run_that_is_not_finished(tmp_path):
    script = [sys.executable, ROOT / "examples/every_eval_ever.py", "--organization", "us"]
    process = subprocess.run(
        [*script, "results/smoke"], cwd=tmp_path, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert "accuracy.parquet" in process.stderr and "is the run finished?" in process.stderr
