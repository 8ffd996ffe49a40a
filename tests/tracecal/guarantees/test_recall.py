"""Guaranteed recall: its order statistic against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tracecal.guarantees.recall import recall_threshold, right_answers_needed

LEVEL = 0.1


@given(
    n=st.integers(0, 200),
    recall=st.sampled_from([0.5, 0.8, 0.95]),
    seed=st.integers(0, 100),
)
def test_the_threshold_is_an_order_statistic_of_the_right_answers(n, recall, seed):
    rng = np.random.default_rng(seed)
    score, correct = rng.random(n), rng.random(n) < 0.7
    threshold = recall_threshold(score, correct, recall, LEVEL)
    n_right = correct.sum()
    passing = [k for k in range(n_right) if binom.cdf(k, n_right, 1 - recall) <= LEVEL]
    assert (threshold is None) == (not passing) == (n_right < right_answers_needed(recall, LEVEL))
    if passing:
        assert (score[correct] < threshold).sum() == passing[-1]


def test_right_answers_without_a_score_are_not_kept():
    score, correct = np.arange(100.0), np.ones(100, dtype=bool)
    assert recall_threshold(score, correct, 0.8, LEVEL) == pytest.approx(
        14
    )  # P(Bin(100, .2) <= 14) = .080
    score[:10] = np.nan
    assert recall_threshold(score, correct, 0.8, LEVEL) == pytest.approx(14)
    score[:15] = np.nan
    assert recall_threshold(score, correct, 0.8, LEVEL) is None


@pytest.mark.parametrize("recall", [0.5, 0.8])
def test_recall_is_broken_in_at_most_the_level(recall):
    rng = np.random.default_rng(2)
    broken = 0
    for _ in range(2000):
        score, correct = rng.random(80), rng.random(80) < 0.6
        threshold = recall_threshold(score, correct, recall, LEVEL)
        broken += threshold is not None and 1 - threshold < recall
    assert 0.04 < broken / 2000 <= LEVEL + 3 * np.sqrt(0.09 / 2000)
