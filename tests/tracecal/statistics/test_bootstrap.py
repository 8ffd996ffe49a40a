"""The paired bootstrap against scikit-learn with weights, and its counts against what they must be."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from tracecal.statistics.probability_metrics import weighted_brier as brier
from tracecal.statistics.ranking_metrics import weighted_auroc as auroc
from tracecal.statistics.resampling import (
    SPLITS_PER_RESAMPLE,
    draw_counts,
    draw_splits,
    interval,
    resample_metrics,
)

# Score (few values: ties), correct, how often drawn.
answers_drawn = st.lists(
    st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 3)), min_size=1, max_size=25
)


def arrays(rows):
    score, correct, drawn = map(np.array, zip(*rows, strict=True))
    return score / 5, correct, drawn.astype(float)


@given(rows=answers_drawn)
def test_auroc_from_counts_is_scikit_learns_with_weights(rows):
    score, correct, drawn = arrays(rows)
    (found,) = auroc(score, correct, drawn[None])
    if len(set(correct[drawn > 0])) < 2:
        assert np.isnan(found)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert found == pytest.approx(roc_auc_score(correct, score, sample_weight=drawn))


@given(rows=answers_drawn)
def test_brier_from_counts_is_scikit_learns_with_weights(rows):
    probability, correct, drawn = arrays(rows)
    (found,) = brier(probability, correct, drawn[None])
    if not drawn.any():
        assert np.isnan(found)
    else:
        wanted = brier_score_loss(correct, probability, sample_weight=drawn, pos_label=True)
        assert found == pytest.approx(wanted, abs=1e-12)


def test_each_resample_is_measured_by_itself():
    score, correct = np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, True, False, True])
    counts = draw_counts(list("abcd"), 1, 40)
    for metric in (auroc, brier):
        alone = [metric(score, correct, row[None])[0] for row in counts]
        np.testing.assert_allclose(metric(score, correct, counts), alone)


def test_whole_groups_are_drawn_once_on_average():
    groups = ["b", "a", "b", "c", "a", "b", "d"]
    counts = draw_counts(groups, 7, 4000)
    of_group = {name: counts[:, groups.index(name)] for name in "abcd"}
    for column, name in zip(counts.T, groups, strict=True):
        np.testing.assert_array_equal(column, of_group[name])
    drawn = np.stack(list(of_group.values()))
    # Poisson: mean 1, variance 1, and independent of one another.
    np.testing.assert_allclose(np.cov(drawn), np.eye(4), atol=0.1)
    np.testing.assert_allclose(drawn.mean(axis=1), 1, atol=0.06)


def test_draws_follow_the_groups_names_and_the_seed_and_no_order_or_task():
    groups = [f"group-{number % 9}" for number in range(30)]
    order = np.random.default_rng(0).permutation(30)
    counts = draw_counts(groups, 7, 20)
    shuffled = draw_counts([groups[place] for place in order], 7, 20)
    np.testing.assert_array_equal(shuffled, counts[:, order])
    # Another task that asks about some of these subjects draws them alike.
    np.testing.assert_array_equal(draw_counts(groups[:4], 7, 20), counts[:, :4])
    assert (draw_counts(groups, 8, 20) != counts).any()


def test_each_resample_draws_few_splits_each_as_often():
    times = draw_splits(20, "t", 7, 4000)
    assert (times[:, 0] == 1).all(), "the sample itself has all of them"
    assert (times[:, 1:].sum(axis=0) == SPLITS_PER_RESAMPLE).all()
    np.testing.assert_allclose(times[:, 1:].mean(axis=1), SPLITS_PER_RESAMPLE / 20, atol=0.03)
    np.testing.assert_array_equal(draw_splits(20, "t", 7, 4000), times)
    assert draw_splits(0, "t", 7, 5).shape == (0, 6)


IDS = ["a", "b", "c", "d"]
ANSWERS = pl.DataFrame(
    {"example_id": IDS, "group_id": ["g", "g", "h", "i"], "correct": [True, False, True, False]}
)
SCORES = pl.DataFrame({"example_id": IDS, "s": [4.0, 1.0, 3.0, 2.0]})


def predictions(**by_estimator):
    """Rows of (split, example, probability) by estimator."""
    return pl.DataFrame(
        [(name, *row) for name, rows in by_estimator.items() for row in rows],
        schema={
            "estimator": pl.String,
            "split": pl.Int64,
            "example_id": pl.String,
            "probability": pl.Float64,
        },
        orient="row",
    )


PREDICTIONS = predictions(
    s=[(0, "a", 0.5), (0, "b", 0.25), (1, "a", 1.0), (1, "c", 0.5), (1, "d", 0.5)],
    learned=[(0, "a", 0.5), (0, "b", 0.75), (1, "b", 0.25), (1, "c", 0.5), (1, "d", 0.5)],
    few=[(0, "a", 0.5), (1, "c", 0.5)],
)


def resampled(frame=PREDICTIONS, answers=ANSWERS, scores=SCORES, resamples=200):
    return resample_metrics(
        frame,
        answers,
        scores,
        model="m",
        task="t",
        estimators=["s", "learned", "few", "absent"],
        seed=3,
        resamples=resamples,
    )


def observed(table, estimator, metric):
    return table.filter(estimator=estimator, metric=metric)["observed"].item()


def test_observed_values_are_means_over_splits_by_hand():
    table = resampled()
    # s: (0.5, 0.25) for (right, wrong), then (1, 0.5, 0.5) for (right, right, wrong).
    first, second = (0.5**2 + 0.25**2) / 2, (0 + 0.5**2 + 0.5**2) / 3
    assert observed(table, "s", "brier") == pytest.approx((first + second) / 2)
    assert observed(table, "s", "auroc") == 1.0, "by the score, in which nothing ties"
    assert observed(table, "s", "auroc_calibrated") == pytest.approx((1 + 0.75) / 2)
    # learned: (0.5, 0.75) for (right, wrong), then (0.25, 0.5, 0.5) for (wrong, right, wrong).
    first, second = (0.5**2 + 0.75**2) / 2, (0.25**2 + 0.5**2 + 0.5**2) / 3
    assert observed(table, "learned", "brier") == pytest.approx((first + second) / 2)
    assert observed(table, "learned", "auroc") == pytest.approx((0 + 0.75) / 2)
    assert observed(table, "learned", "auroc_calibrated") == observed(table, "learned", "auroc")
    assert observed(table, "few", "brier") == pytest.approx(0.25)
    assert observed(table, "few", "auroc") is None, "one class in each split"
    for metric in ("brier", "auroc"):
        assert observed(table, "absent", metric) is None


def test_resamples_are_the_same_for_all_estimators_and_undefined_ones_null():
    table = resampled()
    counts = draw_counts(["g", "g", "h", "i"], 3, 200)
    times = draw_splits(2, "t", 3, 200)[:, 1:]
    values = {(e, m): v for e, m, v in table.select("estimator", "metric", "resampled").rows()}
    for draw, (a, b, c, d) in enumerate(counts):
        squares = [(0.25 * a + 0.0625 * b, a + b), (0.25 * c + 0.25 * d, a + c + d)]
        first, second = times[:, draw]
        one, other = ([total / n] if n else [] for total, n in squares)
        wanted = one * int(first) + other * int(second)
        found = values["s", "brier"][draw]
        assert found == (pytest.approx(np.mean(wanted)) if wanted else None)
        both = (first and a and b) or (second and (a or c) and d)
        assert values["s", "auroc"][draw] == (1.0 if both else None)
    assert 0 < values["s", "auroc"].count(None) < 200, "the case must have both kinds"
    assert values["absent", "auroc"] == [None] * 200


def test_the_order_of_rows_changes_nothing():
    shuffled = [
        frame.sample(fraction=1, shuffle=True, seed=4) for frame in (PREDICTIONS, ANSWERS, SCORES)
    ]
    assert resampled(*shuffled).equals(resampled())


def test_intervals_leave_out_what_is_undefined():
    assert interval([None, None], 0.95) == (None, None, 0)
    assert interval([None, *range(101)], 0.95) == (pytest.approx(2.5), pytest.approx(97.5), 101)
    assert interval(np.arange(101.0), 0.5)[:2] == (25, 75)
