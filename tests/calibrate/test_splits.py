"""Splits: seeded, the same for every model, independent of row order."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from tracecal.calibrate.splits import cut, make_splits

IDS = [f"example-{index}" for index in range(101)]


def test_each_split_ranks_every_example_once_and_cuts_at_the_share():
    splits = make_splits(IDS, "task", seed=1, count=20, share=0.35)
    assert splits.height == 20 * 101
    for _, one in splits.group_by("split"):
        assert sorted(one["rank"]) == list(range(101))
        calibration = one.filter(part="calibration")
        assert calibration["rank"].max() == calibration.height - 1 == round(0.35 * 101) - 1


@given(order=st.permutations(IDS[:12]))
def test_row_order_changes_nothing(order):
    expected = make_splits(sorted(order), "task", 1, 3, 0.35)
    assert make_splits(order, "task", 1, 3, 0.35).equals(expected)


def test_seeds_tasks_and_splits_differ():
    def ranks(task, seed, split):
        splits = make_splits(IDS, task, seed, 3, 0.35).filter(split=split)
        return tuple(splits.sort("example_id")["rank"])

    drawn = {ranks(task, seed, split) for task in "ab" for seed in (1, 2) for split in (0, 1, 2)}
    assert len(drawn) == 12


def test_more_splits_leave_the_first_as_they_were():
    more = make_splits(IDS, "task", 1, 5, 0.35).filter(pl.col("split") < 3)
    assert more.equals(make_splits(IDS, "task", 1, 3, 0.35))


@given(share=st.floats(0.01, 0.99), other=st.floats(0.01, 0.99))
def test_cutting_anew_keeps_the_order(share, other):
    splits = make_splits(IDS, "task", 1, 3, share)
    assert cut(splits, other).equals(make_splits(IDS, "task", 1, 3, other))
