"""Random calibration/evaluation splits of a task's evaluation examples."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tracecal.randomness import seeded


def make_splits(ids: Sequence[str], task: str, seed: int, count: int, share: float) -> pl.DataFrame:
    """`count` seeded orders of `ids`; the first round(share n) of each are for calibration.

    Columns `example_id`, `split`, `rank` (place in the seeded order) and `part`. The same for
    every model and estimator, and whatever the order of `ids`.
    """
    ordered = sorted(ids)
    splits = []
    for split in range(count):
        order = seeded(seed, task, split).permutation(len(ordered))
        rank = np.empty(len(ordered), dtype=np.int64)
        rank[order] = np.arange(len(ordered))
        splits.append(pl.DataFrame({"example_id": ordered, "split": split, "rank": rank}))
    return cut(pl.concat(splits), share)


def cut(splits: pl.DataFrame, share: float) -> pl.DataFrame:
    """`splits` with `part` anew: the first round(share n) ranks of each are for calibration."""
    calibration = round(share * splits["example_id"].n_unique())
    part = pl.when(pl.col("rank") < calibration).then(pl.lit("calibration"))
    return splits.with_columns(part=part.otherwise(pl.lit("evaluation")))
