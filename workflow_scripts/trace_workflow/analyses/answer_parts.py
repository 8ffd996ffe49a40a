"""The labelled parts of answers, and bootstrap intervals of what is measured on them."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tracecal.calibration.resampling import Bootstrap, draw_counts, interval
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet

BOUNDS = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
}


def read_parts(questions: str, labels: str) -> pl.DataFrame:
    """`example_id`, `parent_id`, `group_id`, `part` and `correct` of the parts of answers.

    From the files of a pair, sorted by `example_id`.
    """
    correct = read_parquet(labels, ["example_id", "correct"])
    return evaluated(correct, questions, ["parent_id", "group_id", "part"])


def sample_and_resamples(groups: Sequence[str], bootstrap: Bootstrap) -> np.ndarray:
    """How often each row counts, [1 + resamples, n]: once in the sample, then as drawn."""
    counts = draw_counts(groups, bootstrap.seed, bootstrap.resamples)
    return np.vstack([np.ones((1, len(groups))), counts])


def bounds_of(values: np.ndarray, level: float) -> tuple:
    """The columns BOUNDS of a metric's values [1 + resamples], the sample's first."""
    low, high, n_defined = interval(values[1:], level)
    return None if np.isnan(values[0]) else float(values[0]), low, high, level, n_defined
