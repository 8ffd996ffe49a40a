"""Thresholds from which a small model's answer is kept, with a promise about a cascade's accuracy.

An answer is kept where its probability reaches the threshold t, and else put to a large model. Draw
a new group of questions and one of them at random. There are two promises:

- 'below': the cascade is right at most a share ε less often than the large model alone, that is
  E[(large right - small right) where kept] <= ε;
- 'at_least': the cascade is right with a probability of at least r, E[cascade wrong] <= 1 - r.

The method is that of `risk_control`. Z_g(t), the group's mean of what stands in E[] less the rate
on its right, is at most 1 - rate. Bets on whole groups test that its expectation is above 0, each
at the full level, in a fixed order that ends at the first that fails. Fit, thresholds and their
order come from the calibration part, whose groups are not tested. The first threshold is where that
part gives most evidence; each following one keeps a share STEP more.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from tracecal.calibrate.evidence import bets_pass, group_means
from tracecal.calibrate.risk_control import STEP, sufficing

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
    thresholds = threshold_sequence(seen, promise, rate)
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


def threshold_sequence(seen: PairedPart, promise: Promise, rate: float) -> np.ndarray:
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
