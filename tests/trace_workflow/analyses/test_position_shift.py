"""AUROC of permuted draws, and its two spreads, against a restatement in NumPy."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from support.traced_answers import SPLITS, study
from trace_workflow.analyses.position_shift import position_shift
from tracecal.statistics.metrics import all_metrics

DRAWS = 3
STUDY = {name: rows for name, rows in study(draws=DRAWS).items() if name != "features"}
ANALYSIS = position_shift(**STUDY)


def aurocs(task):
    """AUROC of the original [splits] and of the draws [splits, draws]."""
    operators = STUDY["operators"].filter(task=task)
    answers = STUDY["answers"].filter(task=task)
    original, drawn = np.empty(SPLITS), np.empty((SPLITS, DRAWS))
    for split in range(SPLITS):
        ids = STUDY["splits"].filter(task=task, split=split, part="evaluation")["example_id"]
        part = operators.filter(pl.col("example_id").is_in(ids.implode())).join(
            answers.select("example_id", "correct"), on="example_id"
        )
        default = part.filter(setting="default")
        original[split] = roc_auc_score(default["correct"], default["score"])
        for draw in range(DRAWS):
            permuted = part.filter(setting="permuted", draw=draw)
            drawn[split, draw] = roc_auc_score(permuted["correct"], permuted["score"])
    return original, drawn


def found(task, quantity, over):
    rows = ANALYSIS.filter(pl.col("task").eq_missing(task), quantity=quantity, over=over)
    return rows.row(0, named=True)


def check(task, original, drawn):
    sides = {"original": original, "shifted": drawn.mean(axis=1)}
    sides["difference"] = sides["shifted"] - sides["original"]
    for quantity, by_split in sides.items():
        row = found(task, quantity, "split")
        assert row["mean"] == pytest.approx(by_split.mean())
        assert row["sd"] == pytest.approx(by_split.std(ddof=1))
        assert (row["repetitions"], row["undefined"]) == (SPLITS, 0)
    for quantity in ("shifted", "difference"):
        row = found(task, quantity, "draw")
        assert row["mean"] == pytest.approx(sides[quantity].mean())
        assert row["sd"] == pytest.approx(drawn.mean(axis=0).std(ddof=1))
        assert row["repetitions"] == DRAWS


def test_both_spreads_of_each_task():
    for task in ("t", "u"):
        check(task, *aurocs(task))


def test_both_spreads_of_the_average():
    (original, drawn), (other, others) = aurocs("t"), aurocs("u")
    check(None, (original + other) / 2, (drawn + others) / 2)


def test_the_original_is_what_the_metrics_measure():
    scores = STUDY["operators"].filter(task="t", setting="default")
    evaluated = STUDY["splits"].filter(task="t", part="evaluation")
    predictions = evaluated.select(
        pl.lit("trace").alias("estimator"), "split", "example_id", probability=0.5
    )
    metrics = all_metrics(
        predictions,
        STUDY["answers"].filter(task="t").select("example_id", "correct"),
        scores.select("example_id", trace="score"),
        model="m",
        task="t",
        estimators=["trace"],
        splits=range(SPLITS),
        ece_bins=15,
    ).filter(metric="auroc")
    assert found("t", "original", "split")["mean"] == pytest.approx(metrics["value"].mean())


def test_an_original_has_no_draws():
    assert ANALYSIS.filter(quantity="original", over="draw").is_empty()


def test_order_free_traces_shift_nothing():
    permuted = STUDY["operators"].filter(setting="permuted").drop("score")
    original = STUDY["operators"].filter(setting="default").select("task", "example_id", "score")
    same = permuted.join(original, on=["task", "example_id"])
    default = STUDY["operators"].filter(setting="default")
    analysis = position_shift(
        **STUDY | {"operators": pl.concat([default, same.select(default.columns)])}
    )
    difference = analysis.filter(quantity="difference")
    assert set(difference["mean"]) == set(difference["sd"]) == {0.0}


def test_the_order_of_rows_changes_nothing():
    shuffled = {name: rows.sample(fraction=1, shuffle=True, seed=5) for name, rows in STUDY.items()}
    assert position_shift(**shuffled).equals(ANALYSIS)


def test_answers_of_one_class_are_undefined_and_left_out_of_the_average():
    right = STUDY["answers"].with_columns(correct=pl.col("correct") | (pl.col("task") == "u"))
    analysis = position_shift(**STUDY | {"answers": right})
    split = analysis.filter(over="split", quantity="shifted")
    assert split.filter(task="u").select("mean", "undefined").row(0) == (None, SPLITS)
    alone = split.filter(task="t")["mean"].item()
    assert split.filter(pl.col("task").is_null())["mean"].item() == pytest.approx(alone)


def test_without_scores_every_task_has_null_rows():
    unknown = STUDY["operators"].with_columns(score=pl.lit(None, pl.Float64))
    found = position_shift(**STUDY | {"operators": unknown})
    assert found.select("task", "quantity", "over").equals(
        ANALYSIS.select("task", "quantity", "over")
    )
    assert found["mean"].null_count() == found.height
