"""What the embedded default must be worth, checked on its results where they are there."""

from pathlib import Path

import polars as pl
import pytest

import pictures
from tracecal.registry import ESTIMATORS, IDS

RUN = Path(__file__).resolve().parents[1] / "results" / "demo"
if not (RUN / "metrics.parquet").exists():
    pytest.skip("the demo has not been run here: make demo", allow_module_level=True)

PAIRS = sorted((path.parent.name, path.stem) for path in RUN.glob("labels/*/*.parquet"))
MAIN = "smollm2-135m-instruct"


def test_the_real_model_answers_four_tasks_of_60_questions_and_two_tiny_ones_two():
    assert len(PAIRS) == 4 + 2 * 2
    accuracy = pl.read_parquet(RUN / "analyses/accuracy.parquet")
    assert (accuracy["n"] == 60).all()


def test_the_real_model_half_knows_every_task():
    accuracy = pl.read_parquet(RUN / "analyses/accuracy.parquet").filter(model=MAIN)
    assert accuracy.height == 4
    assert accuracy.select((pl.col("correct") / pl.col("n")).is_between(0.15, 0.85).all()).item()


@pytest.mark.parametrize(("model", "task"), PAIRS)
def test_accuracy_is_moderate_and_every_calibration_part_has_both_classes(model, task):
    labels = pl.read_parquet(RUN / f"labels/{model}/{task}.parquet")
    splits = pl.read_parquet(RUN / f"splits/{task}.parquet")
    judged = splits.join(labels, on="example_id", validate="m:1")
    assert judged.height == splits.height
    assert 0.07 <= judged["correct"].mean() <= 0.9
    parts = judged.filter(part="calibration").group_by("split").agg(pl.col("correct").n_unique())
    assert parts.height == 20
    assert (parts["correct"] == 2).all()


def test_answers_are_short_enough_that_risk_can_be_local():
    lengths = pl.concat(
        pl.read_ipc(path).select(pl.col("token_ids").list.len().cast(pl.Float64))
        for path in RUN.glob("traces/*/*.arrow")
    )["token_ids"]
    assert lengths.min() >= 1
    assert lengths.quantile(0.98) <= 40  # what the tasks allow
    assert lengths.std() > 5


def test_nothing_is_undefined():
    metrics = pl.read_parquet(RUN / "metrics.parquet")
    assert metrics["value"].null_count() == 0
    main = metrics.filter(model=MAIN)
    assert set(main["estimator"]) == set(IDS)
    broader = {one.id for one in ESTIMATORS if one.role == "broader"}
    for _, others in metrics.filter(pl.col("model") != MAIN).group_by("model", "task"):
        assert set(others["estimator"]) == set(IDS) - broader
    assert metrics["split"].n_unique() == 20


def test_readme_tells_what_the_demo_found():
    readme = pictures.README.read_text(encoding="utf-8")
    findings = (RUN / "findings.txt").read_text(encoding="utf-8")
    assert pictures.with_findings(readme, findings) == readme, "make pictures"
