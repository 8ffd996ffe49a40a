"""Curves of cascades."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracecal.calibration.ranking import ratio

SHARES = np.linspace(0, 1, 101)
RANDOM, ORACLE = "random", "oracle"


@dataclass(frozen=True)
class RoutingCurve:
    """Of the sample, then each resample: the `accuracy` at SHARES, [1 + resamples, shares], and its
    `area` over the shares, [1 + resamples]. `cost` is what the large model's answers add to the
    mean cost of a question at SHARES, of the sample; NaN where it is unknown.
    """

    accuracy: np.ndarray
    area: np.ndarray
    cost: np.ndarray


def routing_curve(
    probability: np.ndarray,
    small: np.ndarray,
    large: np.ndarray,
    cost: np.ndarray,
    weights: np.ndarray,
) -> RoutingCurve:
    """The curve of one set of answers, arrays [n], under each row of `weights` [B, n]: the first
    is the sample. `small` and `large` say who is right, `cost` is that of the large model's
    answers.

    >>> small, large = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    >>> curve = routed(np.array([0.1, 0.9]), small, large, np.ones(2), np.ones((1, 2)))
    >>> curve.accuracy[0, [0, 25, 50, 100]].tolist(), curve.area[0].item()
    ([0.5, 0.75, 1.0, 1.0], 0.875)
    """
    known = np.nan_to_num(probability, nan=-np.inf)
    order = np.argsort(known, kind="stable")
    tied = np.flatnonzero(np.append(True, np.diff(known[order].clip(min=-2)) != 0))
    ordered = weights[:, order]

    def shares(values: np.ndarray) -> np.ndarray:
        """Cumulative sums at the ends of ties, as shares of all weight, from 0 on."""
        sums = np.cumsum(np.add.reduceat(ordered * values[order], tied, axis=1), axis=1)
        return np.pad(sums / ordered.sum(axis=1, keepdims=True), ((0, 0), (1, 0)))

    escalated, paid = shares(np.ones(len(order))), shares(cost)
    start = weights @ small / weights.sum(axis=1)
    accuracy = start[:, None] + shares(large - small)
    middle = (accuracy[:, 1:] + accuracy[:, :-1]) / 2
    return RoutingCurve(
        np.array([np.interp(SHARES, *pair) for pair in zip(escalated, accuracy, strict=True)]),
        (np.diff(escalated) * middle).sum(axis=1),
        np.interp(SHARES, escalated[0], paid[0]),
    )


def average_over_splits(
    probabilities: Sequence[np.ndarray],
    evaluated: Sequence[np.ndarray],
    small: np.ndarray,
    large: np.ndarray,
    cost: np.ndarray,
    counts: np.ndarray,
    in_resample: np.ndarray,
) -> RoutingCurve:
    """The mean of the curves of the splits' evaluation parts.

    By split the `probabilities` [n] and a mask [n] of the `evaluated` answers. `counts`
    [1 + resamples, n] and `in_resample` [splits, 1 + resamples] are the bootstrap's.
    """
    rows = in_resample.shape[1]
    accuracy, area, weight = np.zeros((rows, len(SHARES))), np.zeros(rows), np.zeros(rows)
    costs = []
    for probability, part, drawn in zip(probabilities, evaluated, in_resample, strict=True):
        used = np.flatnonzero((drawn > 0) & (counts @ part > 0))
        own = (probability[part], small[part], large[part], cost[part])
        curve = routing_curve(*own, counts[np.ix_(used, part)])
        accuracy[used] += drawn[used, None] * curve.accuracy
        area[used] += drawn[used] * curve.area
        weight[used] += drawn[used]
        costs.append(curve.cost)
    means = np.array([ratio(column, weight) for column in accuracy.T]).T
    return RoutingCurve(means, ratio(area, weight), np.mean(costs, axis=0))


def average_over_tasks(curves: Sequence[RoutingCurve]) -> RoutingCurve:
    """The mean of several tasks' curves, resample by resample."""
    parts = zip(*((one.accuracy, one.area, one.cost) for one in curves), strict=True)
    return RoutingCurve(*(np.mean(part, axis=0) for part in parts))


def gain_kept(curve: RoutingCurve, share: float) -> np.ndarray:
    """The gain at `share`, one of SHARES, as a share of that of the large model alone; NaN where
    that is none.
    """
    gain = curve.accuracy - curve.accuracy[:, :1]
    return ratio(gain[:, np.searchsorted(SHARES, share - 1e-9)], gain[:, -1])


def share_needed(curve: RoutingCurve, below: float) -> np.ndarray:
    """The smallest share whose accuracy is at most `below` under the large model's."""
    wanted = curve.accuracy[:, -1] - below
    # Rounding must not move an accuracy that is met exactly.
    reached = curve.accuracy >= wanted[:, None] - 1e-12
    first = reached.argmax(axis=1)
    before = np.maximum(first - 1, 0)
    rows = np.arange(len(first))
    low, high = curve.accuracy[rows, before], curve.accuracy[rows, first]
    # Between two of SHARES on the line that joins them.
    part = np.divide(wanted - low, high - low, out=np.ones_like(low), where=high > low)
    needed = SHARES[before] + part.clip(0, 1) * (SHARES[first] - SHARES[before])
    return np.where(np.isnan(wanted), np.nan, needed)


def add_reference_routers(
    probabilities: Mapping[str, np.ndarray], better: np.ndarray, splits: int
) -> dict[str, np.ndarray]:
    """The `probabilities` [splits, n] of estimators, and what stands for RANDOM and ORACLE.

    `better` [n] is d.
    """
    limits = {RANDOM: np.zeros_like(better), ORACLE: -better}
    rows = {name: np.broadcast_to(one, (splits, len(better))) for name, one in limits.items()}
    return {**probabilities, **rows}
