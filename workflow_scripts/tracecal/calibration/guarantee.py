"""A threshold that guarantees an error rate of the answers kept.

1. `split_answers` (`rated_answers`) makes the calibration and the evaluation part of a split.
2. `find_guarantee` tests a sequence of thresholds, which the calibration part chooses, on the
   evaluation part, and returns the last one that passed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracecal.calibration.bets import Evidence, betting_test, min_groups
from tracecal.calibration.guarantees.sequence import START, falling_thresholds
from tracecal.calibration.rated_answers import LabelledAnswers


@dataclass(frozen=True)
class Guarantee:
    """A threshold on the probability with a guarantee, and its test results.

    Attributes
    ----------
    error_rate : float
        The guaranteed error rate.
    tested_rate : float
        The error rate of the test: the guaranteed one or a smaller one.
    threshold : float or None
        The threshold; None without a guarantee.
    n, kept, wrong : int
        How many answers were tested, kept, and kept and wrong.
    coverage : float
        kept / n, where groups count as in the guarantee.
    error : float or None
        wrong / kept, where groups count as in the guarantee.
    """

    error_rate: float
    tested_rate: float
    threshold: float | None
    n: int
    kept: int
    wrong: int
    coverage: float
    error: float | None


def find_guarantee(
    calibration: LabelledAnswers,
    evaluation: LabelledAnswers,
    error_rate: float,
    level: float,
    ungrouped: bool = False,
    largest_group: int | None = None,
) -> Guarantee:
    """Find the threshold that keeps most answers among those that fixed-sequence testing allows.

    Parameters
    ----------
    calibration, evaluation : LabelledAnswers
        The parts of a split, which share no group: the answers that the calibrator was fitted on,
        and the tested ones.
    error_rate, level : float
        Target error rate, and significance level.
    ungrouped : bool
        Whether every answer of the task is its own group.
    largest_group : int, optional
        The number of answers that a group counts as at most: answers of larger groups are weighted
        down. By default the size of the largest calibration group.

    Examples
    --------
    >>> number = np.arange(200)
    >>> answers = LabelledAnswers(number, 1 - number / 200, number < 150)
    >>> guarantee = find_guarantee(answers, answers, error_rate=0.1, level=0.1)
    >>> guarantee.kept, guarantee.wrong
    (157, 7)
    """
    rates = [error_rate]
    return _test_rates(calibration, evaluation, rates, level, ungrouped, largest_group)[0]


def find_guarantees(
    calibration: LabelledAnswers,
    evaluation: LabelledAnswers,
    error_rates: Sequence[float],
    level: float,
    ungrouped: bool = False,
    largest_group: int | None = None,
) -> list[Guarantee]:
    """Find the guarantee of each rate, smallest first.

    A rate without a threshold takes the threshold of the rate before it. The parameters are those
    of `find_guarantee`.
    """
    rates = sorted(error_rates)
    guarantees: list[Guarantee] = []
    for guarantee in _test_rates(calibration, evaluation, rates, level, ungrouped, largest_group):
        stricter = guarantees[-1] if guarantees else None
        if guarantee.threshold is None and stricter and stricter.threshold is not None:
            guarantee = replace(stricter, error_rate=guarantee.error_rate)
        guarantees.append(guarantee)
    return guarantees


def _test_rates(
    calibration: LabelledAnswers,
    evaluation: LabelledAnswers,
    error_rates: Sequence[float],
    level: float,
    ungrouped: bool,
    largest_group: int | None,
) -> list[Guarantee]:
    """Test all rates at once: bets on many thresholds cost little more than bets on few."""
    largest_group = resolve_largest_group(calibration, ungrouped, largest_group)
    n_groups = evaluation.n_groups
    sequences = [
        threshold_sequence(calibration, n_groups, rate, level, largest_group)
        for rate in error_rates
    ]
    evidence = [
        Evidence.from_answers(calibration, evaluation, thresholds, rate, ungrouped, largest_group)
        for rate, thresholds in zip(error_rates, sequences, strict=True)
    ]
    if ungrouped or not n_groups:
        passed = [
            item.passes(rate, level) for rate, item in zip(error_rates, evidence, strict=True)
        ]
    else:
        excess = [item.excess(rate) for rate, item in zip(error_rates, evidence, strict=True)]
        calibration_excess = np.hstack([item.calibration_excess for item in evidence])
        widths = [len(thresholds) for thresholds in sequences]
        rates = np.repeat(error_rates, widths)
        results = betting_test(np.hstack(excess), calibration_excess, rates, level)
        passed = np.split(results, np.cumsum(widths)[:-1])
    return [
        _last_passed(evaluation, rate, thresholds, item, results, largest_group)
        for rate, thresholds, item, results in zip(
            error_rates, sequences, evidence, passed, strict=True
        )
    ]


def _last_passed(
    evaluation: LabelledAnswers,
    error_rate: float,
    thresholds: np.ndarray,
    evidence: Evidence,
    passed: np.ndarray,
    largest_group: int,
) -> Guarantee:
    """The guarantee of the last threshold before the first that has not `passed`."""
    n, weight = len(evaluation.probability), evaluation.group_weights(largest_group).sum()
    n_passed = int(np.cumprod(passed).sum()) if n else 0
    if not n_passed:
        return Guarantee(error_rate, error_rate, None, n, 0, 0, 0.0, None)
    last = n_passed - 1
    is_kept = evaluation.probability >= thresholds[last]
    return Guarantee(
        error_rate,
        error_rate,
        float(thresholds[last]),
        n,
        int(is_kept.sum()),
        int((is_kept & ~evaluation.correct).sum()),
        float(evidence.kept[:, last].sum() / weight),
        float(evidence.wrong[:, last].sum() / evidence.kept[:, last].sum()),
    )


def resolve_largest_group(
    calibration: LabelledAnswers, ungrouped: bool, largest_group: int | None
) -> int:
    """How many answers of a group count at most; parameters as in `find_guarantee`."""
    return 1 if ungrouped else largest_group or calibration.largest_group


def threshold_sequence(
    calibration: LabelledAnswers,
    n_groups: int,
    error_rate: float,
    level: float,
    largest_group: int = 1,
) -> np.ndarray:
    """Return the thresholds to test on `n_groups` groups: falling quantiles of the probabilities.

    The first threshold should be the easiest to guarantee by the calibration labels. Of those that
    keep at least START times the groups that suffice without an error, it has the largest
    share kept * KL(observed error rate, `error_rate`), the rate at which evidence grows; where all
    observed error rates exceed the target, it has the lowest one. Each further threshold keeps a
    share STEP more.

    The tested groups count as heavy as the calibration groups are on average: their own sizes may
    depend on their errors, and stay unused.
    """
    if not len(calibration.probability):
        return calibration.probability
    weight = max(n_groups, 1) * calibration.group_weights(largest_group).mean()
    start_share = START * min_groups(error_rate, level) / weight
    return falling_thresholds(
        calibration.probability, ~calibration.correct, start_share, error_rate
    )
