"""Thresholds that keep the error rate among the answers kept below a target error rate.

The guarantee: draw a new group of examples (a question with its translations or variants) from the
task's distribution, and one of its answers at random. R(t) is the probability that the answer is
wrong, given that its estimated probability of being correct is at least t. With the stated
confidence, R at the certified threshold is at most the target error rate r. Where every group is a
single example, this is the error rate among the answers kept. Groups have equal weight, large or
small.

The method: Learn-then-Test (Angelopoulos et al. 2025) with a fixed sequence of tests. R need not
fall as t rises, so each threshold has a hypothesis of its own, H(t): R(t) > r.

- The fit, the thresholds and the order of their tests come from the calibration part of a split,
  its labels included (`threshold_sequence`). None of its groups has members in the tested part, so
  all are fixed before the tested answers are seen.
- Z_g(t), the mean over the answers of group g of (wrong - r) where the answer is kept and 0 where
  it is not, lies in [-r, 1 - r], and H(t) says that its expectation is above 0. Groups are
  independent; their answers need not be.
- Where the task declares no groups, so that each answer is a group of its own, the errors among k
  kept answers are binomial, and P(Bin(k, r) <= errors) is an exact p-value, the most powerful there
  is. That the groups which happen to be tested are all single does not suffice: the groups of the
  population need not be.
- Otherwise by betting (Waudby-Smith and Ramdas 2024): a wealth of 1 is multiplied group by group by
  1 - b Z_g(t), with 0 <= b <= 1 / (1 - r) chosen before the group is seen. Under H(t) wealth is a
  supermartingale, so that it reaches 1 / delta with a probability of at most delta (Ville's
  inequality), whatever the bets and however correlated the answers of a group.
- The tests are made in order, each at the full level delta = 1 - confidence, and end at the first
  that fails. A false guarantee needs the first true H(t) of the sequence to be rejected, which has
  a probability of at most delta (fixed-sequence testing). The certified threshold is the last that
  passed.

A guarantee holds for one target error rate, model and task at a time. Where `together` of them are
to hold at once, each is tested at delta / `together` (Bonferroni).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl
from scipy.special import xlogy

from tracecal.calibrate.evidence import Evidence, Part, error_level
from tracecal.calibrate.protocol import Calibrator, from_json

STEP = 0.02
# The first threshold keeps this many times the groups that suffice where no answer is wrong, and
# errors of the calibration part count as if PRIOR more answers were wrong at the target error rate:
# chosen by simulation on the populations of `make validate`.
START, PRIOR = 1.5, 2.0
# How `enough` searches: STEPS times, with a quarter more groups each time.
GROWTH, STEPS = 1.25, 12


@dataclass(frozen=True)
class Guarantee:
    """A certified threshold on the probability (null: there is none) and its test results.

    Of the `n` tested answers `kept` have a probability of at least `threshold`, and `wrong` of
    these are wrong. `coverage` and `error` are the estimates for a random answer of a random group:
    kept / n and wrong / kept where groups are single answers.
    """

    error_rate: float
    threshold: float | None
    n: int
    kept: int
    wrong: int
    coverage: float
    error: float | None


def guarantee(
    seen: Part, tested: Part, error_rate: float, level: float, single: bool = False
) -> Guarantee:
    """The most inclusive threshold that fixed-sequence testing at `level` allows.

    The calibrator was fitted on `seen`; `tested` shares no group with it.
    """
    n = len(tested.probability)
    thresholds = threshold_sequence(seen, tested.groups, error_rate, level)
    evidence = Evidence.of(seen, tested, thresholds, error_rate, single)
    count = int(np.cumprod(evidence.passes(error_rate, level)).sum()) if n else 0
    if not count:
        return Guarantee(error_rate, None, n, 0, 0, 0.0, None)
    last = count - 1
    kept = tested.probability >= thresholds[last]
    return Guarantee(
        error_rate,
        float(thresholds[last]),
        n,
        int(kept.sum()),
        int((kept & ~tested.correct).sum()),
        float(evidence.kept[:, last].mean()),
        float(evidence.wrong[:, last].sum() / evidence.kept[:, last].sum()),
    )


def sufficing(error_rate: float, level: float) -> int:
    """How many groups suffice for a guarantee where no answer is wrong."""
    return math.ceil(math.log(level) / math.log(1 - error_rate))


def threshold_sequence(seen: Part, groups: int, error_rate: float, level: float) -> np.ndarray:
    """Thresholds to test on a number of `groups`, falling: quantiles of the `seen` probabilities.

    The first should be the easiest to certify by the `seen` labels: of those that keep at least
    START times as many groups as suffice where no answer is wrong, it has the largest
    share kept * KL(observed error rate, `error_rate`), the rate at which evidence grows; and where
    the observed error rate of none is below the target, the lowest one. Each following threshold
    keeps a share `STEP` more.
    """
    order = np.argsort(-seen.probability, kind="stable")
    ranked = seen.probability[order]
    if not len(ranked):
        return ranked
    first = START * sufficing(error_rate, level) / max(groups, 1)
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


def enough(
    seen: Part, tested: Part, error_rate: float, level: float, single: bool = False
) -> int | None:
    """About how many groups like the tested ones would have sufficed for a guarantee.

    The tested groups are repeated, a quarter more each time, until the first threshold for that
    number passes; None where 14 times as many are too few.
    """
    for step in range(1, STEPS + 1) if tested.groups else ():
        size = math.ceil(tested.groups * GROWTH**step)
        first = threshold_sequence(seen, size, error_rate, level)[:1]
        evidence = Evidence.of(seen, tested, first, error_rate, single)
        if evidence.wrong.sum() >= error_rate * evidence.kept.sum():
            continue  # no number of such groups suffices
        repeated = np.arange(size) % tested.groups
        enlarged = replace(evidence, kept=evidence.kept[repeated], wrong=evidence.wrong[repeated])
        if enlarged.passes(error_rate, level).any():
            return size
    return None


def reason(
    seen: Part,
    tested: Part,
    error_rate: float,
    level: float,
    suffice: int | None,
    forecast: bool = True,
) -> str:
    """Why there is no guarantee, in one sentence; `suffice` is that of `enough`, which was not
    asked without `forecast`.
    """
    if not len(seen.probability) or not tested.groups:
        return "no answer has been tested"
    fewest = sufficing(error_rate, level)
    if tested.groups < fewest:
        return (
            f"needs at least {fewest} tested groups even if every answer is correct, "
            f"has {tested.groups}"
        )
    first = threshold_sequence(seen, tested.groups, error_rate, level)[0]
    kept = tested.probability >= first
    wrong = int((kept & ~tested.correct).sum())
    found = f"{wrong} of the {kept.sum()} most confident answers tested first are incorrect"
    if not forecast:
        return f"{found}, which does not show an error rate of at most {error_rate:g}"
    if suffice is None:
        return f"{found}, too many for an error rate of {error_rate:g}"
    return f"{found}, too few answers to tell; about {suffice} groups like these would be enough"


def risk_control(
    fits: Mapping[str, Mapping],
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
    single: bool = False,
    together: int = 1,
    forecast: bool = True,
) -> dict[str, object]:
    """The guarantees of one estimator as plain JSON, for the fit of the first split.

    `fits` is its entry of the calibrators. `answers` holds `example_id`, `correct` and its
    features; `splits` holds `example_id`, `split`, `rank` (of the group) and `part`. `single` says
    that the task declares no groups. `groups` is the number of tested groups. Where there is no
    threshold, `reason` says why and `enough` is that of the function, null without `forecast`: it
    takes longer than all the rest. Each of the other splits would have had a threshold of its own,
    which holds as much by itself: `other_splits` counts them, `other_thresholds` those with one,
    whose median and ends follow.
    """
    numbers = sorted(splits["split"].unique())
    level = error_level(confidence, together)
    by_split = [
        parts(
            from_json(fits["splits"][str(number)]),
            list(fits["features"]),
            answers,
            splits.filter(split=number),
        )
        for number in numbers
    ]
    seen, tested = by_split[0]
    thresholds = []
    for rate in sorted(error_rates):
        found, *others = (guarantee(*pair, rate, level, single) for pair in by_split)
        missing = found.threshold is None
        suffice = enough(seen, tested, rate, level, single) if missing and forecast else None
        why = reason(seen, tested, rate, level, suffice, forecast) if missing else None
        thresholds.append(asdict(found) | {"enough": suffice, "reason": why} | _of_others(others))
    return {
        "split": int(numbers[0]),
        "confidence": confidence,
        "together": together,
        "groups": tested.groups,
        "thresholds": thresholds,
    }


def _of_others(others: Sequence[Guarantee]) -> dict[str, float | int | None]:
    """What the guarantees of the other splits look like."""
    found = [one.threshold for one in others if one.threshold is not None]
    return {
        "other_splits": len(others),
        "other_thresholds": len(found),
        "lowest_threshold": min(found, default=None),
        "median_threshold": float(np.median(found)) if found else None,
        "highest_threshold": max(found, default=None),
        "median_coverage": float(np.median([one.coverage for one in others])) if others else None,
    }


def parts(
    calibrator: Calibrator, features: Sequence[str], answers: pl.DataFrame, split: pl.DataFrame
) -> tuple[Part, Part]:
    """The calibration and the evaluation part of a split, without answers that lack a feature."""
    joined = split.join(
        answers.drop_nulls(features), on="example_id", how="inner", validate="1:1"
    ).sort("rank", "example_id")

    def of(part: str) -> Part:
        rows = joined.filter(part=part)
        probability = calibrator.predict(rows.select(features).cast(pl.Float64).to_numpy())
        return Part(rows["rank"].to_numpy(), probability, rows["correct"].to_numpy())

    return of("calibration"), of("evaluation")
