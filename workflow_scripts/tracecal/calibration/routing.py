"""Routing curves of a cascade: a small model answers, and the least confident go to a large one.

1. `routing_curve` measures one set of answers, `average_over_splits` the splits of a task.
2. `average_over_tasks` averages the curves of tasks.
3. `gain_kept` and `share_needed` read a curve off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracecal.calibration.ranking import ratio

# The shares of escalated answers at which a curve is stored.
SHARES = np.linspace(0, 1, 101)
RANDOM, ORACLE = "random", "oracle"


@dataclass(frozen=True)
class RoutingCurve:
    """Accuracy and cost of a cascade over the share of escalated answers.

    Attributes
    ----------
    accuracy : array [1 + resamples, shares]
        Accuracy at SHARES, of the sample and then of each resample.
    area : array [1 + resamples]
        Area under the accuracy.
    cost : array [shares]
        What the large model's answers add to the mean cost of a question, in the sample; NaN where
        it is unknown.
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
    """Measure one set of answers under many weights.

    Parameters
    ----------
    probability : array [n]
        The small model's probability; NaN: always escalated.
    small, large : array [n]
        Whether each model is right, as 0 and 1.
    cost : array [n]
        The cost of the large model's answers.
    weights : array [B, n]
        Weights of the answers: first of the sample, then of each resample.

    Examples
    --------
    >>> small, large = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    >>> curve = routing_curve(np.array([0.1, 0.9]), small, large, np.ones(2), np.ones((1, 2)))
    >>> curve.accuracy[0, [0, 25, 50, 100]].tolist(), curve.area[0].item()
    ([0.5, 0.75, 1.0, 1.0], 0.875)
    """
    confidence = np.nan_to_num(probability, nan=-np.inf)
    order = np.argsort(confidence, kind="stable")
    tie_starts = np.flatnonzero(np.append(True, np.diff(confidence[order].clip(min=-2)) != 0))
    ordered = weights[:, order]

    def cumulate(values: np.ndarray) -> np.ndarray:
        """Cumulative sums at the ends of ties, as shares of all weight, from 0 on."""
        sums = np.cumsum(np.add.reduceat(ordered * values[order], tie_starts, axis=1), axis=1)
        return np.pad(sums / ordered.sum(axis=1, keepdims=True), ((0, 0), (1, 0)))

    escalated, paid = cumulate(np.ones(len(order))), cumulate(cost)
    small_accuracy = weights @ small / weights.sum(axis=1)
    accuracy = small_accuracy[:, None] + cumulate(large - small)
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
    split_counts: np.ndarray,
) -> RoutingCurve:
    """Average the curves of the splits' evaluation parts.

    Parameters
    ----------
    probabilities, evaluated : sequence of array [n]
        Probabilities and a mask of the evaluated answers, by split.
    small, large, cost : array [n]
        As in `routing_curve`.
    counts : array [1 + resamples, n]
        How often each answer counts (`draw_counts`).
    split_counts : array [splits, 1 + resamples]
        How often each split counts (`draw_splits`).
    """
    n_rows = split_counts.shape[1]
    accuracy = np.zeros((n_rows, len(SHARES)))
    area, weight = np.zeros(n_rows), np.zeros(n_rows)
    costs = []
    for probability, part, split_weight in zip(probabilities, evaluated, split_counts, strict=True):
        rows = np.flatnonzero((split_weight > 0) & (counts @ part > 0))
        curve = routing_curve(
            probability[part], small[part], large[part], cost[part], counts[np.ix_(rows, part)]
        )
        accuracy[rows] += split_weight[rows, None] * curve.accuracy
        area[rows] += split_weight[rows] * curve.area
        weight[rows] += split_weight[rows]
        costs.append(curve.cost)
    means = np.array([ratio(column, weight) for column in accuracy.T]).T
    return RoutingCurve(means, ratio(area, weight), np.mean(costs, axis=0))


def average_over_tasks(curves: Sequence[RoutingCurve]) -> RoutingCurve:
    """Average several tasks' curves, resample by resample."""
    return RoutingCurve(
        np.mean([curve.accuracy for curve in curves], axis=0),
        np.mean([curve.area for curve in curves], axis=0),
        np.mean([curve.cost for curve in curves], axis=0),
    )


def gain_kept(curve: RoutingCurve, share: float) -> np.ndarray:
    """The gain at `share`, one of SHARES, as a share of the large model's; NaN without a gain."""
    gain = curve.accuracy - curve.accuracy[:, :1]
    return ratio(gain[:, np.searchsorted(SHARES, share - 1e-9)], gain[:, -1])


def share_needed(curve: RoutingCurve, below: float) -> np.ndarray:
    """The smallest share with an accuracy at most `below` under the large model's."""
    target = curve.accuracy[:, -1] - below
    # Rounding must not move an accuracy that meets the target exactly.
    reached = curve.accuracy >= target[:, None] - 1e-12
    first = reached.argmax(axis=1)
    before = np.maximum(first - 1, 0)
    rows = np.arange(len(first))
    low, high = curve.accuracy[rows, before], curve.accuracy[rows, first]
    # Between two of SHARES: on the line that joins them.
    fraction = np.divide(target - low, high - low, out=np.ones_like(low), where=high > low)
    share = SHARES[before] + fraction.clip(0, 1) * (SHARES[first] - SHARES[before])
    return np.where(np.isnan(target), np.nan, share)


def add_reference_routers(
    probabilities: Mapping[str, np.ndarray], gain: np.ndarray, n_splits: int
) -> dict[str, np.ndarray]:
    """Add RANDOM and ORACLE to the estimators' probabilities [splits, n].

    `gain` [n] is 1 where only the large model is right, -1 where only the small one is, else 0.
    """
    routers = dict(probabilities)
    for name, values in {RANDOM: np.zeros_like(gain), ORACLE: -gain}.items():
        routers[name] = np.broadcast_to(values, (n_splits, len(gain)))
    return routers
