"""Tests of labels against an error rate, beside SciPy's and by their levels."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from tracecal.calibration.rate_test import KeptGroups, enough_groups, kept_groups

LEVELS = (0.025, 0.05)


def singles(n, n_wrong):
    return KeptGroups(np.ones(n), (np.arange(n) < n_wrong).astype(float), True)


def wholes(rng, n, rate):
    """Groups of three that are right or wrong as a whole."""
    wrong = np.repeat(rng.random(n) < rate, 3)
    return kept_groups(np.repeat(np.arange(n), 3), wrong)


@pytest.mark.parametrize("n", [1, 7, 50])
def test_single_answers_are_tested_by_the_binomial_distribution(n):
    for n_wrong in range(n + 1):
        groups = singles(n, n_wrong)
        above = binomtest(n_wrong, n, 0.2, "greater").pvalue
        assert groups.contradicts(0.2, 0.025) == (above <= 0.025)
        below = binomtest(n_wrong, n, 0.3, "less").pvalue
        assert groups.rules_out(0.3, 0.05) == (below <= 0.05)


def test_no_labels_say_nothing():
    for groups in (singles(0, 0), KeptGroups(np.empty(0), np.empty(0), False)):
        assert not groups.contradicts(0.2, 0.5) and not groups.rules_out(0.3, 0.5)


def test_answers_count_alike_in_their_groups():
    wrong = np.array([True, False, True, False])
    groups = kept_groups(np.array(["a", "a", "a", "b"]), wrong)
    assert not groups.is_single
    assert sorted(groups.kept) == [1 / 3, 1.0] and sorted(groups.wrong) == [0.0, 2 / 3]
    alone = kept_groups(np.arange(4), wrong)
    assert alone.is_single and alone.kept.tolist() == [1] * 4 and alone.wrong.sum() == 2


def test_groups_tell_as_much_as_there_are_groups_and_not_answers():
    rng = np.random.default_rng(0)
    draws = [wholes(rng, 40, 0.2) for _ in range(1000)]
    assert np.mean([groups.contradicts(0.2, 0.05) for groups in draws]) <= 0.05
    as_singles = [
        singles(120, 3 * int(groups.wrong.sum())).contradicts(0.2, 0.05) for groups in draws
    ]
    assert np.mean(as_singles) > 0.1  # taken as single answers they would be wrong too often
    assert wholes(rng, 200, 0.5).contradicts(0.2, 0.025)
    assert wholes(rng, 200, 0.05).rules_out(0.3, 0.05)


@pytest.mark.parametrize("share", [0.1, 0.16, 0.24])
def test_enough_single_answers_decide_in_four_of_five_draws(share):
    groups = singles(1000, round(1000 * share))
    undecided = KeptGroups(groups.kept[:0], groups.wrong[:0], True)
    number = enough_groups(undecided, share, 0.3, *LEVELS)
    assert number is not None
    n_wrong = np.arange(number + 1)
    decides = [
        singles(number, k).contradicts(share, LEVELS[0])
        or singles(number, k).rules_out(0.3, LEVELS[1])
        for k in n_wrong
    ]
    assert binom.pmf(n_wrong, number, share)[decides].sum() >= 0.8


def test_enough_groups_are_more_than_there_are_and_none_beyond_the_most():
    alone = singles(15, 3)
    groups = KeptGroups(alone.kept, alone.wrong, False)
    number = enough_groups(groups, 0.2, 0.3, *LEVELS)
    assert number is not None and number > 15
    fewer = enough_groups(alone, 0.2, 0.3, *LEVELS)
    assert number >= 0.8 * fewer
    assert enough_groups(singles(100, 20), 0.2, 0.201, *LEVELS) is None
