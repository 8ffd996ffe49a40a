"""Features of answers: TRACE's operators and TRACE+'s inputs (paper, section 3.4 and appendix B).

1. Operators and statistics, such as `mean` and `decayed`, take the values of answers of one length,
   [answers, T], T >= 1, in nats unless they say otherwise, and give one number each, [answers].
   `operators` has those that take Polars expressions.
2. `trace_inputs(names, surprisal, entropy)` computes features and scores for answers of one length:
   one answer of a server, or a block of a file's. `input_matrix` cuts a frame into such blocks,
   `answer_features` makes a frame of all features, `compute_inputs` of the inputs of estimators,
   and `compute_bounded_inputs` of their bounds, too. Inputs are named as in the calibration
   protocol: `features.<name>` and `scores.<estimator>`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import polars as pl

Values = TypeVar("Values", pl.Expr, np.ndarray)
Kernel = Callable[[np.ndarray], np.ndarray]
Extend = Callable[[pl.DataFrame], pl.DataFrame]  # adds the columns of a user's own inputs
UNCHANGED: Extend = pl.DataFrame.clone
ALPHA, BETA, GAMMA = 0.40, 0.40, 0.20
DECAY, WINDOW, LENGTH_EXPONENT = 2.0, 4, 0.25
K = 3  # tokens at the beginning or end of an answer
LOW_PROBABILITY, HIGH_PROBABILITY = 0.1, 0.9
PERCENT = (10, 25, 50, 75, 90)
TINY = 1e-8  # keeps a moment finite where all values are equal; the authors' value
# The nine of the eleven statistics of Entropy Sentinel that TRACE's features lack.
STATISTICS = (
    "entropy_sum",
    "entropy_deviation",
    *(f"entropy_q{percent}" for percent in PERCENT),
    "entropy_skewness",
    "entropy_kurtosis",
)
BLOCK = 2**15  # tokens, few enough to stay in a processor's cache
SMALLEST = 1e-9  # nats; smaller amounts hardly differ on logarithms


def mean(values: np.ndarray) -> np.ndarray:
    return values.mean(1)


def variance(values: np.ndarray) -> np.ndarray:
    """Population variance."""
    return values.var(1)


def largest(values: np.ndarray) -> np.ndarray:
    return values.max(1)


def length(values: np.ndarray) -> np.ndarray:
    return np.full(len(values), float(values.shape[1]))


def first_mean(values: np.ndarray, k: int) -> np.ndarray:
    return values[:, :k].mean(1)


def last_mean(values: np.ndarray, k: int) -> np.ndarray:
    return values[:, -k:].mean(1)


def slope(values: np.ndarray) -> np.ndarray:
    """Least-squares slope on t; 0 when T = 1."""
    length = values.shape[1]
    centred = np.arange(length) - (length - 1) / 2
    return np.vecdot(values, centred) / (np.vecdot(centred, centred) or 1)


def r_squared(values: np.ndarray) -> np.ndarray:
    """R² of the least-squares line on t; 0 when T < 3 or where all values are equal."""
    length = values.shape[1]
    level = (np.ptp(values, axis=1) == 0) | (length < 3)
    centred = np.arange(length) - (length - 1) / 2
    explained = slope(values) ** 2 * np.vecdot(centred, centred)
    return np.where(level, 0.0, explained / np.where(level, 1.0, values.var(1) * length))


def decayed(values: np.ndarray, decay: float) -> np.ndarray:
    """Σ w_t x_t / Σ w_t with w_t = exp(-(t-1)/decay)."""
    weights = np.exp(-np.arange(values.shape[1]) / decay)
    return np.vecdot(values, weights) / weights.sum()


def window_peak(values: np.ndarray, window: int) -> np.ndarray:
    """The largest mean over `window` consecutive tokens."""
    sums, width = _windows(values, window)
    return sums.max(1) / width


def window_start(values: np.ndarray, window: int) -> np.ndarray:
    """The number of tokens before the first window with the largest mean."""
    return _windows(values, window)[0].argmax(1).astype(float)


def _windows(values: np.ndarray, window: int) -> tuple[np.ndarray, int]:
    """Sums [n, windows] over `window` consecutive tokens of values [n, T] (over all when
    T < window), and the number of tokens in a sum.
    """
    width = min(window, values.shape[1])
    starts = values.shape[1] - width + 1
    sums = values[:, :starts].copy()
    for later in range(1, width):
        sums += values[:, later : later + starts]
    return sums, width


def length_normalised(values: np.ndarray, exponent: float) -> np.ndarray:
    """Σ x_t / T^exponent."""
    return values.sum(1) / values.shape[1] ** exponent


def rate(values: np.ndarray, condition: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Share of the values that meet `condition`."""
    return condition(values).mean(1)


def statistics(values: np.ndarray) -> np.ndarray:
    """The STATISTICS of the tokens of answers [m, T], [m, 9]."""
    length = values.shape[1]
    centred = values - values.mean(1, keepdims=True)
    squares = centred**2
    deviation = np.sqrt(squares.sum(1) / max(length - 1, 1))
    ordered = np.sort(values, axis=1)

    def quantile(share: float) -> np.ndarray:
        """The `share` quantile over the tokens, linearly interpolated."""
        position = share * (length - 1)
        below, above = ordered[:, math.floor(position)], ordered[:, math.ceil(position)]
        return below + (position % 1) * (above - below)

    return np.column_stack(
        [
            values.sum(1),
            deviation,
            *(quantile(percent / 100) for percent in PERCENT),
            np.vecdot(squares, centred) / length / (deviation**3 + TINY),
            np.vecdot(squares, squares) / length / (deviation**4 + TINY),
        ]
    )


def mixture(
    decayed_entropy: Values,
    window_entropy: Values,
    normalised_surprisal: Values,
    alpha: float = ALPHA,
    beta: float = BETA,
    gamma: float = GAMMA,
) -> Values:
    """R = α D + β M + γ L (paper, equation 1) of columns or arrays.

    Raises `ValueError` unless the weights are non-negative and sum to 1.
    """
    weights = (alpha, beta, gamma)
    if min(weights) < 0 or not math.isclose(sum(weights), 1.0):
        raise ValueError(f"mixture weights must be non-negative and sum to 1, not {weights}")
    return alpha * decayed_entropy + beta * window_entropy + gamma * normalised_surprisal


# Quantities of a trace, each computed once: its column and its kernel.
MEASURED: dict[str, tuple[str, Kernel]] = {
    "length": ("surprisal", length),
    "decayed_entropy": ("entropy", partial(decayed, decay=DECAY)),
    "window_entropy": ("entropy", partial(window_peak, window=WINDOW)),
    "length_normalised_surprisal": (
        "surprisal",
        partial(length_normalised, exponent=LENGTH_EXPONENT),
    ),
    "mean_entropy": ("entropy", mean),
    "max_entropy": ("entropy", largest),
    "first3_entropy": ("entropy", partial(first_mean, k=K)),
    "entropy_slope": ("entropy", slope),
    "decayed_entropy_4": ("entropy", partial(decayed, decay=4)),
    "decayed_surprisal_2": ("surprisal", partial(decayed, decay=2)),
    "decayed_surprisal_4": ("surprisal", partial(decayed, decay=4)),
    "max_surprisal": ("surprisal", largest),
    "mean_surprisal": ("surprisal", mean),
    "surprisal_slope": ("surprisal", slope),
    "surprisal_r_squared": ("surprisal", r_squared),
    "low_prob_token_rate": (
        "surprisal",
        partial(rate, condition=lambda s: np.exp(-s) < LOW_PROBABILITY),
    ),
    "first_surprisal": ("surprisal", lambda s: s[:, 0]),
    "mean_probability": ("surprisal", lambda s: mean(np.exp(-s))),
    "probability_slope": ("surprisal", lambda s: slope(np.exp(-s))),
    "high_prob_token_rate": (
        "surprisal",
        partial(rate, condition=lambda s: np.exp(-s) > HIGH_PROBABILITY),
    ),
    "total_surprisal": ("surprisal", partial(length_normalised, exponent=0)),
    "entropy_variance": ("entropy", variance),
    "last3_entropy": ("entropy", partial(last_mean, k=K)),
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
    "trace_risk": (mixture, RISK),
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
    "trace": (lambda *risk: np.exp(-mixture(*risk)), RISK),
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
TRACE_INPUTS = tuple(INPUTS)
# Inputs linear in the entropies.
SLOPES = ("features.entropy_slope", "scores.entropy_slope")
# Inputs neither linear nor monotone in each entropy, and so without bounds here. All others rise or
# fall with each entropy, as a test checks, or do not depend on them.
UNBOUNDED = {*(f"features.{name}" for name in STATISTICS), "scores.entropy_variance"}


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


def bounded_inputs(
    names: Sequence[str],
    surprisal: np.ndarray | None,
    entropy: np.ndarray | None,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
) -> np.ndarray:
    """Compute inputs of m answers of T tokens, and their lower and upper bounds, [3, m, names].

    Each array is [m, T]; the entropies lie between `low` and `high`, or are exact without these. A
    bound is NaN where none is known.
    """
    if entropy is None or (low is None and high is None):
        x = trace_inputs(names, surprisal, None if entropy is None else entropy[None])
        return np.repeat(x, 3, axis=0)
    low, is_bounded = entropy if low is None else low, high is not None
    high = entropy if high is None else high
    half = entropy.shape[1] // 2
    # A slope is steepest where the entropies before the middle are at one bound and those after it
    # at the other; the middle one does not matter.
    falling = np.concatenate([high[:, :half], low[:, half:]], axis=1)
    rising = np.concatenate([low[:, :half], high[:, half:]], axis=1)
    x = trace_inputs(names, surprisal, np.array([entropy, low, high, falling, rising]))
    ends = np.where([name in SLOPES for name in names], x[3:], x[1:3])
    if is_bounded:
        ends[..., [name in UNBOUNDED for name in names]] = np.nan
    return np.concatenate([x[:1], ends.min(0)[None], ends.max(0)[None]])


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


def compute_inputs(
    answers: pl.DataFrame, names: Collection[str] = TRACE_INPUTS, extend: Extend = UNCHANGED
) -> pl.DataFrame:
    """Compute `example_id` and the inputs `names`, Float64, of answers with their traces.

    `extend` adds to answers the columns of names that are no TRACE_INPUTS. A value is missing if it
    is undefined, or if a needed `surprisal` or `entropy` is missing.

    >>> answers = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.0]], "entropy": [[0.5]]})
    >>> compute_inputs(answers, ["scores.min_prob"])["scores.min_prob"].item()
    1.0
    """
    of_trace = [name for name in names if name in INPUTS]
    return _finite(extend(answers), input_matrix(answers, of_trace), of_trace, names)


def compute_bounded_inputs(
    answers: pl.DataFrame, names: Collection[str] = TRACE_INPUTS, extend: Extend = UNCHANGED
) -> tuple[pl.DataFrame, ...]:
    """Compute the inputs `names` and their lower and upper bounds, as `compute_inputs` does.

    Each entropy lies between its bounds; without bounds it is exact. A bound is missing where none
    is known: for an input of UNBOUNDED, for a further one that needs entropies with bounds, or
    without upper bounds of the entropies.
    """
    of_trace = [name for name in names if name in INPUTS]
    exact = pl.when(pl.col("entropy_upper").is_null()).then("entropy")
    beside, bounds = extend(answers), extend(answers.with_columns(exact))
    x = np.full((3, answers.height, len(of_trace)), np.nan)
    for rows, lists in blocks(answers, ("surprisal", "entropy", "entropy_lower", "entropy_upper")):
        if lists[0] is not None or lists[1] is not None:
            x[:, rows] = bounded_inputs(of_trace, *lists)
    tables = zip((beside, bounds, bounds), x, strict=True)
    return tuple(_finite(frame, table, of_trace, names) for frame, table in tables)


def _finite(
    beside: pl.DataFrame, x: np.ndarray, of_trace: Sequence[str], names: Collection[str]
) -> pl.DataFrame:
    """`example_id` and `names`: the inputs x [n, of_trace], and further columns of a frame."""
    numbers = pl.col([*names]).cast(pl.Float64)
    further = beside.select("example_id", *(name for name in names if name not in of_trace))
    frame = further.hstack(pl.DataFrame(x, [*of_trace], nan_to_null=True))
    return frame.select("example_id", pl.when(numbers.is_finite()).then(numbers))
