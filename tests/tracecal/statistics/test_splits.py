"""Splits: seeded, the same for every model, independent of row order, whole groups at a time."""

from itertools import accumulate

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.errors import InputError
from tracecal.io.randomness import seeded
from tracecal.statistics.splits import calibration_sizes, cut, make_splits

IDS = [f"example-{index}" for index in range(101)]
SIZES = st.lists(st.integers(1, 9), min_size=2, max_size=30)
SHARES = st.floats(0.01, 0.99)


def alone(ids=IDS):
    """Examples that are each a group of their own."""
    return pl.DataFrame({"example_id": ids, "group_id": [f"of {one}" for one in ids]})


def grouped(sizes):
    """Examples in groups of the given sizes, whose ids tell nothing of their groups."""
    owners = [f"g{index}" for index, size in enumerate(sizes) for _ in range(size)]
    order = np.random.default_rng(len(owners)).permutation(len(owners))
    ids = [f"e{place:03}" for place in order]
    return pl.DataFrame({"example_id": ids, "group_id": owners})


def test_each_split_ranks_every_single_example_once_and_cuts_at_the_rounded_share():
    splits = make_splits(alone(), "task", seed=1, count=20, share=0.35)
    assert splits.height == 20 * 101
    assert splits.schema["rank"] == pl.Int64
    for _, one in splits.group_by("split"):
        assert sorted(one["rank"]) == list(range(101))
        calibration = one.filter(part="calibration")
        assert calibration["rank"].max() == calibration.height - 1 == round(0.35 * 101) - 1
    assert calibration_sizes(splits) == (35, 35)


def test_single_examples_stand_in_the_order_that_was_drawn_before_groups_counted():
    names = {one: f"z{index}" for index, one in enumerate(reversed(IDS))}
    renamed = pl.DataFrame({"example_id": IDS, "group_id": [names[one] for one in IDS]})
    ranks = make_splits(renamed, "task", 1, 1, 0.35).sort("rank")["example_id"].to_list()
    ordered = sorted(IDS)
    assert ranks == [ordered[place] for place in seeded(1, "task", 0).permutation(101)]


@given(n=st.integers(2, 60), share=SHARES)
def test_single_examples_are_cut_as_python_rounds(n, share):
    splits = make_splits(alone(IDS[:n]), "task", 1, 2, share)
    assert calibration_sizes(splits) == (round(share * n), round(share * n))


@given(sizes=SIZES, share=SHARES, task=st.sampled_from("ab"))
def test_no_group_stands_on_both_sides_and_the_part_is_as_near_the_share_as_groups_allow(
    sizes, share, task
):
    examples = grouped(sizes)
    splits = make_splits(examples, task, 7, 4, share).join(examples, on="example_id")
    for _, one in splits.group_by("split"):
        groups = one.group_by("group_id").agg(
            pl.col("rank").n_unique().alias("ranks"),
            pl.col("part").n_unique().alias("parts"),
            pl.col("rank", "part").first(),
            size=pl.len(),
        )
        assert groups["ranks"].to_list() == groups["parts"].to_list() == [1] * len(sizes)
        ordered = groups.sort("rank")
        assert ordered["rank"].to_list() == list(range(len(sizes)))
        assert ordered["part"].to_list() == sorted(ordered["part"])
        found = one.filter(part="calibration").height
        prefixes = list(accumulate(ordered["size"], initial=0))
        wished = share * one.height
        nearest = min(abs(size - wished) for size in prefixes)
        assert abs(found - wished) == nearest
        assert found == min(size for size in prefixes if abs(size - wished) == nearest) or (
            found == round(wished)
        )


@given(order=st.permutations(range(12)), sizes=st.sampled_from([[1] * 12, [3, 1, 2, 5, 1]]))
def test_row_order_changes_nothing(order, sizes):
    examples = grouped(sizes)
    expected = make_splits(examples, "task", 1, 3, 0.35)
    assert make_splits(examples[list(order)], "task", 1, 3, 0.35).equals(expected)


def test_seeds_tasks_and_splits_differ():
    def ranks(task, seed, split):
        splits = make_splits(alone(), task, seed, 3, 0.35).filter(split=split)
        return tuple(splits.sort("example_id")["rank"])

    drawn = {ranks(task, seed, split) for task in "ab" for seed in (1, 2) for split in (0, 1, 2)}
    assert len(drawn) == 12


def test_more_splits_leave_the_first_as_they_were():
    more = make_splits(alone(), "task", 1, 5, 0.35).filter(pl.col("split") < 3)
    assert more.equals(make_splits(alone(), "task", 1, 3, 0.35))


@given(share=SHARES, other=SHARES, sizes=SIZES)
def test_cutting_anew_keeps_the_order_and_larger_parts_hold_the_smaller(share, other, sizes):
    examples = grouped(sizes)
    splits = make_splits(examples, "task", 1, 3, share)
    assert cut(splits, other).equals(make_splits(examples, "task", 1, 3, other))
    small, large = (
        set(cut(splits, size).filter(part="calibration").select("split", "example_id").iter_rows())
        for size in sorted([share, other])
    )
    assert small <= large


def test_examples_of_one_group_cannot_be_split():
    with pytest.raises(InputError, match=r"all 5 evaluation examples of task share one group_id"):
        make_splits(grouped([5]), "task", 1, 3, 0.35)
