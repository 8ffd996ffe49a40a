"""The overall error rate: exact numbers, ties, missing scores, and that it holds exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tracecal.guarantees.error_rate import (
    allowed_errors,
    confidence_at_once,
    min_groups,
    overall_threshold,
    rounded,
)

LEVEL = 0.1
RANK = np.arange(100)
FALLING = (99 - RANK) / 100
TENTHS = (10 + np.floor(-RANK / 10)) / 10
WRONG = RANK % 10 == 4


def n_kept(score, wrong, rate, level=LEVEL):
    threshold = overall_threshold(score, wrong, rate, level)
    return 0 if threshold is None else int((score >= threshold).sum())


@pytest.mark.parametrize(
    ("n", "rate", "allowed"),
    [
        (21, 0.1, -1),
        (22, 0.1, 0),
        (37, 0.1, 0),
        (38, 0.1, 1),
        (44, 0.05, -1),
        (45, 0.05, 0),
        (76, 0.05, 0),
        (77, 0.05, 1),
        (100, 0.1, 5),
        (336, 0.1, 26),
        (336, 0.05, 11),
        (336, 0.2, 57),
        (113, 0.02, -1),
        (114, 0.02, 0),
        (230, 0.01, 0),
        (229, 0.01, -1),
        (11, 0.2, 0),
        (10, 0.2, -1),
    ],
)
def test_as_many_errors_are_allowed_as_the_binomial_test_allows(n, rate, allowed):
    assert allowed_errors(n, rate, LEVEL) == allowed
    assert (n >= min_groups(rate, LEVEL)) == (allowed >= 0)


@pytest.mark.parametrize(("looks", "allowed"), [(1, 5), (2, 4), (3, 4), (4, 4), (6, 3)])
def test_looks_share_the_level(looks, allowed):
    assert allowed_errors(100, 0.1, LEVEL / looks) == allowed


@pytest.mark.parametrize(("rate", "kept"), [(0.02, 0), (0.05, 14), (0.1, 54), (0.2, 100)])
def test_the_threshold_is_an_order_statistic_of_the_wrong_answers(rate, kept):
    assert n_kept(FALLING, WRONG, rate) == kept


@pytest.mark.parametrize(("rate", "kept"), [(0.05, 11), (0.1, 51)])
def test_all_that_tie_with_the_first_error_too_many_go(rate, kept):
    assert n_kept(TENTHS, WRONG, rate) == kept


@pytest.mark.parametrize(("rate", "kept"), [(0.05, 14), (0.1, 54), (0.2, 90)])
def test_answers_without_a_score_count_and_are_not_kept(rate, kept):
    score = np.where(RANK < 10, np.nan, FALLING)
    assert n_kept(score, WRONG, rate) == kept


def test_answers_that_are_all_wrong_all_right_or_all_alike():
    right, wrong = np.zeros(100, dtype=bool), np.ones(100, dtype=bool)
    assert n_kept(FALLING, right, 0.05) == 100
    assert n_kept(FALLING, wrong, 0.1) == 5
    alike = np.full(100, 0.5)
    assert n_kept(alike, RANK < 5, 0.1) == 100
    assert n_kept(alike, RANK < 6, 0.1) == 0
    assert overall_threshold(np.array([0.5]), np.array([False]), 0.5, LEVEL) is None
    assert n_kept(np.array([0.5]), np.array([False]), 0.95) == 1
    assert overall_threshold(np.array([]), np.array([], dtype=bool), 0.5, LEVEL) is None


@given(
    n=st.integers(1, 150),
    digits=st.integers(1, 16),
    rate=st.floats(0.01, 0.6),
    seed=st.integers(0, 1000),
)
def test_more_is_kept_at_higher_rates_whatever_the_order_of_rows(n, digits, rate, seed):
    rng = np.random.default_rng(seed)
    score, wrong = rng.random(n).round(digits), rng.random(n) < rng.random()
    threshold = overall_threshold(score, wrong, rate, LEVEL)
    order = rng.permutation(n)
    assert overall_threshold(score[order], wrong[order], rate, LEVEL) == threshold
    higher = overall_threshold(score, wrong, min(1.5 * rate, 0.9), LEVEL)
    assert threshold is None or higher <= threshold
    if threshold:
        highest = np.sort(rounded(score)[wrong])[::-1][allowed_errors(n, rate, LEVEL)]
        assert ((score >= threshold) == (rounded(score) > highest)).all()


@pytest.mark.parametrize(
    ("n", "rates", "level"),
    [
        (60, (0.05, 0.1, 0.2), 0.1232),
        (100, (0.05, 0.1, 0.2), 0.1303),
        (200, (0.05, 0.1, 0.2), 0.171),
        (336, (0.05, 0.1, 0.2), 0.1869),
        (1000, (0.05, 0.1, 0.2), 0.184),
        (100, (0.1, 0.2), 0.1123),
    ],
)
def test_several_rates_hold_at_once_with_the_exact_confidence(n, rates, level):
    joint = confidence_at_once(n, rates, LEVEL)
    assert joint == pytest.approx(1 - level, abs=6e-4 if level in (0.171, 0.184) else 6e-5)
    assert confidence_at_once(n, rates[::-1], LEVEL) == joint


@pytest.mark.parametrize("rates", [(0.05, 0.1, 0.2), (0.001, 0.5, 0.9), (1e-6, 0.02, 0.98)])
@pytest.mark.parametrize("n", [1, 5, 100, 1500])
def test_the_joint_confidence_leaves_out_only_what_is_negligible(n, rates):
    """Against all numbers of errors of binomial distributions."""
    probability, before = np.eye(1, n + 1)[0], 0.0
    for rate in rates:
        following = np.zeros(n + 1)
        for count in np.flatnonzero(probability > 1e-30):
            further = binom.pmf(np.arange(n - count + 1), n - count, (rate - before) / (1 - before))
            following[count:] += probability[count] * further
        following[: allowed_errors(n, rate, LEVEL) + 1] = 0
        probability, before = following, rate
    assert confidence_at_once(n, rates, LEVEL) == pytest.approx(probability.sum(), abs=1e-12)


@pytest.mark.parametrize("n", [1, 21, 22, 99, 2000])
@pytest.mark.parametrize("rate", [1e-6, 0.1, 0.5, 0.999])
def test_the_errors_that_are_allowed_are_those_of_all_tests(n, rate):
    passes = binom.cdf(np.arange(n), n, rate) <= LEVEL
    assert allowed_errors(n, rate, LEVEL) == passes.sum() - 1


def test_one_rate_has_the_level_of_its_own_test():
    for n in (22, 60, 100):
        alone = binom.cdf(allowed_errors(n, 0.1, LEVEL), n, 0.1)
        assert confidence_at_once(n, [0.1], LEVEL) == pytest.approx(1 - alone)
    assert confidence_at_once(10, [0.05, 0.1], LEVEL) == pytest.approx(1)


@pytest.mark.parametrize("n", [60, 100])
def test_several_rates_fail_as_often_as_stated_where_nothing_ties(n):
    """The worst population: every answer that is wrong, is wrong for a score of its own."""
    rng, rates, runs = np.random.default_rng(n), (0.05, 0.1, 0.2), 4000
    broken = 0
    for _ in range(runs):
        score = rng.random(n)
        wrong = rng.random(n) < 0.5
        thresholds = [overall_threshold(score, wrong, rate, LEVEL) for rate in rates]
        broken += any(
            at is not None and 0.5 * (1 - at) > rate
            for at, rate in zip(thresholds, rates, strict=True)
        )
    assert broken / runs == pytest.approx(1 - confidence_at_once(n, rates, LEVEL), abs=0.02)
