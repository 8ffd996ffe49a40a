"""The bootstrap draws whole groups within their task, and the same for the same names."""

import numpy as np
import polars as pl
import pytest

from tracecal.analyse.bootstrap import group_counts, interval

ANSWERS = pl.DataFrame({"task": ["b", "a", "a", "b", "a"], "group_id": ["g", "g", "h", "k", "g"]})


def draws(answers=ANSWERS, count=400, seed=1):
    return group_counts(answers, seed, count)


def test_members_of_a_group_stand_or_fall_together():
    weights = draws()
    assert (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, 0] != weights[:, 1]).any(), "the same name in another task is another group"


def test_each_task_keeps_its_number_of_groups():
    weights = draws()
    assert (weights[:, 0] + weights[:, 3] == 2).all()
    assert (weights[:, 1] + weights[:, 2] == 2).all()


def test_every_group_is_drawn_as_often_on_average():
    np.testing.assert_allclose(draws(count=4000).mean(axis=0), 1, atol=0.05)


def test_the_seed_decides_the_draws():
    assert (draws(seed=1) == draws(seed=1)).all()
    assert (draws(seed=1) != draws(seed=2)).any()


def test_a_task_is_drawn_alike_alone_and_beside_others():
    alone = ANSWERS.filter(task="a")
    np.testing.assert_array_equal(draws(alone), draws()[:, [1, 2, 4]])


def test_intervals_leave_out_what_is_undefined():
    assert interval([None, None], 0.95) == (None, None, 0)
    assert interval([None, *range(101)], 0.95) == (pytest.approx(2.5), pytest.approx(97.5), 101)
    assert interval(np.arange(101.0), 0.5)[:2] == (25, 75)
