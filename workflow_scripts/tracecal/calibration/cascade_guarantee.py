"""A threshold that guarantees the accuracy of a cascade.

A small model's answers with a probability from the threshold on are kept, all others are escalated
to a large model. `find_cascade_guarantee` tests thresholds, as `guarantee` does for one model.
"""

from dataclasses import dataclass

import numpy as np

from tracecal.calibration.bets import betting_test, min_groups
from tracecal.calibration.guarantees.sequence import STEP
from tracecal.calibration.rated_answers import Bound, PairedAnswers


@dataclass(frozen=True)
class CascadeGuarantee:
    """A threshold with a guarantee, and its test results.

    Attributes
    ----------
    promise : {"below", "at_least"}
        What the guarantee bounds: how far the accuracy lies below the large model's, or the
        accuracy.
    promised : float
        The bound.
    threshold : float or None
        The threshold; None without a guarantee, and then all answers are escalated.
    n, groups : int
        How many answers and groups were tested.
    largest_group : int
        How many answers of a group count at most.
    escalated, accuracy, small_accuracy, large_accuracy : float
        Estimates from the tested answers.
    reason : str or None
        Why there is no guarantee.
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
    calibration: PairedAnswers,
    evaluation: PairedAnswers,
    bound: Bound,
    target: float,
    level: float,
    largest_group: int | None = None,
) -> CascadeGuarantee:
    """Find the lowest threshold that fixed-sequence testing allows; it keeps most answers.

    Parameters
    ----------
    calibration, evaluation : PairedAnswers
        The parts of a split, which share no group: the answers that the calibrator was fitted on,
        and the tested ones.
    bound : {"below", "at_least"}
        What to guarantee of the cascade's accuracy.
    target : float
        The bound's value, between 0 and 1.
    level : float
        Significance level.
    largest_group : int, optional
        How many answers of a group count at most; by default as many as the largest calibration
        group has.
    """
    rate = target if bound == "below" else 1 - target
    largest_group = largest_group or calibration.largest_group
    n, n_groups = len(evaluation.probability), evaluation.n_groups
    thresholds = cascade_threshold_sequence(calibration, bound, rate, largest_group)
    if not n or not len(thresholds):
        return CascadeGuarantee(
            promise=bound,
            promised=target,
            threshold=None,
            n=n,
            groups=n_groups,
            largest_group=largest_group,
            escalated=1.0,
            accuracy=None,
            small_accuracy=None,
            large_accuracy=None,
            reason="no answer has been tested",
        )
    weights = evaluation.group_weights(largest_group)
    excess = _excess(evaluation, thresholds, bound, rate, largest_group)
    calibration_excess = _excess(calibration, thresholds, bound, rate, largest_group)
    n_passed = int(np.cumprod(betting_test(excess, calibration_excess, rate, level)).sum())
    threshold = float(thresholds[n_passed - 1]) if n_passed else None
    lowest_kept = np.inf if threshold is None else threshold
    # The errors where all answers are kept, those from the threshold on, and none.
    cuts = np.array([-np.inf, lowest_kept, np.inf])
    errors = evaluation.loss(cuts, "at_least", largest_group).sum(axis=0)
    small_accuracy, accuracy, large_accuracy = (1 - errors / weights.sum()).tolist()
    escalated = ~evaluation.is_kept(np.array([lowest_kept]))
    return CascadeGuarantee(
        promise=bound,
        promised=target,
        threshold=threshold,
        n=n,
        groups=n_groups,
        largest_group=largest_group,
        escalated=float(evaluation.sum_by_group(escalated, largest_group).sum() / weights.sum()),
        accuracy=accuracy,
        small_accuracy=small_accuracy,
        large_accuracy=large_accuracy,
        reason=_explain_failure(weights, rate, level) if threshold is None else None,
    )


def _excess(
    answers: PairedAnswers, thresholds: np.ndarray, bound: Bound, rate: float, largest_group: int
) -> np.ndarray:
    """The loss less the allowed one in each group, [groups, t]."""
    weights = answers.group_weights(largest_group)
    return answers.loss(thresholds, bound, largest_group) - rate * weights[:, None]


def _explain_failure(weights: np.ndarray, rate: float, level: float) -> str:
    """Say why there is no threshold, from the weights of the tested groups."""
    fewest, n_groups = min_groups(rate, level), len(weights)
    if n_groups < fewest:
        return f"needs at least {fewest} tested groups even if nothing is lost, has {n_groups}"
    weight = "" if weights.sum() == n_groups else f", which count as {weights.sum():.1f},"
    return (
        f"with {n_groups} tested groups{weight} keeping the most confident answers is not shown to "
        "be good enough"
    )


def cascade_threshold_sequence(
    calibration: PairedAnswers, bound: Bound, rate: float, largest_group: int
) -> np.ndarray:
    """Return the thresholds to test: falling quantiles of the calibration probabilities.

    The first has the largest ratio of -ΣZ to sqrt(ΣZ²), where Z is a group's excess loss, with one
    group that is lost as a whole added to the latter.
    """
    ranked = -np.sort(-calibration.probability[np.isfinite(calibration.probability)])
    if not len(ranked):
        return ranked
    shares = np.append(np.arange(STEP, 1.0, STEP), 1.0)
    thresholds = ranked[np.ceil(shares * len(ranked)).astype(int) - 1]
    excess = _excess(calibration, thresholds, bound, rate, largest_group)
    evidence = -excess.sum(axis=0) / np.sqrt((excess**2).sum(axis=0) + (1 - rate) ** 2)
    return np.unique(thresholds[int(np.argmax(evidence)) :])[::-1]
