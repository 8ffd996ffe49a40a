"""Thresholds on a small model's confidence that guarantee the accuracy of a cascade."""

from dataclasses import dataclass

import numpy as np

from tracecal.calibration.bets import betting_test, min_groups
from tracecal.calibration.guarantee import STEP
from tracecal.calibration.rated_answers import Bound, PairedAnswers


@dataclass(frozen=True)
class CascadeGuarantee:
    """A threshold with a guarantee (null: there is none, see `reason`) and its test results.

    `promised` is ε or r. `escalated` and the accuracies are estimates by the `groups` tested ones,
    of which each counts with at most `largest_group` answers; without a threshold all is escalated.
    """

    promise: Bound
    promised: float
    threshold: float | None
    n: int
    groups: int
    largest_group: int
    escalated: float
    accuracy: float | None
    small_accuracy: float | None
    large_accuracy: float | None
    reason: str | None


def find_cascade_guarantee(
    seen: PairedAnswers,
    tested: PairedAnswers,
    promise: Bound,
    promised: float,
    level: float,
    largest: int | None = None,
) -> CascadeGuarantee:
    """The lowest threshold that fixed-sequence testing at `level` allows, keeping most answers.

    The calibrator was fitted on `seen`; `tested` shares no group with it. `promised` is in (0, 1).
    A group counts with at most `largest` questions; null: with as many as the largest of `seen`.
    """
    rate = promised if promise == "below" else 1 - promised
    most = largest or seen.largest
    n, groups = len(tested.probability), tested.groups
    thresholds = cascade_thresholds(seen, promise, rate, most)
    if not n or not len(thresholds):
        known = (None, None, None, "no answer has been tested")
        return CascadeGuarantee(promise, promised, None, n, groups, most, 1.0, *known)
    weights = tested.weights(most)
    losses = tested.lost(thresholds, promise, most) - rate * weights[:, None]
    before = seen.lost(thresholds, promise, most) - rate * seen.weights(most)[:, None]
    count = int(np.cumprod(betting_test(losses, before, rate, level)).sum())
    threshold = float(thresholds[count - 1]) if count else None
    at = np.inf if threshold is None else threshold
    # What is lost where everything, what, and nothing is kept.
    wrong = tested.lost(np.array([-np.inf, at, np.inf]), "at_least", most).sum(axis=0)
    small, cascade, large = (1 - wrong / weights.sum()).tolist()
    gone = tested.totals(~tested.over(np.array([at])), most).sum() / weights.sum()
    why = None if threshold is not None else _reason(weights, rate, level)
    return CascadeGuarantee(
        *(promise, promised, threshold, n, groups, most), float(gone), cascade, small, large, why
    )


def _reason(weights: np.ndarray, rate: float, level: float) -> str:
    """Why there is no threshold, by the weights of the tested groups."""
    fewest, groups = min_groups(rate, level), len(weights)
    if groups < fewest:
        return f"needs at least {fewest} tested groups even if nothing is lost, has {groups}"
    counted = "" if weights.sum() == groups else f", which count as {weights.sum():.1f},"
    return (
        f"with {groups} tested groups{counted} keeping the most confident answers is not shown to "
        "be good enough"
    )


def cascade_thresholds(seen: PairedAnswers, promise: Bound, rate: float, most: int) -> np.ndarray:
    """Thresholds in the order of their tests, falling: quantiles of the `seen` probabilities.

    The first has the largest ratio of -ΣZ to sqrt(ΣZ²), with one group that is lost as a whole
    added to the latter.
    """
    ranked = -np.sort(-seen.probability[np.isfinite(seen.probability)])
    if not len(ranked):
        return ranked
    shares = np.append(np.arange(STEP, 1.0, STEP), 1.0)
    thresholds = ranked[np.ceil(shares * len(ranked)).astype(int) - 1]
    z = seen.lost(thresholds, promise, most) - rate * seen.weights(most)[:, None]
    evidence = -z.sum(axis=0) / np.sqrt((z**2).sum(axis=0) + (1 - rate) ** 2)
    return np.unique(thresholds[int(np.argmax(evidence)) :])[::-1]
