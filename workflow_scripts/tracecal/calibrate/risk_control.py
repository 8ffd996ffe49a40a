"""Thresholds that keep the error rate among the answers kept below a target error rate.

The promise: draw a new group of examples (a question with its translations or variants) from the
task's distribution, and one of its answers at random. R(t) is the probability that the answer is
wrong, given that its estimated probability of being correct is at least t. With the stated
confidence, R at the promised threshold is at most the target error rate r. Where every group is a
single example, this is the error rate among the answers kept. Groups have equal weight, large or
small.

The method: Learn-then-Test (Angelopoulos et al. 2025) with a fixed sequence of tests. R need not
fall as t rises, so each threshold has a hypothesis of its own, H(t): R(t) > r.

- The fit, the thresholds and the order of their tests come from the calibration part of a split.
  None of its groups has members in the tested part, so all are fixed before the tested answers are
  seen.
- Z_g(t), the mean over the answers of group g of (wrong - r) where the answer is kept and 0 where
  it is not, lies in [-r, 1 - r], and H(t) says that its expectation is above 0. Groups are
  independent; their answers need not be.
- Where all tested groups are single answers, the errors among k kept answers are binomial, and
  P(Bin(k, r) <= errors) is an exact p-value, the most powerful there is.
- Otherwise by betting (Waudby-Smith and Ramdas 2024): a wealth of 1 is multiplied group by group by
  1 - b Z_g(t), with 0 <= b <= 1 / (1 - r) chosen before the group is seen. Under H(t) wealth is a
  supermartingale, so that it reaches 1 / delta with a probability of at most delta (Ville's
  inequality), whatever the bets and however correlated the answers of a group. See `bets_pass`.
- The tests are made in order, each at the full level delta = 1 - confidence, and end at the first
  that fails. A false promise needs the first true H(t) of the sequence to be rejected, which has a
  probability of at most delta (fixed-sequence testing). The promised threshold is the last that
  passed.

A promise holds for one target error rate, model and task at a time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl
from scipy.special import bdtr, ndtri, xlogy

from tracecal.calibrate.protocol import Calibrator, from_json

STEP = 0.02
# How `enough` searches: STEPS times, with a quarter more groups each time.
GROWTH, STEPS = 1.25, 12


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
        return self._shares(self._over(thresholds))

    def wrong(self, thresholds: np.ndarray) -> np.ndarray:
        """The share of each group's answers that are kept and wrong, [groups, t]."""
        return self._shares(self._over(thresholds) & ~self.correct[:, None])

    def _over(self, thresholds: np.ndarray) -> np.ndarray:
        return self.probability[:, None] >= thresholds

    def _shares(self, chosen: np.ndarray) -> np.ndarray:
        _, group, sizes = np.unique(self.group, return_inverse=True, return_counts=True)
        sums = np.zeros((len(sizes), chosen.shape[1]))
        np.add.at(sums, group, chosen)
        return sums / sizes[:, None]


@dataclass(frozen=True)
class Promise:
    """A threshold on the probability (null: none can promise this) and its test results.

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


@dataclass(frozen=True)
class Evidence:
    """The evidence for thresholds [t]: the shares of each tested group's answers that are `kept`,
    and kept and `wrong`, both [groups, t]; and `before` [seen groups, t], the Z of the calibration
    part.

    `single` says whether every tested group is one answer.
    """

    kept: np.ndarray
    wrong: np.ndarray
    before: np.ndarray
    single: bool

    @classmethod
    def of(cls, seen: Part, tested: Part, thresholds: np.ndarray, error_rate: float) -> "Evidence":
        before = seen.wrong(thresholds) - error_rate * seen.kept(thresholds)
        single = tested.groups == len(tested.probability)
        return cls(tested.kept(thresholds), tested.wrong(thresholds), before, single)

    def passes(self, error_rate: float, level: float) -> np.ndarray:
        """Whether each threshold passes its test, [t]. Only group sizes decide which test it is."""
        if self.single:
            wrong, kept = self.wrong.sum(axis=0), self.kept.sum(axis=0)
            return bdtr(wrong, kept.astype(int), error_rate) <= level
        return bets_pass(self.wrong - error_rate * self.kept, self.before, error_rate, level)


def promise(seen: Part, tested: Part, error_rate: float, confidence: float) -> Promise:
    """The most inclusive threshold that fixed-sequence testing allows.

    The calibrator was fitted on `seen`; `tested` shares no group with it.
    """
    n, level = len(tested.probability), _level(confidence)
    thresholds = threshold_sequence(seen, tested.groups, error_rate, level)
    evidence = Evidence.of(seen, tested, thresholds, error_rate)
    count = int(np.cumprod(evidence.passes(error_rate, level)).sum()) if n else 0
    if not count:
        return Promise(error_rate, None, n, 0, 0, 0.0, None)
    last = count - 1
    kept = tested.probability >= thresholds[last]
    return Promise(
        error_rate,
        float(thresholds[last]),
        n,
        int(kept.sum()),
        int((kept & ~tested.correct).sum()),
        float(evidence.kept[:, last].mean()),
        float(evidence.wrong[:, last].sum() / evidence.kept[:, last].sum()),
    )


def _level(confidence: float) -> float:
    return round(1 - confidence, 12)  # 1 - 0.9 is a little less than 0.1


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
    count = len(before) + 1
    for place, z_group in enumerate(z):
        inside = wealth.clip(1e-12, 1 - 1e-12)
        density = np.exp(-(ndtri(inside) ** 2) / 2) / math.sqrt(2 * math.pi)
        bet = density / (inside * np.sqrt((len(z) - place) * squares / count))
        factor = 1 - np.minimum(bet, 1 / (1 - error_rate)) * z_group
        wealth = np.where(wealth < 1 - 1e-12, wealth * factor.clip(min=0), wealth)
        squares = squares + z_group**2
        count += 1
    return wealth >= 1 - 1e-12


def threshold_sequence(seen: Part, groups: int, error_rate: float, level: float) -> np.ndarray:
    """Thresholds to test on a number of `groups`, falling: quantiles of the `seen` probabilities.

    The first should be the easiest to promise according to the fit: of those that keep at least
    twice as many groups as suffice where no answer is wrong, it has the largest
    share kept * KL(expected error rate, `error_rate`), the rate at which evidence grows. Each
    following threshold keeps a share `STEP` more.
    """
    suffices = math.ceil(math.log(level) / math.log(1 - error_rate))
    ranked = np.sort(seen.probability)[::-1]
    if not len(ranked):
        return ranked
    # The last step may round to a little more than 1.
    shares = np.append(np.arange(min(2 * suffices / max(groups, 1), 1.0), 1.0, STEP), 1.0).clip(
        max=1
    )
    places = np.ceil(shares * len(ranked)).astype(int)
    expected = (1 - np.cumsum(ranked) / np.arange(1, len(ranked) + 1))[places - 1]
    gain = xlogy(expected, expected / error_rate) + xlogy(
        1 - expected, (1 - expected) / (1 - error_rate)
    )
    best = int(np.argmax(np.where(expected < error_rate, shares * gain, 0)))
    return np.unique(ranked[places[best:] - 1])[::-1]


def enough(seen: Part, tested: Part, error_rate: float, confidence: float) -> int | None:
    """About how many groups like the tested ones would have sufficed for a promise.

    The tested groups are repeated, a quarter more each time, until the first threshold for that
    number passes; None where 14 times as many are too few.
    """
    level = _level(confidence)
    for step in range(1, STEPS + 1) if tested.groups else ():
        size = math.ceil(tested.groups * GROWTH**step)
        first = threshold_sequence(seen, size, error_rate, level)[:1]
        evidence = Evidence.of(seen, tested, first, error_rate)
        if evidence.wrong.sum() >= error_rate * evidence.kept.sum():
            continue  # no number of such groups suffices
        repeated = np.arange(size) % tested.groups
        enlarged = replace(evidence, kept=evidence.kept[repeated], wrong=evidence.wrong[repeated])
        if enlarged.passes(error_rate, level).any():
            return size
    return None


def risk_control(
    fits: Mapping[str, Mapping],
    answers: pl.DataFrame,
    split: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
) -> dict[str, object]:
    """The promises of one estimator as plain JSON, for the fit of one split.

    `fits` is its entry of the calibrators. `answers` holds `example_id`, `correct` and its
    features; `split` holds `example_id`, `split`, `rank` (of the group) and `part` of one split.
    `groups` is the number of tested groups; `enough`, where nothing can be promised, is that of
    the function.
    """
    number = int(split["split"][0])
    calibrator = from_json(fits["splits"][str(number)])
    seen, tested = parts(calibrator, list(fits["features"]), answers, split)
    thresholds = []
    for rate in sorted(error_rates):
        promised = promise(seen, tested, rate, confidence)
        missing = promised.threshold is None
        suffice = enough(seen, tested, rate, confidence) if missing else None
        thresholds.append(asdict(promised) | {"enough": suffice})
    return {
        "split": number,
        "confidence": confidence,
        "groups": tested.groups,
        "thresholds": thresholds,
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
