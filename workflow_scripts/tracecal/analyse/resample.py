"""Bootstrap resamples of groups of answers, and intervals over them."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

RESAMPLES = 1000
TAILS = (2.5, 97.5)


def group_weights(
    answers: pl.DataFrame, rng: np.random.Generator, count: int
) -> Iterator[np.ndarray]:
    """`count` bootstrap resamples of `answers` as how often each of its rows is drawn, [n].

    Whole groups are drawn (`task`, `group_id`: translations or variants of one another are not
    independent), as many in each task as it has.
    """
    coded = answers.select((pl.struct("task", "group_id").rank("dense") - 1).alias("group"), "task")
    group = coded["group"].to_numpy()
    groups = coded.unique().sort("group")["task"].rle().struct.field("len").to_list()
    starts = np.cumsum([0, *groups])
    for _ in range(count):
        drawn = [
            start + rng.integers(size, size=size)
            for start, size in zip(starts, groups, strict=False)
        ]
        yield np.bincount(np.concatenate(drawn), minlength=starts[-1])[group]


def interval(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The 95 % percentile interval of the defined values; null where there are none."""
    defined = [value for value in values if value is not None]
    if not defined:
        return None, None
    low, high = np.percentile(defined, TAILS)
    return float(low), float(high)
