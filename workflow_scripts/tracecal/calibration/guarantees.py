"""Thresholds above which the error rate of the kept answers is guaranteed, for one model or two."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from scipy.special import bdtr, ndtri, xlogy

from tracecal.calibration.fits import Calibrator, from_json


def error_level(confidence: float, together: int = 1) -> float:
    """The level of each of so many tests that hold `together` with a confidence."""
    return round((1 - confidence) / together, 12)  # 1 - 0.9 is a little less than 0.1


@dataclass(frozen=True)
class Part:
    """One part of a split: arrays [answers]. Groups are numbered in the order of their tests."""

    group: np.ndarray
    probability: np.ndarray
    correct: np.ndarray

    @property
    def groups(self) -> int:
        return len(np.unique(self.group))

    def kept(self, thresholds: np.ndarray) -> np.ndarray:
        """The share of each group's answers that thresholds [t] keep, [groups, t]."""
        return group_means(self.group, self._over(thresholds))

    def wrong(self, thresholds: np.ndarray) -> np.ndarray:
        """The share of each group's answers that are kept and wrong, [groups, t]."""
        return group_means(self.group, self._over(thresholds) & ~self.correct[:, None])

    def _over(self, thresholds: np.ndarray) -> np.ndarray:
        return self.probability[:, None] >= thresholds


def group_means(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of `values` [answers, t] in each group, [groups, t]."""
    _, member_of, sizes = np.unique(group, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, member_of, values)
    return sums / sizes[:, None]


@dataclass(frozen=True)
class Evidence:
    """The evidence for thresholds [t]: the shares of each tested group's answers that are `kept`,
    and kept and `wrong`, both [groups, t]; and `before` [seen groups, t], the Z of the calibration
    part.

    `single` says whether the task declares every answer to be a group of its own.
    """

    kept: np.ndarray
    wrong: np.ndarray
    before: np.ndarray
    single: bool

    @classmethod
    def of(
        cls, seen: Part, tested: Part, thresholds: np.ndarray, error_rate: float, single: bool
    ) -> "Evidence":
        before = seen.wrong(thresholds) - error_rate * seen.kept(thresholds)
        return cls(tested.kept(thresholds), tested.wrong(thresholds), before, single)

    def passes(self, error_rate: float, level: float) -> np.ndarray:
        """Whether each threshold passes its test, [t]."""
        if self.single:
            wrong, kept = self.wrong.sum(axis=0), self.kept.sum(axis=0)
            return bdtr(wrong, kept.astype(int), error_rate) <= level
        return bets_pass(self.wrong - error_rate * self.kept, self.before, error_rate, level)


def bets_pass(z: np.ndarray, before: np.ndarray, error_rate: float, level: float) -> np.ndarray:
    """Whether wealth reaches 1 / level by bets against each column's mean being above 0, [t].

    `z` [groups, t] are the Z of the tested groups in order, `before` [seen groups, t] those of the
    calibration part, which only steer the bets. Wealth should be 1 / level at the last group: with
    m groups to go, of variance v, a Gaussian walk from level * wealth = Φ(d) to 1 is bet at
    φ(d) / (Φ(d) sqrt(m v)), which nearly attains the power of the test that knows the walk. v is
    the mean square of the Z so far and of one group that is all wrong.
    """
    wealth = np.full(z.shape[1], level)
    squares = (before**2).sum(axis=0) + (1 - error_rate) ** 2
    squares = np.cumsum(np.vstack([squares, z[:-1] ** 2]), axis=0)
    place = np.arange(len(z))[:, None]
    spread = np.sqrt((len(z) - place) * squares / (len(before) + 1 + place))
    for z_group, spread_to_go in zip(z, spread, strict=True):
        inside = np.minimum(np.maximum(wealth, 1e-12), 1 - 1e-12)
        density = np.exp(-(ndtri(inside) ** 2) / 2) / math.sqrt(2 * math.pi)
        bet = np.minimum(density / (inside * spread_to_go), 1 / (1 - error_rate))
        won = wealth * np.maximum(1 - bet * z_group, 0)
        wealth = np.where(wealth < 1 - 1e-12, won, wealth)
    return wealth >= 1 - 1e-12


# Thresholds that keep the error rate among the answers kept below a target error rate.


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


# Thresholds from which a small model's answer is kept, with a promise about a cascade's accuracy.


Promise = Literal["below", "at_least"]


@dataclass(frozen=True)
class PairedPart:
    """One part of a split: arrays [answers], groups numbered in the order of their tests."""

    group: np.ndarray
    probability: np.ndarray
    small: np.ndarray
    large: np.ndarray

    @property
    def groups(self) -> int:
        return len(np.unique(self.group))

    def lost(self, thresholds: np.ndarray, promise: Promise) -> np.ndarray:
        """What a promise bounds, in each group at thresholds [t]: [groups, t]."""
        kept = self._kept(thresholds)
        small, large = (one.astype(float)[:, None] for one in (self.small, self.large))
        if promise == "below":
            return group_means(self.group, (large - small) * kept)
        return group_means(self.group, 1 - np.where(kept, small, large))

    def escalated(self, threshold: float) -> float:
        """The share of a random group's answers that go to the large model."""
        return float(group_means(self.group, ~self._kept(np.array([threshold]))).mean())

    def _kept(self, thresholds: np.ndarray) -> np.ndarray:
        return self.probability[:, None] >= thresholds


@dataclass(frozen=True)
class CascadeGuarantee:
    """A certified threshold (null: there is none, and `reason` says why) and its test results.

    `promised` is ε or r. `escalated` and the accuracies are estimates for a random answer of a
    random group of the `groups` tested ones; without a threshold all is escalated.
    """

    promise: Promise
    promised: float
    threshold: float | None
    n: int
    groups: int
    escalated: float
    accuracy: float | None
    small_accuracy: float | None
    large_accuracy: float | None
    reason: str | None


def paired_parts(answers: pl.DataFrame) -> tuple[PairedPart, PairedPart]:
    """The calibration and the evaluation part of a split's `answers`.

    They have `example_id`, `rank`, `part`, `probability` (null counts as the least), `small` and
    `large`.
    """
    rows = answers.with_columns(pl.col("probability").fill_null(-1.0)).sort("rank", "example_id")
    parts = (rows.filter(part=part) for part in ("calibration", "evaluation"))
    seen, tested = (
        PairedPart(*(own[name].to_numpy() for name in ("rank", "probability", "small", "large")))
        for own in parts
    )
    return seen, tested


def cascade_guarantee(
    seen: PairedPart, tested: PairedPart, promise: Promise, promised: float, level: float
) -> CascadeGuarantee:
    """The lowest threshold that fixed-sequence testing at `level` allows, keeping most answers.

    The calibrator was fitted on `seen`; `tested` shares no group with it. `promised` is in (0, 1).
    """
    rate = promised if promise == "below" else 1 - promised
    n, groups = len(tested.probability), tested.groups
    thresholds = cascade_thresholds(seen, promise, rate)
    if not n or not len(thresholds):
        known = (None, None, None, "no answer has been tested")
        return CascadeGuarantee(promise, promised, None, n, groups, 1.0, *known)
    losses = tested.lost(thresholds, promise)
    passed = bets_pass(losses - rate, seen.lost(thresholds, promise) - rate, rate, level)
    count = int(np.cumprod(passed).sum())
    threshold = float(thresholds[count - 1]) if count else None
    at = np.inf if threshold is None else threshold
    # What is lost where nothing, what, and everything is kept.
    wrong = tested.lost(np.array([-np.inf, at, np.inf]), "at_least").mean(axis=0)
    small, cascade, large = (1 - wrong).tolist()
    reason = None
    if threshold is None:
        fewest = sufficing(rate, level)
        reason = (
            f"needs at least {fewest} tested groups even if nothing is lost, has {groups}"
            if groups < fewest
            else f"with {groups} tested groups, keeping the most confident answers is not shown "
            "to be good enough"
        )
    return CascadeGuarantee(
        promise,
        promised,
        threshold,
        n,
        groups,
        tested.escalated(at),
        cascade,
        small,
        large,
        reason,
    )


def cascade_thresholds(seen: PairedPart, promise: Promise, rate: float) -> np.ndarray:
    """Thresholds in the order of their tests, falling: quantiles of the `seen` probabilities.

    The first has the largest ratio of -ΣZ to sqrt(ΣZ²), with one group that is lost as a whole
    added to the latter.
    """
    ranked = -np.sort(-seen.probability)
    if not len(ranked):
        return ranked
    shares = np.append(np.arange(STEP, 1.0, STEP), 1.0)
    thresholds = ranked[np.ceil(shares * len(ranked)).astype(int) - 1]
    z = seen.lost(thresholds, promise) - rate
    evidence = -z.sum(axis=0) / np.sqrt((z**2).sum(axis=0) + (1 - rate) ** 2)
    return np.unique(thresholds[int(np.argmax(evidence)) :])[::-1]
