"""What the embedded default must be worth, checked on its results where they are there."""

from pathlib import Path

import polars as pl
import pytest

from maintenance import pictures
from trace_workflow.config.estimator_list import costly
from tracecal.estimators.registry import ESTIMATORS, IDS

RUN = Path(__file__).resolve().parents[1] / "results" / "demo"
if not (RUN / "metrics.parquet").exists():
    pytest.skip("the demo has not been run here: make demo", allow_module_level=True)

PAIRS = sorted((path.parent.name, path.stem) for path in RUN.glob("labels/*/*.parquet"))
MAIN, PARTS = "smollm2-135m-instruct", "record_facts"


def test_the_real_model_answers_four_tasks_three_of_them_of_300_questions_in_150_groups():
    assert len(PAIRS) == 4 + 2 + 1  # a second model's, and the parts of one more
    accuracy = pl.read_parquet(RUN / "analyses/accuracy.parquet").filter(model=MAIN)
    accuracy = accuracy.filter(pl.col("task") != PARTS)
    answered = dict(accuracy.select("task", "n").iter_rows())
    assert answered.pop("misconceptions") > 200  # all that there are
    assert set(answered.values()) == {300}
    for task in answered:
        rows = pl.read_parquet(RUN / f"tasks/{task}.parquet").filter(role="evaluation")
        assert rows["group_id"].n_unique() >= 150


def test_what_costs_most_is_compared_with_everything_else_on_the_same_40_answers():
    accuracy = pl.read_parquet(RUN / "analyses/subset_accuracy.parquet")
    assert accuracy.select("model", "n").unique().rows() == [(MAIN, 40)]
    metrics = pl.read_parquet(RUN / "subset/metrics.parquet").filter(model=MAIN)
    assert set(IDS) <= set(metrics["estimator"])
    # A small model does not state its confidence in every answer.
    stated = pl.col("estimator") == "verbalized"
    sizes = metrics.filter(~stated).group_by("task", "split").agg(pl.col("n").n_unique())
    assert (sizes["n"] == 1).all()
    assert metrics.filter(stated)["n"].min() > 5


def test_the_real_model_half_knows_every_task():
    accuracy = pl.read_parquet(RUN / "analyses/accuracy.parquet").filter(model=MAIN)
    assert accuracy.height == 4 + 1
    assert accuracy.select((pl.col("correct") / pl.col("n")).is_between(0.15, 0.85).all()).item()


@pytest.mark.parametrize(("model", "task"), PAIRS)
def test_accuracy_is_moderate_and_every_calibration_part_has_both_classes(model, task):
    labels = pl.read_parquet(RUN / f"labels/{model}/{task}.parquet")
    splits = pl.read_parquet(RUN / f"splits/{task}.parquet")
    judged = splits.join(labels, on="example_id", validate="m:1")
    accuracy = pl.read_parquet(RUN / "analyses/accuracy.parquet").filter(model=model, task=task)
    # Parts that an answer lacks have no label.
    unanswered = accuracy["unanswered"].item() if task == PARTS else 0
    assert judged.height == splits.height - 20 * unanswered
    assert 0.07 <= judged["correct"].mean() <= 0.9
    parts = judged.filter(part="calibration").group_by("split").agg(pl.col("correct").n_unique())
    assert parts.height == 20
    assert (parts["correct"] == 2).all()


def test_answers_are_short_enough_that_risk_can_be_local():
    lengths = pl.concat(
        pl.read_ipc(path).select(pl.col("token_ids").list.len().cast(pl.Float64))
        for path in RUN.glob("traces/*/*.arrow")
        if "record" not in path.stem
    )["token_ids"]
    assert lengths.min() >= 1
    assert lengths.quantile(0.98) <= 40  # what the tasks allow
    assert lengths.std() > 5


def test_nothing_is_undefined():
    metrics = pl.read_parquet(RUN / "metrics.parquet")
    assert metrics["value"].null_count() == 0
    of_traces = {one.id for one in ESTIMATORS if not costly(one)}
    main = metrics.filter(model=MAIN)
    assert of_traces <= set(main["estimator"])
    broader = {one.id for one in ESTIMATORS if one.role == "broader"}
    metrics = metrics.filter(pl.col("task") != PARTS)
    for _, others in metrics.filter(pl.col("model") != MAIN).group_by("model", "task"):
        assert of_traces - broader <= set(others["estimator"])
        assert not broader & set(others["estimator"])
    assert metrics["split"].n_unique() == 20


@pytest.mark.parametrize("page", pictures.RUNS["demo"].pages)
def test_pages_tell_what_the_demo_found(page):
    text = (pictures.ROOT / page).read_text(encoding="utf-8")
    assert pictures.described(text, RUN) == text, "make pictures"
