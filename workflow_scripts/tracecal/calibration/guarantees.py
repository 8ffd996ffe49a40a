"""Thresholds above which the error rate of the kept answers is guaranteed, for one model or two."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from scipy.special import bdtr, ndtri, xlogy

from tracecal.calibration.fits import Fit, from_json


def error_level(confidence: float, together: int = 1) -> float:
    """The level of each of so many tests that hold `together` with a confidence."""
    return round((1 - confidence) / together, 12)  # 1 - 0.9 is a little less than 0.1


@dataclass(frozen=True)
class Grouped:
    """Answers with their probabilities: arrays [answers]. Groups are numbered in the order of their
    tests.

    Where an argument `most` says with how many answers a group counts at most, each answer of a
    group of n weighs 1 / max(n, most), and the group as much as its answers.
    """

    group: np.ndarray
    probability: np.ndarray

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each answer's group [answers], and how many answers groups have."""
        return np.unique(self.group, return_inverse=True, return_counts=True)[1:]

    @property
    def groups(self) -> int:
        return len(self._members[1])

    @property
    def largest(self) -> int:
        """How many answers the largest group has; 1 where there is none."""
        return int(self._members[1].max(initial=1))

    def weights(self, most: int) -> np.ndarray:
        """The weight of each group, at most 1: [groups]."""
        sizes = self._members[1]
        return sizes / np.maximum(sizes, most)

    def totals(self, values: np.ndarray, most: int) -> np.ndarray:
        """The weighted sum of `values` [answers, t] in each group, [groups, t]."""
        member_of, sizes = self._members
        if len(sizes) == len(values):
            sums = np.empty(values.shape)
            sums[member_of] = values
        else:
            order = np.argsort(member_of, kind="stable")
            starts = np.cumsum(sizes) - sizes
            sums = np.add.reduceat(values[order].astype(float), starts, axis=0)
        return sums / np.maximum(sizes, most)[:, None]

    def over(self, thresholds: np.ndarray) -> np.ndarray:
        """Whether thresholds [t] keep each answer, [answers, t]."""
        return self.probability[:, None] >= thresholds


@dataclass(frozen=True)
class Part(Grouped):
    """One part of a split, and whether its answers are `correct`."""

    correct: np.ndarray

    def kept(self, thresholds: np.ndarray, most: int) -> np.ndarray:
        """How much of each group thresholds [t] keep, [groups, t]."""
        return self.totals(self.over(thresholds), most)

    def wrong(self, thresholds: np.ndarray, most: int) -> np.ndarray:
        """How much of each group is kept and wrong, [groups, t]."""
        return self.totals(self.over(thresholds) & ~self.correct[:, None], most)


@dataclass(frozen=True)
class Evidence:
    """The evidence for thresholds [t]: how much of each tested group is `kept`, and kept and
    `wrong`, both [groups, t]; and `before` [seen groups, t], the Z of the calibration
    part.

    `single` says whether the task declares every answer to be a group of its own.
    """

    kept: np.ndarray
    wrong: np.ndarray
    before: np.ndarray
    single: bool

    @classmethod
    def of(
        cls,
        seen: Part,
        tested: Part,
        thresholds: np.ndarray,
        error_rate: float,
        single: bool,
        most: int,
    ) -> "Evidence":
        before = seen.wrong(thresholds, most) - error_rate * seen.kept(thresholds, most)
        return cls(tested.kept(thresholds, most), tested.wrong(thresholds, most), before, single)

    def passes(self, error_rate: float, level: float) -> np.ndarray:
        """Whether each threshold passes its test, [t]."""
        if self.single:
            wrong, kept = self.wrong.sum(axis=0), self.kept.sum(axis=0)
            return bdtr(wrong, kept.astype(int), error_rate) <= level
        return bets_pass(self.wrong - error_rate * self.kept, self.before, error_rate, level)


def bets_pass(
    z: np.ndarray, before: np.ndarray, error_rate: float | np.ndarray, level: float
) -> np.ndarray:
    """Whether wealth reaches 1 / level by bets against each column's mean being above 0, [t].

    `error_rate` is that of all columns or of each [t]: no Z is above 1 less the rate.
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
    most = 1 / (1 - error_rate)
    for z_group, spread_to_go in zip(z, spread, strict=True):
        inside = np.minimum(np.maximum(wealth, 1e-12), 1 - 1e-12)
        density = np.exp(-(ndtri(inside) ** 2) / 2) / math.sqrt(2 * math.pi)
        bet = np.minimum(density / (inside * spread_to_go), most)
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


def guarantee(
    seen: Part,
    tested: Part,
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
    seen: Part,
    tested: Part,
    error_rates: Sequence[float],
    level: float,
    single: bool,
    largest: int | None,
) -> list[Guarantee]:
    """The `guarantee` of each rate. All are tested at once: bets on many thresholds cost little
    more than bets on few.
    """
    most = counted(seen, single, largest)
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
        together = bets_pass(np.hstack(z), before, np.repeat(error_rates, widths), level)
        passed = np.split(together, np.cumsum(widths)[:-1])
    return [
        _told(tested, rate, thresholds, one, ok, most)
        for rate, thresholds, one, ok in zip(error_rates, sequences, evidence, passed, strict=True)
    ]


def _told(
    tested: Part,
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


def counted(seen: Part, single: bool, largest: int | None) -> int:
    """With how many answers a group counts at most; arguments as of `guarantee`."""
    return 1 if single else largest or seen.largest


def guarantees(
    seen: Part,
    tested: Part,
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


def sufficing(error_rate: float, level: float) -> int:
    """How many groups suffice for a guarantee where no answer is wrong."""
    return math.ceil(math.log(level) / math.log(1 - error_rate))


def threshold_sequence(
    seen: Part, groups: int, error_rate: float, level: float, most: int = 1
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
    first = START * sufficing(error_rate, level) / weight
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
    seen: Part,
    tested: Part,
    error_rate: float,
    level: float,
    single: bool = False,
    largest: int | None = None,
) -> int | None:
    """About how many groups like the tested ones would have sufficed for a guarantee.

    The tested groups are repeated, a quarter more each time, until the first threshold for that
    number passes; None where 14 times as many are too few. Arguments as of `guarantee`.
    """
    most = counted(seen, single, largest)
    for step in range(1, STEPS + 1) if tested.groups else ():
        size = math.ceil(tested.groups * GROWTH**step)
        repeated = np.arange(size) % tested.groups
        first = threshold_sequence(seen, size, error_rate, level, most)[:1]
        evidence = Evidence.of(seen, tested, first, error_rate, single, most)
        if evidence.wrong.sum() >= error_rate * evidence.kept.sum():
            continue  # no number of such groups suffices
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
    most: int = 1,
    forecast: bool = True,
) -> str:
    """Why there is no guarantee, in one sentence; `suffice` is that of `enough`, which was not
    asked without `forecast`. A group counts with at most `most` answers.
    """
    if not len(seen.probability) or not tested.groups:
        return "no answer has been tested"
    fewest, weights = sufficing(error_rate, level), tested.weights(most).sum()
    if tested.groups < fewest:
        return (
            f"needs at least {fewest} tested groups even if every answer is correct, "
            f"has {tested.groups}"
        )
    if weights < fewest:
        return (
            f"needs about {fewest} tested groups of {most} answers even if every answer is "
            f"correct; the {tested.groups} tested ones, most of them smaller, count as "
            f"{weights:.1f}: label more, or state a smaller risk_control.largest_group"
        )
    first = threshold_sequence(seen, tested.groups, error_rate, level, most)[0]
    kept = tested.probability >= first
    wrong = int((kept & ~tested.correct).sum())
    found = f"{wrong} of the {kept.sum()} most confident answers tested first are incorrect"
    if not forecast:
        return f"{found}, which does not show an error rate of at most {error_rate:g}"
    if suffice is None:
        return f"{found}, too many for an error rate of {error_rate:g}"
    return f"{found}, too few answers to tell; if more groups are like these, {suffice} will do"


def risk_control(
    fits: Mapping[str, Mapping],
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
    single: bool = False,
    together: int = 1,
    largest: int | None = None,
    forecast: bool = True,
) -> dict[str, object]:
    """The guarantees of one estimator as plain JSON, for the fit of the first split.

    `fits` is its entry of the calibrators. `answers` holds `example_id`, `correct` and its
    features; `splits` holds `example_id`, `split`, `rank` (of the group) and `part`. `single` says
    that the task declares no groups. `groups` is the number of tested groups, of which each counts
    with at most `largest_group` answers: `largest`, or the size of the calibration part's largest
    where that is null. Where there is no threshold, `reason` says why and `enough` is that of the
    function, null without `forecast`: it takes longer than all the rest. Each of the other splits
    would have had a threshold of its own, which holds as much by itself: `other_splits` counts
    them, `other_thresholds` those with one, whose median and ends follow. `risk_coverage` is that
    of the tested answers, and `about` says what the guarantees are about.
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
    most = counted(seen, single, largest)
    every = [guarantees(*pair, error_rates, level, single, largest) for pair in by_split]
    thresholds = []
    for found, *others in zip(*every, strict=True):
        rate, missing = found.error_rate, found.threshold is None
        suffice = None
        if missing and forecast:
            suffice = enough(seen, tested, rate, level, single, largest)
        why = reason(seen, tested, rate, level, suffice, most, forecast) if missing else None
        thresholds.append(asdict(found) | {"enough": suffice, "reason": why} | _of_others(others))
    return {
        "split": int(numbers[0]),
        "confidence": confidence,
        "together": together,
        "groups": tested.groups,
        "largest_group": most,
        "about": about(together),
        "thresholds": thresholds,
        "risk_coverage": risk_coverage(tested, most),
    }


def about(together: int) -> str:
    """What guarantees are about that hold `together`."""
    each = "each guarantee holds by itself" if together == 1 else f"{together} hold together"
    return (
        "the share of wrong answers among all that are kept, of new questions drawn as the "
        f"labelled ones were; {each}"
    )


def risk_coverage(tested: Part, most: int) -> list[tuple[float, float]]:
    """The share kept and the share wrong of the kept, at thresholds that keep about a tenth of the
    answers, two tenths, and so on; groups count as in the guarantees, with at most `most` answers.
    """
    ranked = -np.sort(-tested.probability)
    if not len(ranked):
        return []
    places = -(-len(ranked) * np.arange(1, 11) // 10) - 1
    thresholds = np.unique(ranked[places])[::-1]
    kept = tested.kept(thresholds, most).sum(axis=0)
    share = kept / tested.weights(most).sum()
    wrong = tested.wrong(thresholds, most).sum(axis=0) / kept
    return [*zip(share.round(4).tolist(), wrong.round(4).tolist(), strict=True)]


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
    calibrator: Fit, features: Sequence[str], answers: pl.DataFrame, split: pl.DataFrame
) -> tuple[Part, Part]:
    """The calibration and the evaluation part of a split, without answers that lack a feature."""
    joined = split.join(
        answers.drop_nulls(features), on="example_id", how="inner", validate="1:1"
    ).sort("rank", "example_id")

    def of(part: str) -> Part:
        rows = joined.filter(part=part)
        probability = calibrator.predict(rows.select(pl.col(features).cast(pl.Float64)).to_numpy())
        return Part(rows["rank"].to_numpy(), probability, rows["correct"].to_numpy())

    return of("calibration"), of("evaluation")


# Thresholds from which a small model's answer is kept, with a guarantee about a cascade's accuracy.


Bound = Literal["below", "at_least"]  # what is guaranteed of a cascade's accuracy


@dataclass(frozen=True)
class PairedPart(Grouped):
    """One part of a split, and whether each model is right; -inf stands for no probability."""

    small: np.ndarray
    large: np.ndarray

    def lost(self, thresholds: np.ndarray, promise: Bound, most: int) -> np.ndarray:
        """Weighted sum in each group of what a guarantee bounds at thresholds [t]: [groups, t]."""
        kept = self.over(thresholds)
        small, large = (one.astype(float)[:, None] for one in (self.small, self.large))
        if promise == "below":
            return self.totals((large - small) * kept, most)
        return self.totals(1 - np.where(kept, small, large), most)


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


def paired_parts(answers: pl.DataFrame) -> tuple[PairedPart, PairedPart]:
    """The calibration and the evaluation part of a split's `answers`.

    They have `example_id`, `rank`, `part`, `probability` (null: the answer is never kept), `small`
    and `large`.
    """
    known = answers.with_columns(pl.col("probability").fill_null(-np.inf))
    parts = (known.filter(part=part) for part in ("calibration", "evaluation"))
    seen, tested = (
        PairedPart(*(own[name].to_numpy() for name in ("rank", "probability", "small", "large")))
        for own in (rows.sort("rank", "example_id") for rows in parts)
    )
    return seen, tested


def cascade_guarantee(
    seen: PairedPart,
    tested: PairedPart,
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
    count = int(np.cumprod(bets_pass(losses, before, rate, level)).sum())
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
    fewest, groups = sufficing(rate, level), len(weights)
    if groups < fewest:
        return f"needs at least {fewest} tested groups even if nothing is lost, has {groups}"
    counted = "" if weights.sum() == groups else f", which count as {weights.sum():.1f},"
    return (
        f"with {groups} tested groups{counted} keeping the most confident answers is not shown to "
        "be good enough"
    )


def cascade_thresholds(seen: PairedPart, promise: Bound, rate: float, most: int) -> np.ndarray:
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
