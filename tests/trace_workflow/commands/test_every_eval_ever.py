"""Records of Every Eval Ever hold a run's numbers."""

import json
import uuid
from pathlib import Path

import polars as pl
import pytest

from trace_workflow.analyses.averages import AVERAGES
from trace_workflow.commands.every_eval_ever import METRICS, write_records
from tracecal.calibration.metrics import ACCURACY, NAMES
from tracecal.errors import InputError
from tracecal.io.files import write_parquet

SMOKE = str(Path(__file__).resolve().parents[3] / "config/smoke.yaml")


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
    folder = tmp_path / "results/smoke/analyses"
    folder.mkdir(parents=True)
    write_parquet(averages, folder / "averages.parquet")
    write_parquet(accuracy, folder / "accuracy.parquet")
    return tmp_path


def test_a_record_holds_the_means_that_are_defined(run):
    expected = "1 records in data; 1 undefined metrics are left out"
    for _ in range(2):  # a second call replaces the file
        assert write_records(SMOKE, "us", Path("data"), "them") == expected
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


def test_a_run_that_is_not_finished(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="accuracy.parquet is not there yet"):
        write_records(SMOKE, "us", tmp_path)
