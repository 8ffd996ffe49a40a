"""Thresholds with a guaranteed error rate: which labels test them, and what is said without one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from tracecal.guarantees.error_rate import (
    find_thresholds,
    fitted_sequence,
    lowered,
    raised,
    rounded,
    threshold_by_line,
    threshold_by_values,
)
from tracecal.guarantees.line import MAX_LABELS, error_line

LEVEL = 0.1
NONE = np.empty(0)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 120),
    digits=st.integers(0, 2),
    rate=st.sampled_from([0.1, 0.2, 0.5]),
    seed=st.integers(0, 10**6),
)
def test_the_last_tie_end_at_or_under_the_line_is_kept(n, digits, rate, seed):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n).round(digits)
    wrong = rng.random(n) < np.where(score > 0, 0.05, 0.5)
    line, threshold, guaranteed = error_line(n, rate, LEVEL), None, []
    for value in sorted(set(score), reverse=True):
        kept = score >= value
        rank = kept.sum() - line.first if line else -1
        if rank >= 0 and wrong[kept].sum() <= line.allowed[rank]:
            threshold = value
            guaranteed.append(value)
    test = threshold_by_line(score, wrong, rate, LEVEL)
    assert (test.threshold, list(test.guaranteed)) == (threshold, guaranteed)
    assert (test.reason is None) == (threshold is not None)
    if threshold is not None:
        assert (test.kept, test.wrong) == (
            (score >= threshold).sum(),
            wrong[score >= threshold].sum(),
        )
        assert test.wrong <= test.allowed


def test_what_is_missing_is_said():
    few = threshold_by_line(np.arange(10.0), np.zeros(10, bool), 0.2, LEVEL)
    assert few.reason == (
        "needs at least 11 labelled answers even if every answer is correct; there are 10"
    )
    nearly = threshold_by_line(np.zeros(40), np.arange(40) < 6, 0.2, LEVEL)
    assert (nearly.kept, nearly.wrong, nearly.allowed) == (40, 6, 3)
    assert nearly.reason == "6 of the 40 highest-ranked answers are wrong, at most 3 may be"


def test_answers_without_a_score_are_neither_ranked_nor_kept():
    score, wrong = np.arange(40.0), np.zeros(40, dtype=bool)
    score[::2], wrong[::2] = np.nan, True
    test = threshold_by_line(score, wrong, 0.2, LEVEL)
    assert (test.n, test.kept, test.wrong, test.threshold) == (20, 20, 0, 1.0)
    nothing = threshold_by_line(np.full(40, np.nan), wrong, 0.2, LEVEL)
    assert (nothing.n, nothing.threshold) == (0, None)


def test_each_rate_is_tested_by_itself():
    score = np.arange(200.0)
    wrong = np.arange(200) % np.where(score > 80, 12, 2) == 0
    tests = find_thresholds(score, wrong, NONE, [0.3, 0.05, 0.2], LEVEL)
    assert [test.error_rate for test in tests] == [0.05, 0.2, 0.3]
    alone = [threshold_by_line(score, wrong, rate, LEVEL).threshold for rate in (0.05, 0.2, 0.3)]
    assert [test.threshold for test in tests] == [alone[0], *map(pytest.approx, alone[1:])]
    assert alone[0] is None and alone[1] > alone[2]


def test_a_rate_without_a_threshold_takes_that_of_a_smaller_one():
    """The highest value is wrong: 45 % is tested there first, 10 % from the next value on."""
    unlabelled, score = np.repeat([2.0, 1.0], [10, 110]), np.repeat([2.0, 1.0], [10, 190])
    wrong = score == 2.0
    assert threshold_by_values(score, wrong, unlabelled, 0.45, LEVEL).threshold is None
    tests = find_thresholds(score, wrong, unlabelled, [0.45, 0.1], LEVEL)
    rates = [(round(test.threshold, 9), test.error_rate, test.tested_rate) for test in tests]
    assert rates == [(1.0, 0.1, 0.1), (1.0, 0.45, 0.1)]


def test_of_many_labels_the_first_are_tested():
    n = MAX_LABELS + 50
    test = find_thresholds(np.zeros(n), np.arange(n) >= MAX_LABELS, NONE, [0.05], LEVEL)[0]
    assert (test.n, test.kept, test.wrong) == (MAX_LABELS, MAX_LABELS, 0)


def test_few_values_are_tested_one_by_one_from_the_top():
    values = np.array([0.9, 0.8, 0.5, 0.2])
    unlabelled = np.repeat(values, [10, 40, 30, 20])
    score = np.repeat(values, [20, 80, 60, 40])
    wrong = np.concatenate(
        [np.arange(20) < 9, np.arange(80) < 3, np.arange(60) < 13, np.arange(40) < 30]
    )
    test = find_thresholds(score, wrong, unlabelled, [0.2], LEVEL)[0]
    # 3 l / n = 3 * 10.3 / 200 = .15: the first value (.1) does not test, from the second on:
    p_values = [binomtest(k, n, 0.2, "less").pvalue for k, n in ((12, 100), (25, 160), (55, 200))]
    assert [p <= LEVEL for p in p_values] == [True, True, False]
    assert test.guaranteed == pytest.approx((0.8, 0.5))
    assert (test.kept, test.wrong) == (160, 25)
    assert binomtest(test.allowed, 160, 0.2, "less").pvalue <= LEVEL
    assert binomtest(test.allowed + 1, 160, 0.2, "less").pvalue > LEVEL


def test_scores_that_differ_in_their_last_bits_are_ties():
    """As the same score does where it is computed alone or among others."""
    rng = np.random.default_rng(1)
    score = np.repeat(rng.random(10), 20)
    copies = score + rng.integers(-2, 3, 200) * np.spacing(score)
    wrong = rng.random(200) < 0.05
    (exact,), (noisy,) = (
        find_thresholds(values, wrong, NONE, [0.2], LEVEL) for values in (score, copies)
    )
    assert exact == noisy and exact.kept % 20 == 0
    for values in (score, copies):
        assert (values >= exact.threshold).sum() == exact.kept
    # In saturated answers, differences of a millionth of 1 - p are none of these.
    top = 1 - 1e-9 * (1 + np.arange(50) / 100)
    assert len(np.unique(rounded(top))) == 50


@pytest.mark.parametrize("scale", [1.0, 1e-3, 37.0, -1.0])
def test_a_threshold_keeps_its_own_score_or_drops_it_to_the_last_bit(scale):
    score = np.random.default_rng(7).random(200_000) * scale
    assert (lowered(rounded(score)) <= score).all()
    assert (raised(rounded(score)) > score).all()


def test_the_first_value_that_fails_is_the_last():
    unlabelled = np.repeat([3.0, 2.0, 1.0], 40)
    wrong = np.concatenate([np.arange(60) < 20, np.zeros(120, dtype=bool)])
    test = threshold_by_values(np.repeat([3.0, 2.0, 1.0], 60), wrong, unlabelled, 0.2, LEVEL)
    assert test.threshold is None
    assert test.reason.startswith("20 of the 60 highest-ranked answers are wrong, at most 7 may be")


def test_with_few_labels_the_first_value_may_keep_fewer():
    """60 labels are fewer than 10 l = 103 at 20 %: it starts at 1.5 l / n = .26 of the answers."""
    unlabelled = np.repeat([2.0, 1.0], [30, 70])
    score, wrong = np.repeat([2.0, 1.0], [20, 40]), np.r_[np.zeros(20, bool), np.ones(40, bool)]
    assert threshold_by_values(score, wrong, unlabelled, 0.2, LEVEL).guaranteed == (2.0,)


@pytest.mark.parametrize(
    ("n_values", "n_unlabelled", "by_values"), [(19, 100, 1), (20, 100, 0), (2, 99, 0)]
)
def test_unlabelled_answers_alone_say_whether_values_are_few(n_values, n_unlabelled, by_values):
    score = np.arange(50) % 2 * 1.0
    wrong = score == 0
    unlabelled = np.arange(n_unlabelled) % n_values
    test = find_thresholds(score, wrong, unlabelled, [0.2], LEVEL)[0]
    other = threshold_by_values if by_values else threshold_by_line
    arguments = (score, wrong, unlabelled) if by_values else (score, wrong)
    expected = other(*arguments, 0.2, LEVEL)
    assert test.guaranteed == pytest.approx(expected.guaranteed)
    assert replace(test, guaranteed=()) == replace(expected, guaranteed=())


def test_with_many_labels_those_of_the_fit_choose_the_start():
    rng = np.random.default_rng(2)
    score, fitted_score = rng.random(520), rng.random(100)
    wrong, fitted_wrong = (rng.random(len(x)) > 0.6 + 0.4 * x for x in (score, fitted_score))
    fitted = fitted_score, fitted_wrong
    test = find_thresholds(score, wrong, NONE, [0.2], LEVEL, fitted=fitted)[0]
    guaranteed = []
    for value in fitted_sequence(*fitted, 520, 0.2, LEVEL):
        kept = score >= value
        if binomtest(int(wrong[kept].sum()), int(kept.sum()), 0.2, "less").pvalue > LEVEL:
            break
        guaranteed.append(value)
    assert test.guaranteed == pytest.approx(guaranteed) and len(guaranteed) > 3
    by_line = find_thresholds(score, wrong, NONE, [0.2], LEVEL)[0]
    few = fitted_score[:79], fitted_wrong[:79]
    assert find_thresholds(score, wrong, NONE, [0.2], LEVEL, fitted=few)[0] == by_line != test
