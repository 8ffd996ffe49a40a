"""Tests of labels against an error rate, beside SciPy's and by their levels."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from tracecal.statistics.rate_test import KeptAnswers, enough_answers

LEVELS = (0.025, 0.05)


@pytest.mark.parametrize("n", [1, 7, 50])
def test_answers_are_tested_by_the_binomial_distribution(n):
    for n_wrong in range(n + 1):
        answers = KeptAnswers(n, n_wrong)
        above = binomtest(n_wrong, n, 0.2, "greater").pvalue
        assert answers.contradicts(0.2, 0.025) == (above <= 0.025)
        below = binomtest(n_wrong, n, 0.3, "less").pvalue
        assert answers.rules_out(0.3, 0.05) == (below <= 0.05)


def test_no_labels_say_nothing():
    answers = KeptAnswers(0, 0)
    assert not answers.contradicts(0.2, 0.5) and not answers.rules_out(0.3, 0.5)


@pytest.mark.parametrize("share", [0.1, 0.16, 0.24])
def test_enough_answers_decide_in_four_of_five_draws(share):
    number = enough_answers(KeptAnswers(0, 0), share, 0.3, *LEVELS)
    assert number is not None
    n_wrong = np.arange(number + 1)
    decides = [
        KeptAnswers(number, k).contradicts(share, LEVELS[0])
        or KeptAnswers(number, k).rules_out(0.3, LEVELS[1])
        for k in n_wrong.tolist()
    ]
    assert binom.pmf(n_wrong, number, share)[decides].sum() >= 0.8


def test_enough_answers_are_more_than_there_are_and_none_beyond_the_most():
    number = enough_answers(KeptAnswers(15, 3), 0.2, 0.3, *LEVELS)
    assert number is not None and number > 15
    assert enough_answers(KeptAnswers(100, 20), 0.2, 0.201, *LEVELS) is None
