"""The line: its values against the published table and against enumeration, and its edge cases."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tracecal.guarantees.line import (
    MAX_LABELS,
    TILT,
    error_line,
    find_places,
)

LEVEL = 0.1


@pytest.mark.parametrize(
    ("rate", "n", "first_ranks", "end"),
    [
        (0.1, 50, [27, 41], 1),
        (0.1, 100, [29, 48, 64, 80, 94], 4),
        (0.1, 200, [32, 51, 68, 84, 99], 11),
        (0.2, 50, [14, 23, 31, 38, 46], 4),
        (0.2, 100, [15, 24, 33, 41, 48, 55, 62], 11),
        (0.2, 200, [20, 25, 33, 41, 48], 27),
    ],
)
def test_the_line_allows_as_many_wrong_answers_as_in_the_table(rate, n, first_ranks, end):
    line = error_line(n, rate, LEVEL)
    ranks = [
        line.first + int(np.argmax(line.allowed >= wrong)) for wrong in range(len(first_ranks))
    ]
    assert ranks == first_ranks
    assert line.allowed[-1] == end


@pytest.mark.parametrize(
    ("rate", "levels"),
    [(0.1, [0.075, 0.035, 0.022, 0.016, 0.012]), (0.2, [0.037, 0.022, 0.016, 0.013, 0.011])],
)
def test_the_level_of_the_line_is_that_of_the_table(rate, levels):
    computed = [error_line(n, rate, LEVEL).level for n in (50, 100, 200, 400, 1000)]
    assert computed == pytest.approx(levels, abs=0.00055)  # 0.01546 stands there as 0.016


@pytest.mark.parametrize(("n", "rate", "level"), [(12, 0.4, 0.1), (14, 0.5, 0.05), (9, 0.3, 0.2)])
def test_the_line_exhausts_the_level_in_all_sequences_of_answers(n, rate, level):
    """Every sequence of right and wrong answers is enumerated; a higher line crosses too often."""
    line = error_line(n, rate, level)
    sequences = np.array([*itertools.product([0, 1], repeat=n)])
    wrong = sequences.cumsum(axis=1)[:, line.first - 1 :]
    chance = rate ** sequences.sum(axis=1) * (1 - rate) ** (n - sequences.sum(axis=1))
    crossing = chance[(wrong <= line.allowed).any(axis=1)].sum()
    assert 0 < crossing <= level
    # The next larger number of wrong answers that a higher level would allow somewhere.
    rank = np.arange(line.first, n + 1)
    next_level = (binom.cdf(line.allowed + 1, rank, rate) * (rank / n) ** TILT).min()
    higher = binom.cdf(line.allowed + 1, rank, rate) * (rank / n) ** TILT <= next_level * (
        1 + 1e-12
    )
    if next_level < level:
        assert chance[(wrong <= line.allowed + higher).any(axis=1)].sum() > level


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 400),
    rate=st.sampled_from([0.05, 0.1, 0.3, 0.7]),
    level=st.sampled_from([0.01, 0.05, 0.1, 0.3]),
)
def test_each_rank_allows_the_largest_number_that_the_binomial_test_passes(n, rate, level):
    line = error_line(n, rate, level)
    if n < np.log(level) / np.log(1 - rate):
        assert line is None
        return
    rank = np.arange(line.first, n + 1)
    levels = line.level * (n / rank) ** TILT
    assert rank[-1] == n and len(line.allowed) == len(rank)
    assert (np.where(line.allowed >= 0, binom.cdf(line.allowed, rank, rate), 0) <= levels).all()
    assert (binom.cdf(line.allowed + 1, rank, rate) > levels).all()


@pytest.mark.parametrize(("rate", "n"), [(0.05, 200), (0.1, 100), (0.3, 300)])
def test_the_line_is_crossed_as_often_as_stated_by_coins(rate, n):
    rng = np.random.default_rng(7)
    line = error_line(n, rate, LEVEL)
    wrong = (rng.random((20_000, n)) < rate).cumsum(axis=1)[:, line.first - 1 :]
    crossed = (wrong <= line.allowed).any(axis=1).mean()
    assert 0.7 * LEVEL < crossed < LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / 20_000)


def test_a_guarantee_needs_as_many_labels_as_suffice_without_a_mistake():
    assert error_line(10, 0.2, LEVEL) is None  # 0.8 ** 10 = 0.107
    line = error_line(11, 0.2, LEVEL)
    assert (line.first, line.allowed.tolist()) == (11, [0])


def test_more_labels_than_the_line_is_computed_for_are_refused():
    with pytest.raises(ValueError, match="5001 labels"):
        error_line(MAX_LABELS + 1, 0.2, LEVEL)


def test_places_are_the_ends_of_ties_and_nan_is_not_ranked():
    score = np.array([0.5, np.nan, 0.9, 0.5, np.inf, 0.1, np.nan])
    wrong = np.array([True, True, False, False, False, True, False])
    places = find_places(score, wrong)
    assert places.score.tolist() == [np.inf, 0.9, 0.5, 0.1]
    assert places.kept.tolist() == [1, 2, 4, 5]
    assert places.wrong.tolist() == [0, 0, 1, 2]
    assert find_places(np.array([]), np.array([], dtype=bool)).n == 0


@pytest.mark.parametrize("n", [11, 60, 300])
def test_all_right_passes_everywhere_and_all_wrong_nowhere(n):
    score = np.arange(n, dtype=float)
    line = error_line(n, 0.2, LEVEL)
    right = find_places(score, np.zeros(n, dtype=bool)).passes(0.2, LEVEL)
    assert right.tolist() == [False] * (line.first - 1) + (line.allowed >= 0).tolist()
    assert right[-1]
    assert not find_places(score, np.ones(n, dtype=bool)).passes(0.2, LEVEL).any()


def test_a_tie_across_the_first_rank_is_tested_at_its_end_alone():
    """100 labels, the first rank is 13: a tie of the ranks 10 to 30 is one place, at 30."""
    score = np.concatenate([np.arange(200, 191, -1.0), np.full(21, 50.0), -np.arange(70.0)])
    for n_wrong, passes in ((1, True), (2, False)):
        wrong = np.arange(100) < n_wrong
        places = find_places(score, wrong)
        assert places.kept[8:10].tolist() == [9, 30]
        assert places.passes(0.2, LEVEL)[9] == passes, (
            "one wrong is allowed from 24 on, two from 33"
        )


@pytest.mark.parametrize(("n_wrong", "passes"), [(11, True), (12, False)])
def test_equal_scores_are_kept_all_or_not_at_all(n_wrong, passes):
    places = find_places(np.full(100, 0.5), np.arange(100) < n_wrong)
    assert places.passes(0.2, LEVEL).tolist() == [passes]


def test_the_order_of_the_labels_does_not_matter():
    rng = np.random.default_rng(3)
    score, wrong = rng.normal(size=80).round(1), rng.random(80) < 0.3
    order = rng.permutation(80)
    places, shuffled = find_places(score, wrong), find_places(score[order], wrong[order])
    assert np.array_equal(places.wrong, shuffled.wrong)
    assert np.array_equal(places.score, shuffled.score)


def test_the_nearest_place_is_that_with_the_smallest_chance():
    """Wrong at the ranks 6 to 9 and then no more: 4 of 40 are least likely by chance."""
    places = find_places(-np.arange(40.0), np.isin(np.arange(40), [5, 6, 7, 8]))
    assert not places.passes(0.2, LEVEL).any()
    assert places.kept[places.nearest(0.2, LEVEL)] == 40
    assert find_places(np.zeros(5), np.zeros(5, dtype=bool)).nearest(0.2, LEVEL) is None
