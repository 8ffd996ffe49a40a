"""Transfer: fitted on the other tasks' calibration parts alone, measured on the target's own."""

import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.task_answers import ESTIMATORS, made_up, shuffled, value
from trace_workflow.analyses.cross_task_transfer import measure_on_targets

TASKS = {"a": 60, "b": 80, "c": 50}


def study(tasks=TASKS, count=3):
    """All tasks together; their example ids are the same."""
    made = {task: made_up(task, n, count) for task, n in tasks.items()}
    return [
        pl.concat(both[i].with_columns(pl.lit(task).alias("task")) for task, both in made.items())
        for i in (0, 1)
    ]


def measured(answers, splits):
    """Metrics, and resamples of them; two answers make a group."""
    number = pl.col("example_id").str.slice(1).cast(pl.Int64)
    return measure_on_targets(
        answers.with_columns(group_id=pl.format("{}-g{}", "task", number // 2)),
        splits,
        model="m",
        estimators=ESTIMATORS,
        baselines=["seq_logp"],
        method="platt",
        ece_bins=15,
        seed=7,
        resamples=20,
    )


def transferred(answers, splits):
    return measured(answers, splits)[0]


@pytest.mark.parametrize("target", TASKS)
def test_metrics_are_those_of_a_fit_on_the_other_tasks(target):
    answers, splits = study()
    metrics = transferred(answers, splits)
    rows = answers.join(splits.filter(split=2), on=["task", "example_id"])
    sources = rows.filter(pl.col("task") != target, part="calibration")
    evaluated = rows.filter(task=target, part="evaluation")
    for estimator, columns in ESTIMATORS.items():
        model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000))
        model.fit(sources.select(columns).to_numpy(), sources["correct"].to_numpy())
        probability = model.predict_proba(evaluated.select(columns).to_numpy())[:, 1]
        where = {"task": target, "split": 2, "estimator": estimator}
        brier = brier_score_loss(evaluated["correct"], probability)
        assert value(metrics, metric="brier", **where) == pytest.approx(brier, abs=1e-6)
        ranking = evaluated[columns[0]] if estimator == "seq_logp" else probability
        auroc = roc_auc_score(evaluated["correct"], ranking)
        assert value(metrics, metric="auroc", **where) == pytest.approx(auroc)
        assert set(metrics.filter(**where)["n"]) == {evaluated.height}


def test_a_score_ranks_by_itself_even_where_the_sources_reverse_it():
    answers, splits = study({"a": 60, "b": 80})
    reversed_ = answers.with_columns(
        pl.when(task="a").then(-pl.col("scores.seq_logp")).otherwise("scores.seq_logp")
    )
    ours, theirs = (
        transferred(frame, splits).filter(task="b", estimator="seq_logp")
        for frame in (answers, reversed_)
    )
    for metric, same in (("auroc", True), ("brier", False)):
        assert ours.filter(metric=metric).equals(theirs.filter(metric=metric)) is same


def test_no_label_but_the_sources_calibration_parts_is_fitted():
    answers, splits = study(count=1)
    calibrating = splits.filter(pl.col("task") != "b", part="calibration")
    others = answers.join(calibrating, on=["task", "example_id"], how="anti")
    # The target's own labels decide what is right, so they stay.
    hidden = others.filter(pl.col("task") != "b").with_columns(~pl.col("correct"))
    changed = answers.update(hidden, on=["task", "example_id"])
    assert changed["correct"].ne(answers["correct"]).sum() == hidden.height > 0
    before, after = (transferred(frame, splits).filter(task="b") for frame in (answers, changed))
    assert before.equals(after)
    moved = splits.with_columns(part=pl.when(task="a").then(pl.lit("evaluation")).otherwise("part"))
    assert not transferred(answers, moved).filter(task="b").equals(before)


def test_row_order_changes_nothing():
    answers, splits = study()
    assert transferred(shuffled(answers), shuffled(splits)).equals(transferred(answers, splits))


def test_resamples_are_of_the_target_under_the_fit_on_the_others():
    answers, splits = study(count=1)
    metrics, resampled = measured(answers, splits)
    evaluated = splits.filter(task="b", part="evaluation").height
    # One split: the mean probability of each answer is that of the fit which the metrics measure.
    assert set(metrics.filter(task="b")["n"]) == {evaluated}
    for estimator in ESTIMATORS:
        where = {"task": "b", "estimator": estimator, "metric": "brier"}
        one = resampled.filter(**where)
        assert one["observed"].item() == pytest.approx(value(metrics, **where), abs=1e-12)
        drawn = one["resampled"].item()
        assert len(drawn) == 20
        assert drawn.min() < one["observed"].item() < drawn.max()
    again = measured(shuffled(answers), shuffled(splits))[1]
    assert again.equals(resampled)


def test_one_task_has_nothing_to_transfer_from():
    for one, several in zip(measured(*study({"a": 60})), measured(*study()), strict=True):
        assert one.is_empty()
        assert one.schema == several.schema
