"""Pairs of like length, without replacement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.analyses.localized_errors import match_by_task, match_lengths
from tracecal.io.randomness import seeded

lengths = st.lists(st.integers(1, 30), max_size=25).map(np.array)


@given(errors=lengths, correct=lengths, seed=st.integers(0, 9))
def test_no_answer_is_used_twice_and_the_fewer_side_is_used_up(errors, correct, seed):
    first, second = match_lengths(errors, correct, seeded(seed))
    assert len(first) == len(second) == min(len(errors), len(correct))
    assert len(set(first)) == len(set(second)) == len(first)
    assert set(first) <= set(range(len(errors)))
    assert set(second) <= set(range(len(correct)))


@given(errors=lengths.filter(len), correct=lengths.filter(len), seed=st.integers(0, 9))
def test_no_chooser_could_have_had_a_nearer_one_that_nobody_took(errors, correct, seed):
    first, second = match_lengths(errors, correct, seeded(seed))
    gaps = np.abs(errors[first] - correct[second])
    if len(errors) <= len(correct):
        free = np.setdiff1d(np.arange(len(correct)), second)
        choosers, pool = errors[first], correct[free]
    else:
        free = np.setdiff1d(np.arange(len(errors)), first)
        choosers, pool = correct[second], errors[free]
    for chooser, gap in zip(choosers, gaps, strict=True):
        assert all(gap <= abs(chooser - other) for other in pool)


def test_by_hand():
    errors, correct = np.array([10, 3]), np.array([2, 9, 30, 11])
    first, second = match_lengths(errors, correct, seeded("hand"))
    pairs = dict(zip(errors[first].tolist(), correct[second].tolist(), strict=True))
    assert pairs[3] == 2
    assert pairs[10] in (9, 11)


def test_equally_near_answers_are_drawn():
    partners = {
        int(match_lengths(np.array([5]), np.array([4, 6]), seeded(k))[1][0]) for k in range(20)
    }
    assert partners == {0, 1}


def test_pairs_stay_within_their_task():
    task = np.array(["a", "b", "a", "b", "c", "a"])
    is_error = np.array([True, True, False, False, True, False])
    errors, correct = match_by_task(task, np.ones(6), is_error, ~is_error, seeded(0))
    assert (task[errors] == task[correct]).all()
    assert sorted(task[errors].tolist()) == ["a", "b"], "c has no correct answer"


@pytest.mark.parametrize("which", ["errors", "correct"])
def test_nothing_to_match_is_no_pair(which):
    none, some = np.array([], dtype=bool), np.zeros(3, dtype=bool)
    mask = {"errors": some, "correct": some} | {which: ~some}
    errors, correct = match_by_task(
        np.array(["a"] * 3), np.arange(3), mask["errors"], mask["correct"], seeded(0)
    )
    assert len(errors) == len(correct) == len(none)
