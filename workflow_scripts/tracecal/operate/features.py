"""The features of an answer: TRACE's operators and TRACE+'s inputs (paper, appendix B), and the
statistics of Entropy Sentinel.
"""

import numpy as np
import polars as pl

from tracecal.operate import operators as op
from tracecal.operate.statistics import STATISTICS, statistics

S, H = pl.col("surprisal"), pl.col("entropy")

ROWS_AT_ONCE = 2**18

# Statistics of a trace, each computed once.
MEASURED: dict[str, pl.Expr] = {
    "length": S.list.len().cast(pl.Float64),
    "decayed_entropy": op.decayed(H, op.DECAY),
    "window_entropy": op.window_peak(H, op.WINDOW),
    "length_normalised_surprisal": op.length_normalised(S, op.LENGTH_EXPONENT),
    "mean_entropy": op.mean(H),
    "max_entropy": H.list.max().cast(pl.Float64),
    "first3_entropy": op.first_mean(H, 3),
    "entropy_slope": op.slope(H),
    "decayed_entropy_4": op.decayed(H, 4),
    "decayed_surprisal_2": op.decayed(S, 2),
    "decayed_surprisal_4": op.decayed(S, 4),
    "max_surprisal": S.list.max().cast(pl.Float64),
    "mean_surprisal": op.mean(S),
    "low_prob_token_rate": op.rate(S, lambda s: np.exp(-s) < op.LOW_PROBABILITY),
}


def _confidence(measured: str) -> pl.Expr:
    return (-pl.col(measured)).exp()


# Features, computed from MEASURED and STATISTICS.
FEATURES: dict[str, pl.Expr] = {
    "length": pl.col("length"),
    "decayed_entropy": pl.col("decayed_entropy"),
    "window_entropy": pl.col("window_entropy"),
    "length_normalised_surprisal": pl.col("length_normalised_surprisal"),
    "trace_risk": op.mixture(
        *map(pl.col, ("decayed_entropy", "window_entropy", "length_normalised_surprisal"))
    ),
    "mean_entropy": pl.col("mean_entropy"),
    "max_entropy": pl.col("max_entropy"),
    "first3_entropy_conf": _confidence("first3_entropy"),
    "mean_entropy_conf": _confidence("mean_entropy"),
    "log_length": pl.col("length").log(),
    "entropy_slope": pl.col("entropy_slope"),
    "decayed_entropy_conf_2": _confidence("decayed_entropy"),
    "decayed_entropy_conf_4": _confidence("decayed_entropy_4"),
    "decayed_surprisal_conf_2": _confidence("decayed_surprisal_2"),
    "decayed_surprisal_conf_4": _confidence("decayed_surprisal_4"),
    "min_prob": _confidence("max_surprisal"),
    "len_norm_logp": _confidence("mean_surprisal"),
    "low_prob_token_rate": pl.col("low_prob_token_rate"),
    **{name: pl.col(name) for name in STATISTICS},
}


def answer_features(traces: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and one Float64 column per feature, one row per answer."""
    # In parts, so that intermediate statistics take little memory.
    parts = traces.iter_slices(ROWS_AT_ONCE) if traces.height else [traces]
    return pl.concat(map(_features, parts))


def _features(traces: pl.DataFrame) -> pl.DataFrame:
    by_length = traces["surprisal"].list.len().arg_sort()
    measured = traces[by_length].select("example_id", statistics=statistics(H), **MEASURED)
    return measured.unnest("statistics").select("example_id", **FEATURES)[by_length.arg_sort()]
