"""Features of answers: TRACE's operators and TRACE+'s inputs (paper, appendix B).

`trace_inputs(names, surprisal, entropy)` computes any of them for answers of one length: one answer
of a server, or a block of a file's. `input_matrix` cuts a frame into such blocks, and
`answer_features` makes a frame of all features.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from tracecal.features import kernels
from tracecal.features import operators as op
from tracecal.features.kernels import STATISTICS, statistics

BLOCK = 2**15  # tokens, few enough to stay in a processor's cache
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
    "first3_entropy": ("entropy", partial(kernels.first_mean, k=op.K)),
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
    "first_surprisal": ("surprisal", lambda s: s[:, 0]),
    "mean_probability": ("surprisal", lambda s: kernels.mean(np.exp(-s))),
    "probability_slope": ("surprisal", lambda s: kernels.slope(np.exp(-s))),
    "high_prob_token_rate": (
        "surprisal",
        partial(kernels.rate, condition=lambda s: np.exp(-s) > op.HIGH_PROBABILITY),
    ),
    "total_surprisal": ("surprisal", partial(kernels.length_normalised, exponent=0)),
    "entropy_variance": ("entropy", kernels.variance),
    "last3_entropy": ("entropy", partial(kernels.last_mean, k=op.K)),
    **dict.fromkeys(STATISTICS, ("entropy", statistics)),
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
# The estimators' scores, of the paper's appendix D and section 3.4: larger is more confident.
SCORES: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
    "first_token_prob": (_confidence, ("first_surprisal",)),
    "mean_prob": (_same, ("mean_probability",)),
    "len_norm_logp": (_confidence, ("mean_surprisal",)),
    "seq_logp": (_confidence, ("total_surprisal",)),
    "min_prob": (_confidence, ("max_surprisal",)),
    "high_prob_token_rate": (_same, ("high_prob_token_rate",)),
    "mean_token_entropy": (np.negative, ("mean_entropy",)),
    "max_token_entropy": (np.negative, ("max_entropy",)),
    "first_k_entropy": (np.negative, ("first3_entropy",)),
    "last_k_entropy": (np.negative, ("last3_entropy",)),
    "windowed_entropy": (np.negative, ("window_entropy",)),
    "entropy_variance": (np.negative, ("entropy_variance",)),
    "entropy_slope": (np.negative, ("entropy_slope",)),
    "token_prob_slope": (_same, ("probability_slope",)),
    "length_alone": (lambda length: -np.log(length), ("length",)),
    "trace": (lambda *risk: np.exp(-op.mixture(*risk)), RISK),
    "operator_d": (np.negative, ("decayed_entropy",)),
    "operator_m": (np.negative, ("window_entropy",)),
    "operator_l": (np.negative, ("length_normalised_surprisal",)),
}
INPUTS = {f"features.{name}": of for name, of in FEATURES.items()} | {
    f"scores.{name}": of for name, of in SCORES.items()
}
ENTROPY_INPUTS = frozenset(
    name
    for name, (_, arguments) in INPUTS.items()
    if any(MEASURED[a][0] == "entropy" for a in arguments)
)


def trace_inputs(
    names: Sequence[str], surprisal: np.ndarray | None, entropy: np.ndarray | None
) -> np.ndarray:
    """Compute the INPUTS `names` of m answers of T tokens, [k, m, names]; NaN where undefined.

    `surprisal` is [m, T]; `entropy` [k, m, T] holds k candidates of the entropies. None: unknown.

    >>> trace_inputs(["features.mean_entropy"], None, np.array([[[2.0, 1.0]], [[0.0, 1.0]]]))
    array([[[1.5]],
    <BLANKLINE>
           [[0.5]]])
    """
    shape = (1, len(surprisal)) if entropy is None else entropy.shape[:2]
    flat = None if entropy is None else entropy.reshape(-1, entropy.shape[2])
    tables: dict[Any, np.ndarray] = {}

    def measure(name: str) -> np.ndarray:
        if name in tables:
            return tables[name]
        column, kernel = MEASURED[name]
        values = surprisal if column == "surprisal" else flat
        if values is None:
            table = np.full(shape, np.nan)
        elif kernel is statistics:
            for index, values in enumerate(kernel(flat).T):
                tables[STATISTICS[index]] = values.reshape(shape)
            return tables[name]
        else:
            table = kernel(values) if column == "surprisal" else kernel(values).reshape(shape)
        tables[name] = table
        return table

    x = np.empty((*shape, len(names)))
    for index, name in enumerate(names):
        function, arguments = INPUTS[name]
        x[..., index] = function(*map(measure, arguments))
    x[~np.isfinite(x)] = np.nan
    return x


def blocks(
    frame: pl.DataFrame, columns: Sequence[str]
) -> Iterator[tuple[np.ndarray, list[np.ndarray | None]]]:
    """Cut a frame into rows whose lists have one length: the rows [m], and each column's [m, T].

    None for a column without lists there.
    """
    lists = [_flat(frame[column]) for column in columns]
    lengths = np.column_stack([length for _, length, _ in lists]).astype(np.int64)
    key = np.zeros(len(lengths), np.int64)
    for column in lengths.T:
        key = key * (column.max(initial=0) + 1) + column
    order = np.argsort(key, kind="stable")
    ends = np.flatnonzero(np.diff(key[order], append=-1)) + 1
    for first, end in zip(np.append(0, ends)[:-1], ends, strict=True):
        sizes = lengths[order[first]]
        step = max(1, BLOCK // max(1, sizes.max()))
        for begin in range(first, end, step):
            rows = order[begin : min(begin + step, end)]
            yield (
                rows,
                [
                    values[starts[rows][:, None] + np.arange(size)].astype(float) if size else None
                    for (values, _, starts), size in zip(lists, sizes, strict=True)
                ],
            )


def _flat(lists: pl.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of a list column, end to end, and the length and start of each row's."""
    lengths = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
    values = lists.explode(empty_as_null=False, keep_nulls=False).to_numpy()
    return values, lengths, np.cumsum(lengths) - lengths


def input_matrix(traces: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Compute the INPUTS `names` of answers (columns `surprisal` and `entropy`), [n, names]."""
    x = np.full((traces.height, len(names)), np.nan)
    for rows, (s, h) in blocks(traces, ("surprisal", "entropy")):
        if s is not None or h is not None:
            x[rows] = trace_inputs(names, s, None if h is None else h[None])[0]
    return x


def answer_features(traces: pl.DataFrame) -> pl.DataFrame:
    """Compute a Float64 column per feature beside `example_id`, a row per answer.

    >>> traces = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.5]], "entropy": [[2.0]]})
    >>> answer_features(traces)["trace_risk"].item()
    1.7000000000000002
    """
    x = input_matrix(traces, [f"features.{name}" for name in FEATURES])
    features = pl.DataFrame(x, [*FEATURES], nan_to_null=True)
    return traces.select("example_id").hstack(features)
