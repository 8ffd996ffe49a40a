"""The bootstrap draws whole groups within their task, and the same for the same names."""

import numpy as np
import polars as pl

from tracecal.analyse.resample import group_weights, interval
from tracecal.randomness import seeded

ANSWERS = pl.DataFrame({"task": ["b", "a", "a", "b", "a"], "group_id": ["g", "g", "h", "k", "g"]})


def draws(answers=ANSWERS, count=400, name="x"):
    return np.array(list(group_weights(answers, seeded(name), count)))


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


def test_the_name_decides_the_draws():
    assert (draws(name="x") == draws(name="x")).all()
    assert (draws(name="x") != draws(name="y")).any()
    assert seeded("a", 1).integers(1 << 30) == seeded("a", 1).integers(1 << 30)


def test_intervals_leave_out_what_is_undefined():
    assert interval([None, None]) == (None, None)
    assert interval([None, *range(101)]) == (2.5, 97.5)
