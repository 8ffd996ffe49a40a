"""Answers of one part of a split with their probabilities, groups and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from tracecal.calibration.fits import Fit


@dataclass(frozen=True)
class RatedAnswers:
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
class LabelledAnswers(RatedAnswers):
    """One part of a split, and whether its answers are `correct`."""

    correct: np.ndarray

    def kept(self, thresholds: np.ndarray, most: int) -> np.ndarray:
        """How much of each group thresholds [t] keep, [groups, t]."""
        return self.totals(self.over(thresholds), most)

    def wrong(self, thresholds: np.ndarray, most: int) -> np.ndarray:
        """How much of each group is kept and wrong, [groups, t]."""
        return self.totals(self.over(thresholds) & ~self.correct[:, None], most)


def split_answers(
    calibrator: Fit, features: Sequence[str], answers: pl.DataFrame, split: pl.DataFrame
) -> tuple[LabelledAnswers, LabelledAnswers]:
    """The calibration and the evaluation part of a split, without answers that lack a feature."""
    joined = split.join(
        answers.drop_nulls(features), on="example_id", how="inner", validate="1:1"
    ).sort("rank", "example_id")

    def of(part: str) -> LabelledAnswers:
        rows = joined.filter(part=part)
        probability = calibrator.predict(rows.select(pl.col(features).cast(pl.Float64)).to_numpy())
        return LabelledAnswers(rows["rank"].to_numpy(), probability, rows["correct"].to_numpy())

    return of("calibration"), of("evaluation")


Bound = Literal["below", "at_least"]  # what is guaranteed of a cascade's accuracy


@dataclass(frozen=True)
class PairedAnswers(RatedAnswers):
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


def split_paired_answers(answers: pl.DataFrame) -> tuple[PairedAnswers, PairedAnswers]:
    """The calibration and the evaluation part of a split's `answers`.

    They have `example_id`, `rank`, `part`, `probability` (null: the answer is never kept), `small`
    and `large`.
    """
    known = answers.with_columns(pl.col("probability").fill_null(-np.inf))
    split_answers = (known.filter(part=part) for part in ("calibration", "evaluation"))
    seen, tested = (
        PairedAnswers(*(own[name].to_numpy() for name in ("rank", "probability", "small", "large")))
        for own in (rows.sort("rank", "example_id") for rows in split_answers)
    )
    return seen, tested
