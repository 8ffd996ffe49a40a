"""TRACE and its single operators: confidence from localised risk (paper, section 3.4).

TRACE+ has no function here: it is the calibration protocol fitted on the features named in the
registry.
"""

import numpy as np
import polars as pl

from tracecal.io.files import read_parquet

SCORES: dict[str, pl.Expr] = {
    "trace": np.exp(-pl.col("trace_risk")),
    "operator_d": -pl.col("decayed_entropy"),
    "operator_m": -pl.col("window_entropy"),
    "operator_l": -pl.col("length_normalised_surprisal"),
}


def answers(features: str) -> pl.DataFrame:
    """The trace features of a task's evaluated answers."""
    return read_parquet(features, needed=["example_id", "trace_risk"])
