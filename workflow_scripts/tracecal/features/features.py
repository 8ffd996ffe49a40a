"""Features of answers: TRACE's operators and TRACE+'s inputs (paper, appendix B).

`answer_features(traces)` computes all of them for a frame of traces, `single_features` some for one
answer. Both take the kernels of MEASURED.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial

import numpy as np
import polars as pl

from tracecal.features import kernels
from tracecal.features import operators as op
from tracecal.features.statistics import STATISTICS, statistics

BATCH = 2**18  # answers; more would take much memory for intermediate statistics
SMALLEST = 1e-9  # nats; smaller amounts hardly differ on logarithms
# Quantities of a trace, each computed once: its column and its kernel.
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
    """-ln(x + 1e-9) of amounts x >= 0 (nats), which separates those near 0, where exp(-x) is 1."""
    return -np.log(x + SMALLEST)


RISK = ("decayed_entropy", "window_entropy", "length_normalised_surprisal")
# A function of arrays, and the names in MEASURED and STATISTICS of its arguments.
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
# Features that need no STATISTICS: `single_features` computes these alone.
SINGLE_FEATURES = frozenset(
    name for name, (_, arguments) in FEATURES.items() if {*arguments} <= {*MEASURED}
)
ENTROPY_FEATURES = frozenset(
    name
    for name, (_, arguments) in FEATURES.items()
    if any(argument in STATISTICS or MEASURED[argument][0] == "entropy" for argument in arguments)
)


def single_features(
    names: Iterable[str], surprisal: np.ndarray, entropies: np.ndarray
) -> list[np.ndarray]:
    """Compute the features `names` (in SINGLE_FEATURES) of one answer.

    It has surprisals [T] and several candidate entropies [n, T]. Each feature is [n], or [1] where
    all candidates share it.

    >>> single_features(["mean_entropy"], np.array([0.5, 0.1]), np.array([[2.0, 1.0], [0.0, 1.0]]))
    [array([1.5, 0.5])]
    """
    trace = {"surprisal": surprisal[None], "entropy": entropies}

    @cache
    def measure(name: str) -> np.ndarray:
        column, kernel = MEASURED[name]
        return kernel(trace[column])

    return [function(*map(measure, arguments)) for function, arguments in map(FEATURES.get, names)]


def answer_features(traces: pl.DataFrame) -> pl.DataFrame:
    """Compute a Float64 column per feature beside `example_id`, a row per answer.

    >>> traces = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.5]], "entropy": [[2.0]]})
    >>> answer_features(traces)["trace_risk"].item()
    1.7000000000000002
    """
    batches = traces.iter_slices(BATCH) if traces.height else [traces]
    return pl.concat(map(_batch_features, batches))


def _batch_features(traces: pl.DataFrame) -> pl.DataFrame:
    by_length = traces["surprisal"].list.len().arg_sort()
    measured = traces[by_length].select(
        "example_id",
        _measure_column("surprisal"),
        _measure_column("entropy"),
        statistics=statistics(pl.col("entropy")),
    )
    measured = measured.unnest("surprisal", "entropy", "statistics")
    arrays = {name: measured[name].to_numpy() for name in measured.columns[1:]}
    features = {
        name: function(*map(arrays.get, arguments))
        for name, (function, arguments) in FEATURES.items()
    }
    frame = pl.DataFrame({"example_id": measured["example_id"], **features}, nan_to_null=True)
    return frame[by_length.arg_sort()]


def _measure_column(column: str) -> pl.Expr:
    """A struct of the quantities of MEASURED that a column gives."""
    kernels_by_name = {
        name: kernel for name, (source, kernel) in MEASURED.items() if source == column
    }

    def stack_kernels(values: np.ndarray) -> np.ndarray:
        return np.column_stack([kernel(values) for kernel in kernels_by_name.values()])

    return op.per_answer(pl.col(column), stack_kernels, list(kernels_by_name))
