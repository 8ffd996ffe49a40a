"""Labels asked for where they decide: exact small cases, and properties of the search."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tracecal.guarantees import sequential
from tracecal.guarantees.error_rate import min_groups
from tracecal.guarantees.sequential import (
    NoMoreLabels,
    draw_test_order,
    search_threshold,
)

LEVEL = 0.1


def labels(wrong, max_labels=10**9):
    """The function that gives labels, and the answers that it was asked for, in their order."""
    asked_indices = []

    def give(answer):
        if answer not in asked_indices:
            if len(asked_indices) >= max_labels:
                raise NoMoreLabels
            asked_indices.append(answer)
        return wrong[answer]

    return give, asked_indices


def scores(n, seed=0):
    return np.random.default_rng(seed).random(n)


def test_right_answers_are_all_kept_after_a_fraction_of_the_labels():
    give, asked_indices = labels(np.zeros(1000, dtype=bool))
    result = search_threshold(scores(1000), give, 0.1, LEVEL, "finite")
    assert (result.threshold, result.ended) == (scores(1000).min(), "passed")
    # One test needs `min_groups` labels; those of the 24 thresholds are mostly the same.
    assert min_groups(0.1, LEVEL) < len(asked_indices) < 250


def test_wrong_answers_cost_few_labels_and_nothing_is_certified():
    give, asked_indices = labels(np.ones(1000, dtype=bool))
    result = search_threshold(scores(1000), give, 0.1, LEVEL, "finite")
    assert (result.threshold, result.ended) == (None, "failed")
    assert len(asked_indices) < 15


@pytest.mark.parametrize("population", ["finite", "further"])
def test_only_answers_that_the_threshold_would_keep_are_asked_for(population):
    score = scores(600)
    give, asked_indices = labels(np.random.default_rng(1).random(600) > score, max_labels=60)
    result = search_threshold(score, give, 0.3, LEVEL, population)
    assert result.ended == "labels"
    assert score[asked_indices].min() >= result.tested
    assert result.threshold is None or result.threshold > result.tested


def test_more_labels_never_certify_less():
    score, rng = scores(400), np.random.default_rng(2)
    wrong = rng.random(400) > 0.2 + 0.8 * score
    result = [
        search_threshold(score, labels(wrong, max_labels)[0], 0.2, LEVEL, "finite")
        for max_labels in (30, 60, 150, 400)
    ]
    thresholds = [np.inf if item.threshold is None else item.threshold for item in result]
    assert thresholds == sorted(thresholds, reverse=True) and np.isfinite(thresholds[-1])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 100), st.floats(0.05, 0.6))
def test_all_labels_of_a_finite_file_certify_the_truth(seed, n, rate):
    """Where every label is given and next to no doubt is allowed, the share of wrong ones among
    the kept answers is below the rate, not just probably so."""
    rng = np.random.default_rng(seed)
    score, wrong = rng.random(n), rng.random(n) < 0.3
    result = search_threshold(score, labels(wrong)[0], rate, 1e-9, "finite")
    if result.threshold is not None:
        assert wrong[score >= result.threshold].mean() <= rate + 1e-9


def test_a_test_breaks_its_level_in_no_more_than_delta_of_all_orders():
    """Every order of eight answers, of which three are wrong, at a target of two in eight: exact."""
    orders = set(itertools.permutations([True] * 3 + [False] * 5))
    passed = sum(
        sequential.passes_test(np.arange(8), lambda i, order=order: order[i], 0.25, 0.3, "finite")
        for order in orders
    )
    assert 0 < passed / len(orders) <= 0.3


def former_passes(wrong, rate, level, population):
    """The test as it was, for groups of one answer each: its arithmetic, word for word."""
    n = len(wrong)
    before = 20.0 * rate * (1 - 1.0 * (1 - 0.4))
    total, wealth = 0.0, 1.0
    for k, x in enumerate(wrong):
        m = (n * rate - total) / (n - k) if population == "finite" else rate
        if m >= 1:
            return True, k
        if m <= 0:
            return False, k
        guess = (before + total) / (20.0 + k)
        bet = max(m - guess, 0.0) / (1.0 * m * (1 - m))
        wealth *= 1 - min(bet, 1 / max(1.0 - m, 1e-12)) * (x - m)
        total += x
        if wealth >= 1 / level:
            return True, k + 1
    return population == "finite" and n > 0 and total <= n * rate, n


@pytest.mark.parametrize("seed", range(60))
def test_single_answers_are_tested_as_before(seed):
    """The same verdict after the same number of labels, in files small and large."""
    rng = np.random.default_rng(seed)
    n, rate = int(rng.integers(5, 600)), float(rng.choice([0.02, 0.05, 0.1, 0.2, 0.4]))
    wrong = (rng.random(n) < rate * rng.uniform(0.2, 1.4)).astype(float)
    for population in ("finite", "further"):
        give, asked_indices = labels(wrong)
        passes = sequential.passes_test(np.arange(n), give, rate, LEVEL, population)
        assert (passes, len(asked_indices)) == former_passes(wrong, rate, LEVEL, population)


def test_single_answers_are_tested_in_one_random_order():
    order = draw_test_order(np.arange(7), np.random.default_rng(0))
    assert sorted(order) == list(range(7))


def test_of_each_group_one_answer_is_tested_each_as_often_as_the_others():
    """Groups of 1 to 4 and one of 8."""
    group = np.array([3, 0, 1, 2, 1, 2, 2, 3, 3, 3, *[4] * 8])
    first, tested = Counter(), Counter()
    for seed in range(4000):
        order = draw_test_order(group, np.random.default_rng(seed))
        assert sorted(group[order]) == list(range(5))
        tested.update(order.tolist())
        first.update(order[:1].tolist())
    expected = 1 / np.bincount(group)[group]
    counts = np.array([tested[place] for place in range(len(group))])
    assert np.abs(counts / 4000 - expected).max() < 4 * np.sqrt(0.25 / 4000)
    # Within a group each answer comes first equally often: the order knows nothing of its place.
    largest_counts = [first[place] for place in np.flatnonzero(group == 4)]
    assert chisquare(largest_counts).pvalue > 1e-4


def test_a_threshold_that_keeps_no_tested_answer_fails_and_is_not_passed_over():
    """Its scores may not choose which thresholds are tested: fixed sequences do not allow it.

    Those set aside score 9 and 8, and the tested ones at most 7, all right.
    """
    score = np.concatenate([np.linspace(9, 8, 20), np.linspace(7, 6, 180)])
    give, asked_indices = labels(np.zeros(200, dtype=bool))
    result = search_threshold(score, give, 0.1, LEVEL, "further")
    assert (result.threshold, result.ended, asked_indices) == (None, "failed", [])


@pytest.mark.parametrize("n, share", [(100, 1.5 * 22 / 90), (2000, 0.08)])
def test_the_first_threshold_for_further_answers_keeps_enough_to_pass(n, share):
    """One and a half times the 22 right answers in a row that pass at 10 %, or 8 %."""
    assert min_groups(0.1, LEVEL) == 22
    score = scores(n)
    result = search_threshold(score, labels(np.zeros(n), max_labels=0)[0], 0.1, LEVEL, "further")
    aside = np.sort(score[: n // 10])[::-1]
    assert result.tested == aside[int(np.ceil(share * len(aside))) - 1]


def test_answers_without_a_score_are_never_kept():
    score = np.where(np.arange(100) < 30, -np.inf, scores(100))
    give, asked_indices = labels(np.zeros(100, dtype=bool))
    result = search_threshold(score, give, 0.2, LEVEL, "finite")
    assert (score >= result.threshold).mean() == pytest.approx(0.7, abs=0.05)
    assert min(asked_indices) >= 30


def test_a_file_none_of_whose_answers_is_drawn_certifies_nothing():
    result = search_threshold(np.array([]), labels([])[0], 0.1, LEVEL, "further")
    assert (result.threshold, result.tested, result.ended) == (None, None, "passed")
