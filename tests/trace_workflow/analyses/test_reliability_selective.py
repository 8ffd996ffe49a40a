"""Pooled predictions against scikit-learn, hand-made cases and every order of tied answers."""

from itertools import pairwise, permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from support.task_answers import shuffled, value
from trace_workflow.analyses.reliability_selective import (
    N_BINS,
    pooled_metrics,
    reliability_bins,
    risk_curve,
    selective_risk,
)

ROUNDED = st.sampled_from([0.1, 0.25, 0.5, 0.9])
ESTIMATORS = ["mars", "trace_plus"]
ANSWERS = st.lists(st.tuples(ROUNDED, st.booleans()), min_size=1, max_size=6)


def labelled(n=200, seed=0):
    draw = np.random.default_rng(seed)
    frames = [
        pl.DataFrame(
            {
                "model": "m",
                "task": np.where(np.arange(n) % 2, "b", "a"),
                "estimator": name,
                "split": split,
                "probability": (probability := draw.random(n).round(2)),
                "correct": draw.random(n) < probability,
            }
        )
        for name in ("mars", "trace_plus")
        for split in (0, 1)
    ]
    return pl.concat(frames)


def parts(frame, estimators=ESTIMATORS):
    """Metrics, bins and curve."""
    return (
        pooled_metrics(frame, estimators, 15),
        reliability_bins(frame, estimators),
        risk_curve(frame, estimators),
    )


def test_risk_by_hand():
    probability = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    correct = np.array([True, False, True, True, False])
    risks = selective_risk(probability, correct)
    assert [risks[percent - 1] for percent in (20, 40, 60, 80, 100)] == pytest.approx(
        [0, 1 / 2, 1 / 3, 1 / 4, 2 / 5]
    )
    # 50 % of five answers: two and a half of them, the third in part.
    assert risks[49] == pytest.approx(1 / 2.5)
    assert risks[29] == pytest.approx(0.5 / 1.5)


def test_answers_that_tie_are_kept_in_expectation():
    risks = selective_risk(np.full(4, 0.5), np.array([True, False, False, False]))
    assert risks == pytest.approx(np.full(100, 0.75))


@given(answers=ANSWERS)
def test_risk_is_the_mean_over_the_orders_of_tied_answers(answers):
    """Every order that confidence allows, the last answer counted in part."""
    kept = np.arange(1, 101) * len(answers) / 100
    risks = []
    for order in permutations(answers):
        if all(a >= b for (a, _), (b, _) in pairwise(order)):
            share = np.clip(kept[:, None] - np.arange(len(order)), 0, 1)
            wrong = np.array([not correct for _, correct in order])
            risks.append((share * wrong).sum(axis=1) / kept)
    probability, correct = map(np.array, zip(*answers, strict=True))
    assert selective_risk(probability, correct) == pytest.approx(np.mean(risks, axis=0))


def test_metrics_are_scikit_learns_on_the_pooled_answers():
    answers = labelled()
    metrics = pooled_metrics(answers, ESTIMATORS, 15)
    one = answers.filter(estimator="mars", split=1)
    where = {"estimator": "mars", "split": 1}
    correct, probability = one["correct"].to_numpy(), one["probability"].to_numpy()
    auroc = roc_auc_score(correct, probability)
    brier = brier_score_loss(correct, probability)
    assert value(metrics, metric="auroc", **where) == pytest.approx(auroc)
    assert value(metrics, metric="brier", **where) == pytest.approx(brier)
    assert set(metrics["n"]) == {200}
    assert set(metrics.select("model", "tasks").rows()) == {("m", "a b")}
    assert metrics.height == 2 * 2 * 6


def test_bins_hold_equally_many_answers_and_all_of_them():
    answers = labelled()
    _, binned, _ = parts(answers)
    assert set(binned["bin"]) == set(range(N_BINS))
    for (name, split), part in binned.group_by("estimator", "split"):
        own = answers.filter(estimator=name, split=split)
        assert part["n"].sum() == own.height
        assert part["n"].max() - part["n"].min() <= 4  # but for ties
        for column, means in (("probability", "probability"), ("correct", "accuracy")):
            assert (part[means] * part["n"]).sum() == pytest.approx(own[column].sum())
        assert part.sort("bin")["probability"].is_sorted()


def test_answers_of_equal_probability_share_a_bin():
    tied = labelled().with_columns(probability=pl.lit(0.25))
    assert set(parts(tied)[1]["n"]) == {200}


def test_the_curve_holds_the_tables_risks_and_ends_at_the_error_rate():
    answers = labelled()
    metrics, _, risks = parts(answers)
    for (name, split), part in answers.group_by("estimator", "split"):
        where = {"estimator": name, "split": split}
        by_coverage = dict(risks.filter(**where).select("coverage", "risk").iter_rows())
        for percent in (10, 50, 90):
            assert (
                value(metrics, metric=f"risk_at_{percent}", **where) == (by_coverage[percent / 100])
            )
        assert by_coverage[1.0] == pytest.approx(1 - part["correct"].mean())


def test_row_order_changes_nothing():
    plain, mixed = parts(labelled()), parts(shuffled(labelled()))
    assert all(one.equals(other) for one, other in zip(plain, mixed, strict=True))


def test_an_estimator_without_predictions_has_no_rows_and_one_class_no_auroc():
    right = labelled().filter(pl.col("correct"))
    metrics, *others = parts(right, ["absent", "mars"])
    assert all(set(frame["estimator"]) == {"mars"} for frame in (metrics, *others))
    assert metrics.filter(metric="auroc")["value"].null_count() == 2
    assert metrics.filter(metric="risk_at_90")["value"].to_list() == [0, 0]


def test_without_predictions_there_is_nothing():
    assert all(frame.is_empty() for frame in parts(labelled().clear(), ["mars"]))
