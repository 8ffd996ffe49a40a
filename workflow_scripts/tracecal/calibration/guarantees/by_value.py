"""Errors by the values of a column, such as the task or the language, beside a pooled guarantee."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv


@dataclass(frozen=True)
class ErrorCount:
    """The labelled answers with one value of a column at a threshold.

    Attributes
    ----------
    value : str
        The value.
    n, kept, wrong : int
        How many labelled answers have it, are kept, and are kept and wrong.
    low, high : float or None
        Exact (Clopper-Pearson) interval of the error rate of kept answers as if the threshold were
        fixed beforehand; None where none is kept. The labels that chose a pooled threshold are
        among those counted, so that with few values it is a little too low.
    """

    value: str
    n: int
    kept: int
    wrong: int
    low: float | None
    high: float | None


def errors_by_value(
    values: Sequence[str], is_kept: np.ndarray, wrong: np.ndarray, level: float
) -> list[ErrorCount]:
    """Count the answers with each value, most frequent first.

    Parameters
    ----------
    values : sequence of str
        The value of each answer, [n].
    is_kept, wrong : array [n] of bool
        Whether each answer is kept, and wrong.
    level : float
        1 - confidence of the intervals.

    Examples
    --------
    >>> kept, wrong = np.array([True] * 10), np.array([True] + [False] * 9)
    >>> item = errors_by_value(["de"] * 10, kept, wrong, level=0.05)[0]
    >>> item.kept, item.wrong, round(item.low, 3), round(item.high, 3)
    (10, 1, 0.003, 0.445)
    """
    values = np.asarray(values)
    distinct, counts = np.unique(values, return_counts=True)
    rows = []
    for value in distinct[np.argsort(-counts, kind="stable")]:
        mask = values == value
        n_kept, n_wrong = int((mask & is_kept).sum()), int((mask & is_kept & wrong).sum())
        low, high = error_interval(n_wrong, n_kept, level) if n_kept else (None, None)
        rows.append(ErrorCount(str(value), int(mask.sum()), n_kept, n_wrong, low, high))
    return rows


def error_interval(wrong: int, n_kept: int, level: float) -> tuple[float, float]:
    """The exact interval of an error rate with confidence 1 - level, by Clopper and Pearson."""
    low = float(betaincinv(wrong, n_kept - wrong + 1, level / 2)) if wrong else 0.0
    high = float(betaincinv(wrong + 1, n_kept - wrong, 1 - level / 2)) if wrong < n_kept else 1.0
    return low, high


def joint_confidence(level: float, n_guarantees: int) -> float:
    """Return the joint confidence of `n_guarantees` at `level` each (Bonferroni).

    >>> joint_confidence(0.1, 3)
    0.7
    """
    return max(round(1 - n_guarantees * level, 12), 0.0)
