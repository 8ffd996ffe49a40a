"""Bets on groups of answers: their arithmetic, their level and their power."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tracecal.guarantees.part_tests import betting_test

LEVEL = 0.1


@pytest.mark.parametrize(("rate", "n_groups"), [(0.1, 26), (0.2, 12), (0.3, 8)])
def test_bets_on_groups_that_are_never_wrong_need_some_more_than_the_binomial_test(rate, n_groups):
    """The first bets are small, as nothing is seen yet: the binomial test needs 22, 11 and 7."""
    assert math.ceil(math.log(LEVEL) / math.log(1 - rate)) < n_groups
    for number in (n_groups, n_groups - 1):
        excess = np.full((number, 1), -rate)
        assert betting_test(excess, rate, LEVEL) == (number == n_groups)


@given(
    shares=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40),
    rate=st.sampled_from([0.05, 0.2, 0.5]),
)
def test_bets_are_made_before_their_group_is_seen_and_wealth_follows_them_by_hand(shares, rate):
    kept = np.array([max(pair) for pair in shares]) / 4
    wrong = np.array([min(pair) for pair in shares]) / 4
    z = wrong - rate * kept
    # The same bets one by one, with the standard library's normal distribution.
    normal, wealth, calibration = NormalDist(), 1.0, [(1 - rate) ** 2]
    for index, part_answers in enumerate(z):
        if LEVEL * wealth >= 1 - 1e-12:
            break
        inside = max(LEVEL * wealth, 1e-12)
        drift = normal.pdf(normal.inv_cdf(inside)) / inside
        bet = drift / math.sqrt((len(z) - index) * sum(calibration) / len(calibration))
        wealth *= max(1 - min(bet, 1 / (1 - rate)) * part_answers, 0.0)
        calibration.append(part_answers**2)
    assert betting_test(z[:, None], rate, LEVEL) == (LEVEL * wealth >= 1 - 1e-12)


@pytest.mark.parametrize(("rate", "share"), [(0.3, 1.0), (0.3, 0.4), (0.1, 1.0)])
def test_bets_against_what_is_true_win_in_at_most_the_level(rate, share):
    rng = np.random.default_rng(5)
    runs, groups = 20_000, 60
    kept = rng.random((groups, runs)) < share
    wrong = kept & (rng.random((groups, runs)) < rate)
    won = betting_test(wrong - rate * kept, rate, LEVEL).mean()
    assert 0.2 * LEVEL < won <= LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def test_bets_find_more_than_one_answer_of_each_group_would():
    """With groups of four that are little alike: three times as often, here."""
    rng = np.random.default_rng(6)
    runs, groups, rate = 400, 65, 0.2
    wrong = rng.random((groups, runs, 4)) < 0.13
    whole = betting_test(wrong.mean(axis=2) - rate, rate, LEVEL).mean()
    item = np.array(
        [binomtest(int(k), groups, rate, "less").pvalue <= LEVEL for k in wrong[:, :, 0].sum(0)]
    ).mean()
    assert whole > item + 0.2
