"""Thresholds that keep the error rate among the answers kept below a target error rate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from tracecal.calibration.bets import Evidence, betting_test, min_groups
from tracecal.calibration.rated_answers import LabelledAnswers

STEP = 0.02
# The first threshold keeps this many times the groups that suffice where no answer is wrong, and
# errors of the calibration part count as if PRIOR more answers were wrong at the target error rate:
# chosen by simulation on the populations of `make validate`.
START, PRIOR = 1.5, 2.0


@dataclass(frozen=True)
class Guarantee:
    """A threshold on the probability with a guarantee (null: there is none) and its test results.

    Of the `n` tested answers `kept` have a probability of at least `threshold`, and `wrong` of
    these are wrong. `coverage` and `error` are kept / n and wrong / kept, with groups counting as
    in the guarantee. The test was that of `tested_rate`, the `error_rate` or a smaller one.
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
    seen: LabelledAnswers,
    tested: LabelledAnswers,
    error_rate: float,
    level: float,
    single: bool = False,
    largest: int | None = None,
) -> Guarantee:
    """The most inclusive threshold that fixed-sequence testing at `level` allows.

    The calibrator was fitted on `seen`; `tested` shares no group with it. `single` says that the
    task declares no groups, `largest` with how many answers a group counts at most; null: as many
    as the largest of `seen` has.
    """
    return _each(seen, tested, [error_rate], level, single, largest)[0]


def _each(
    seen: LabelledAnswers,
    tested: LabelledAnswers,
    error_rates: Sequence[float],
    level: float,
    single: bool,
    largest: int | None,
) -> list[Guarantee]:
    """The `guarantee` of each rate. All are tested at once: bets on many thresholds cost little
    more than bets on few.
    """
    most = resolve_largest_group(seen, single, largest)
    sequences = [threshold_sequence(seen, tested.groups, rate, level, most) for rate in error_rates]
    evidence = [
        Evidence.of(seen, tested, thresholds, rate, single, most)
        for rate, thresholds in zip(error_rates, sequences, strict=True)
    ]
    if single or not tested.groups:
        passed = [one.passes(rate, level) for rate, one in zip(error_rates, evidence, strict=True)]
    else:
        z = [one.wrong - rate * one.kept for rate, one in zip(error_rates, evidence, strict=True)]
        widths = [len(thresholds) for thresholds in sequences]
        before = np.hstack([one.before for one in evidence])
        together = betting_test(np.hstack(z), before, np.repeat(error_rates, widths), level)
        passed = np.split(together, np.cumsum(widths)[:-1])
    return [
        _told(tested, rate, thresholds, one, ok, most)
        for rate, thresholds, one, ok in zip(error_rates, sequences, evidence, passed, strict=True)
    ]


def _told(
    tested: LabelledAnswers,
    error_rate: float,
    thresholds: np.ndarray,
    evidence: Evidence,
    passed: np.ndarray,
    most: int,
) -> Guarantee:
    """The guarantee of the last threshold before the first that has not `passed`."""
    n, weights = len(tested.probability), tested.weights(most).sum()
    count = int(np.cumprod(passed).sum()) if n else 0
    if not count:
        return Guarantee(error_rate, error_rate, None, n, 0, 0, 0.0, None)
    last = count - 1
    kept = tested.probability >= thresholds[last]
    return Guarantee(
        error_rate,
        error_rate,
        float(thresholds[last]),
        n,
        int(kept.sum()),
        int((kept & ~tested.correct).sum()),
        float(evidence.kept[:, last].sum() / weights),
        float(evidence.wrong[:, last].sum() / evidence.kept[:, last].sum()),
    )


def resolve_largest_group(seen: LabelledAnswers, single: bool, largest: int | None) -> int:
    """With how many answers a group counts at most; arguments as of `guarantee`."""
    return 1 if single else largest or seen.largest


def find_guarantees(
    seen: LabelledAnswers,
    tested: LabelledAnswers,
    error_rates: Sequence[float],
    level: float,
    single: bool = False,
    largest: int | None = None,
) -> list[Guarantee]:
    """The `guarantee` of each rate, smallest first; one without a threshold takes that of the rate
    before it.
    """
    found: list[Guarantee] = []
    for own in _each(seen, tested, sorted(error_rates), level, single, largest):
        if own.threshold is None and found and found[-1].threshold is not None:
            own = replace(found[-1], error_rate=own.error_rate)
        found.append(own)
    return found


def threshold_sequence(
    seen: LabelledAnswers, groups: int, error_rate: float, level: float, most: int = 1
) -> np.ndarray:
    """Thresholds to test on a number of `groups`, falling: quantiles of the `seen` probabilities.

    A group counts with at most `most` answers. The tested groups are taken to weigh what those of
    `seen` do on average: their own sizes may go with their errors, and are not looked at.

    The first should be the easiest to guarantee by the `seen` labels: of those that keep at least
    START times as many groups as suffice where no answer is wrong, it has the largest
    share kept * KL(observed error rate, `error_rate`), the rate at which evidence grows; and where
    the observed error rate of none is below the target, the lowest one. Each following threshold
    keeps a share `STEP` more.
    """
    order = np.argsort(-seen.probability, kind="stable")
    ranked = seen.probability[order]
    if not len(ranked):
        return ranked
    weight = max(groups, 1) * seen.weights(most).mean()
    first = START * min_groups(error_rate, level) / weight
    # The last step may round to a little more than 1.
    shares = np.append(np.arange(min(first, 1.0), 1.0, STEP), 1.0).clip(max=1)
    thresholds = ranked[np.ceil(shares * len(ranked)).astype(int) - 1]
    kept = np.searchsorted(-ranked, -thresholds, side="right")
    wrong = np.append(0, np.cumsum(~seen.correct[order]))[kept]
    observed = (wrong + PRIOR * error_rate) / (kept + PRIOR)
    gain = xlogy(observed, observed / error_rate) + xlogy(
        1 - observed, (1 - observed) / (1 - error_rate)
    )
    best = int(np.argmax(np.where(observed < error_rate, shares * gain, error_rate - observed)))
    return np.unique(thresholds[best:])[::-1]
