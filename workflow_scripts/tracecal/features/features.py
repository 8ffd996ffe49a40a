"""The features of an answer: TRACE's operators and TRACE+'s inputs (paper, appendix B)."""

from collections.abc import Callable, Iterable
from functools import cache, partial

import numpy as np
import polars as pl

from tracecal.features import kernels
from tracecal.features import operators as op
from tracecal.features.statistics import STATISTICS, statistics

H = pl.col("entropy")
ROWS_AT_ONCE = 2**18
SMALLEST = 1e-9  # nats; smaller amounts hardly differ on logarithms
# Statistics of a trace, each computed once: the column it is computed from, and how.
MEASURED: dict[str, tuple[str, op.Kernel]] = {
    "length": ("surprisal", kernels.length),
    "decayed_entropy": ("entropy", partial(kernels.decayed, decay=op.DECAY)),
    "window_entropy": ("entropy", partial(kernels.window_peak, window=op.WINDOW)),
    "length_normalised_surprisal": (
        "surprisal",
        partial(kernels.length_normalised, exponent=op.LENGTH_EXPONENT),
    ),
    "mean_entropy": ("entropy", kernels.mean),
    "max_entropy": ("entropy", kernels.largest),
    "first3_entropy": ("entropy", partial(kernels.first_mean, k=3)),
    "entropy_slope": ("entropy", kernels.slope),
    "decayed_entropy_4": ("entropy", partial(kernels.decayed, decay=4)),
    "decayed_surprisal_2": ("surprisal", partial(kernels.decayed, decay=2)),
    "decayed_surprisal_4": ("surprisal", partial(kernels.decayed, decay=4)),
    "max_surprisal": ("surprisal", kernels.largest),
    "mean_surprisal": ("surprisal", kernels.mean),
    "surprisal_slope": ("surprisal", kernels.slope),
    "surprisal_r_squared": ("surprisal", kernels.r_squared),
    "low_prob_token_rate": (
        "surprisal",
        partial(kernels.rate, condition=lambda s: np.exp(-s) < op.LOW_PROBABILITY),
    ),
}


def _same(x: np.ndarray) -> np.ndarray:
    return x


def _confidence(x: np.ndarray) -> np.ndarray:
    return np.exp(-x)


def _log_confidence(x: np.ndarray) -> np.ndarray:
    """-ln(x + 1e-9) of amounts x >= 0 (nats): it tells those near 0 apart, where exp(-x) is 1."""
    return -np.log(x + SMALLEST)


RISK = ("decayed_entropy", "window_entropy", "length_normalised_surprisal")
# Features: a function of arrays, and those of MEASURED and STATISTICS that it takes.
FEATURES: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "length": (_same, ("length",)),
    "decayed_entropy": (_same, ("decayed_entropy",)),
    "window_entropy": (_same, ("window_entropy",)),
    "length_normalised_surprisal": (_same, ("length_normalised_surprisal",)),
    "trace_risk": (op.mixture, RISK),
    "mean_entropy": (_same, ("mean_entropy",)),
    "max_entropy": (_same, ("max_entropy",)),
    "first3_entropy_conf": (_confidence, ("first3_entropy",)),
    "mean_entropy_conf": (_confidence, ("mean_entropy",)),
    "log_length": (np.log, ("length",)),
    "entropy_slope": (_same, ("entropy_slope",)),
    "decayed_entropy_conf_2": (_confidence, ("decayed_entropy",)),
    "decayed_entropy_conf_4": (_confidence, ("decayed_entropy_4",)),
    "decayed_surprisal_conf_2": (_confidence, ("decayed_surprisal_2",)),
    "decayed_surprisal_conf_4": (_confidence, ("decayed_surprisal_4",)),
    "min_prob": (_confidence, ("max_surprisal",)),
    "len_norm_logp": (_confidence, ("mean_surprisal",)),
    "log_likelihood": (lambda mean, length: -mean * length, ("mean_surprisal", "length")),
    "low_prob_token_rate": (_same, ("low_prob_token_rate",)),
    "first3_entropy_log_conf": (_log_confidence, ("first3_entropy",)),
    "mean_entropy_log_conf": (_log_confidence, ("mean_entropy",)),
    "decayed_entropy_log_conf_2": (_log_confidence, ("decayed_entropy",)),
    "decayed_entropy_log_conf_4": (_log_confidence, ("decayed_entropy_4",)),
    "decayed_surprisal_log_conf_2": (_log_confidence, ("decayed_surprisal_2",)),
    "decayed_surprisal_log_conf_4": (_log_confidence, ("decayed_surprisal_4",)),
    "total_surprisal_log_conf": (
        lambda mean, length: _log_confidence(mean * length),
        ("mean_surprisal", "length"),
    ),
    "mean_surprisal_log_conf": (_log_confidence, ("mean_surprisal",)),
    "max_surprisal_log_conf": (_log_confidence, ("max_surprisal",)),
    "surprisal_slope": (_same, ("surprisal_slope",)),
    "surprisal_r_squared": (_same, ("surprisal_r_squared",)),
    **{name: (_same, (name,)) for name in STATISTICS},
}
# Those that a single answer's arrays give without the expressions of STATISTICS.
SINGLE_FEATURES = frozenset(
    name for name, (_, taken) in FEATURES.items() if {*taken} <= {*MEASURED}
)
ENTROPY_FEATURES = frozenset(
    name
    for name, (_, taken) in FEATURES.items()
    if any(one in STATISTICS or MEASURED[one][0] == "entropy" for one in taken)
)


def single_features(
    names: Iterable[str], surprisal: np.ndarray, entropies: np.ndarray
) -> list[np.ndarray]:
    """The features `names` (of OF_ONE) of one answer's surprisals [T] with each of several
    entropies [n, T]: each [n], or [1] where it is that of all.

    >>> single_features(["mean_entropy"], np.array([0.5, 0.1]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    [array([1.5, 0.5])]
    """
    trace = {"surprisal": surprisal[None], "entropy": entropies}

    @cache
    def measured(name: str) -> np.ndarray:
        column, kernel = MEASURED[name]
        return kernel(trace[column])

    return [of(*map(measured, taken)) for of, taken in map(FEATURES.get, names)]


def answer_features(traces: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and one Float64 column per feature, one row per answer."""
    # In parts, so that intermediate statistics take little memory.
    parts = traces.iter_slices(ROWS_AT_ONCE) if traces.height else [traces]
    return pl.concat(map(_features, parts))


def _features(traces: pl.DataFrame) -> pl.DataFrame:
    by_length = traces["surprisal"].list.len().arg_sort()
    measured = traces[by_length].select(
        "example_id", _measured("surprisal"), _measured("entropy"), statistics=statistics(H)
    )
    measured = measured.unnest("surprisal", "entropy", "statistics")
    arrays = {name: measured[name].to_numpy() for name in measured.columns[1:]}
    features = {name: of(*map(arrays.get, taken)) for name, (of, taken) in FEATURES.items()}
    frame = pl.DataFrame({"example_id": measured["example_id"], **features}, nan_to_null=True)
    return frame[by_length.arg_sort()]


def _measured(column: str) -> pl.Expr:
    """A struct of those of MEASURED that are computed from a column."""
    names = {name: kernel for name, (taken, kernel) in MEASURED.items() if taken == column}

    def together(values: np.ndarray) -> np.ndarray:
        return np.column_stack([kernel(values) for kernel in names.values()])

    return op.per_answer(pl.col(column), together, list(names))
