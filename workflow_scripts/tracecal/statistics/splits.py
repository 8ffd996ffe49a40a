"""Random calibration and evaluation splits of a task's evaluation examples, whole groups at a time.

Translations or variants of one question share a `group_id`. A fit on one of them leaks information
about the others, so no group is on both sides of a split.
"""

import numpy as np
import polars as pl

from tracecal.errors import InputError
from tracecal.io.randomness import seeded


def make_splits(
    examples: pl.DataFrame, task: str, seed: int, count: int, share: float
) -> pl.DataFrame:
    """Draw `count` seeded orders of the groups of `examples`, cut at `share`.

    `examples` has `example_id` and `group_id`. The result has `example_id`, `split`, `rank` (of the
    example's group in the seeded order) and `part`. It depends on neither the model, nor the
    estimator, nor the order of `examples`. Raises `InputError` where several examples all belong to
    one group.
    """
    # Groups are numbered by their first examples, so that single examples are numbered by their
    # ids, whatever the names of their groups.
    number = pl.col("example_id").min().over("group_id").rank("dense") - 1
    numbered = examples.sort("example_id").select("example_id", group=number.cast(pl.Int64))
    n_groups = numbered["group"].n_unique()
    if n_groups == 1 < numbered.height:
        raise InputError(
            f"all {numbered.height} evaluation examples of {task} share one group_id, so none can "
            "be evaluated without being calibrated on. Give rows that are not variants of each "
            "other group ids of their own."
        )
    splits = []
    for split in range(count):
        rank = np.empty(n_groups, dtype=np.int64)
        rank[seeded(seed, task, split).permutation(n_groups)] = np.arange(n_groups)
        ranks = pl.Series(rank).gather(numbered["group"])
        splits.append(numbered.select("example_id", split=pl.lit(split, pl.Int64), rank=ranks))
    return cut(pl.concat(splits), share)


def cut(splits: pl.DataFrame, share: float) -> pl.DataFrame:
    """Recompute `part` from `rank`: the first groups of each split calibrate."""
    ends = {
        split: calibration_end(rows["rank"].to_numpy(), share)
        for (split,), rows in splits.partition_by("split", as_dict=True).items()
    }
    end = pl.col("split").replace_strict(ends, return_dtype=pl.Int64)
    part = pl.when(pl.col("rank") < end).then(pl.lit("calibration"))
    return splits.with_columns(part=part.otherwise(pl.lit("evaluation")))


def calibration_end(ranks: np.ndarray, share: float) -> int:
    """Return how many groups calibrate: those whose number of examples is nearest to share * n.

    `ranks` [n] are the ranks of the examples' groups, from 0. Of two numbers of examples that are
    equally near it takes round(share * n), where that is one of them, and else the smaller.

    >>> calibration_end(np.array([0, 1, 1, 2, 3]), 0.5)
    2
    """
    target = share * len(ranks)
    sizes = np.cumsum(np.append(0, np.bincount(ranks)))
    nearest = np.flatnonzero(np.abs(sizes - target) == np.abs(sizes - target).min())
    rounded = nearest[sizes[nearest] == round(target)]
    return int((rounded if len(rounded) else nearest)[0])


def calibration_sizes(splits: pl.DataFrame) -> tuple[int, int]:
    """Return the number of examples in the smallest and the largest calibration part."""
    sizes = splits.group_by("split").agg((pl.col("part") == "calibration").sum())["part"]
    return sizes.min(), sizes.max()
