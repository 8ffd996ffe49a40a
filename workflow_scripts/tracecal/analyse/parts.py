"""What analyses of parts of answers have in common: what they read, and their intervals."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tracecal.analyse.bootstrap import Bootstrap, draw_counts, interval
from tracecal.storage.files import read_parquet
from tracecal.tasks.roles import evaluated

BOUNDS = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
}


def labelled_parts(questions: str, labels: str) -> pl.DataFrame:
    """`example_id`, `parent_id`, `group_id`, `part` and `correct` of the parts that a model's
    answers have, from the files of a pair; sorted by `example_id`.
    """
    correct = read_parquet(labels, ["example_id", "correct"]).select("example_id", "correct")
    return evaluated(correct, questions, ["parent_id", "group_id", "part"])


def bounded(values: np.ndarray, level: float) -> tuple:
    """The columns BOUNDS of a metric's values [1 + resamples], the sample's first."""
    low, high, defined = interval(values[1:], level)
    return None if np.isnan(values[0]) else float(values[0]), low, high, level, defined


def with_sample(groups: Sequence[str], bootstrap: Bootstrap) -> np.ndarray:
    """How often each row counts, [1 + resamples, n]: once in the sample, then as drawn."""
    drawn = draw_counts(groups, bootstrap.seed, bootstrap.resamples)
    return np.vstack([np.ones((1, len(groups))), drawn])
