"""Labels asked for where they decide: exact small cases, and properties of the search."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracecal.calibration import labelling
from tracecal.calibration.guarantees import sufficing
from tracecal.calibration.labelling import NoMoreLabels, Pool, promise


def labels(wrong, most=10**9):
    """The function that gives labels, and the answers that it was asked for, in their order."""
    asked = []

    def give(answer):
        if answer not in asked:
            if len(asked) >= most:
                raise NoMoreLabels
            asked.append(answer)
        return wrong[answer]

    return give, asked


def single(n, seed=0):
    return Pool(np.arange(n), np.random.default_rng(seed).random(n))


def test_right_answers_are_all_promised_with_a_fraction_of_the_labels():
    give, asked = labels(np.zeros(1000, dtype=bool))
    found = promise(single(1000), give, 0.1, 0.1, "finite")
    assert (found.coverage, found.ended) == (1.0, "passed")
    # One test needs `sufficing` labels; those of the 24 thresholds are mostly the same.
    assert sufficing(0.1, 0.1) < len(asked) < 250


def test_wrong_answers_cost_few_labels_and_promise_nothing():
    give, asked = labels(np.ones(1000, dtype=bool))
    found = promise(single(1000), give, 0.1, 0.1, "finite")
    assert (found.threshold, found.coverage, found.ended) == (None, 0.0, "failed")
    assert len(asked) < 15


@pytest.mark.parametrize("population", ["finite", "further"])
def test_only_answers_that_the_threshold_would_keep_are_asked_for(population):
    pool, rng = single(600), np.random.default_rng(1)
    give, asked = labels(rng.random(600) > pool.score, most=60)
    found = promise(pool, give, 0.3, 0.1, population)
    assert found.ended == "labels"
    assert pool.score[asked].min() >= found.tested
    assert found.threshold is None or found.threshold > found.tested


def test_more_labels_never_promise_less():
    pool, rng = single(400), np.random.default_rng(2)
    wrong = rng.random(400) > 0.2 + 0.8 * pool.score
    found = [
        promise(pool, labels(wrong, most)[0], 0.2, 0.1, "finite") for most in (30, 60, 150, 400)
    ]
    coverages = [one.coverage for one in found]
    assert coverages == sorted(coverages) and coverages[-1] > 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 40), st.floats(0.05, 0.6))
def test_all_labels_of_a_finite_file_promise_the_truth(seed, groups, rate):
    """Where every label is given, the promise is the last threshold before the rate is broken."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rng.integers(1, 4, groups))
    pool, wrong = Pool(group, rng.random(len(group))), rng.random(len(group)) < 0.3
    found = promise(pool, labels(wrong)[0], rate, 1e-9, "finite")
    if found.threshold is not None:
        kept = pool.score >= found.threshold
        weight = kept / np.bincount(group)[group]
        assert (weight * wrong).sum() / weight.sum() <= rate + 1e-9


def test_a_test_breaks_its_level_in_no_more_than_delta_of_all_orders():
    """Every order of eight answers, of which three are wrong, at a target of two in eight: exact."""
    wrong = np.array([True] * 3 + [False] * 5)
    passed = 0
    orders = set(itertools.permutations(wrong.tolist()))
    for order in orders:
        groups = labelling._tested_groups(np.arange(8), np.arange(8), np.ones(8, dtype=int))
        passed += labelling._passes(groups, lambda i, order=order: order[i], 0.25, 0.3, "finite")
    assert 0 <= passed / len(orders) <= 0.3


def test_wealth_is_a_supermartingale_for_groups_of_several_answers():
    """At the boundary of the hypothesis the mean wealth of random orders stays at most 1, so that
    passing has at most its level, also where a threshold keeps parts of groups."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 5, 60)
    group = np.repeat(np.arange(60), sizes)
    wrong = rng.random(60)[group] < 0.35  # alike within a group
    score = rng.random(len(group))
    kept = np.flatnonzero(score > 0.3)
    share = np.bincount(group[kept], minlength=60) / sizes
    bad = np.bincount(group[kept], weights=wrong[kept], minlength=60) / sizes
    rate = bad.sum() / share.sum() - 1e-9  # just broken
    passed = 0
    for _ in range(400):
        order = rng.permutation(60)
        place = np.argsort(order)[group[kept]]
        groups = labelling._tested_groups(place, kept, sizes[order])
        passed += labelling._passes(groups, lambda i: wrong[i], rate, 0.1, "finite")
    assert passed / 400 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 400)


def test_answers_without_a_score_are_never_kept():
    pool = single(100)
    score = np.where(np.arange(100) < 30, -np.inf, pool.score)
    found = promise(
        Pool(pool.group, score), labels(np.zeros(100, dtype=bool))[0], 0.2, 0.1, "finite"
    )
    assert found.coverage == pytest.approx(0.7, abs=0.05)
    assert np.isfinite(found.threshold)
