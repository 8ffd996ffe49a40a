"""Answers with probabilities, in groups: what cascades are tested on, and simulations draw.

`split_paired_answers` makes the two sides of a split for the cascade of two models. Where an
argument `largest_group` limits how many answers of a group count, each answer of a group of n
weighs 1 / max(n, largest_group), and the group as much as its answers together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl


@dataclass(frozen=True)
class RatedAnswers:
    """Answers with probabilities.

    Attributes
    ----------
    group : array [answers]
        The group of each answer; groups are tested in the order of their numbers.
    probability : array [answers]
        The calibrated probability of each answer.
    """

    group: np.ndarray
    probability: np.ndarray

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray]:
        """The index of each answer's group [answers], and the size of each group."""
        return np.unique(self.group, return_inverse=True, return_counts=True)[1:]

    @property
    def n_groups(self) -> int:
        return len(self._groups[1])

    @property
    def largest_group(self) -> int:
        """The size of the largest group; 1 without any."""
        return int(self._groups[1].max(initial=1))

    def group_weights(self, largest_group: int) -> np.ndarray:
        """The weight of each group, at most 1: [groups]."""
        sizes = self._groups[1]
        return sizes / np.maximum(sizes, largest_group)

    def sum_by_group(self, values: np.ndarray, largest_group: int) -> np.ndarray:
        """The weighted sum of `values` [answers, t] in each group, [groups, t]."""
        index, sizes = self._groups
        if len(sizes) == len(values):
            sums = np.empty(values.shape)
            sums[index] = values
        else:
            order = np.argsort(index, kind="stable")
            starts = np.cumsum(sizes) - sizes
            sums = np.add.reduceat(values[order].astype(float), starts, axis=0)
        return sums / np.maximum(sizes, largest_group)[:, None]

    def is_kept(self, thresholds: np.ndarray) -> np.ndarray:
        """Whether thresholds [t] keep each answer, [answers, t]."""
        return self.probability[:, None] >= thresholds


@dataclass(frozen=True)
class LabelledAnswers(RatedAnswers):
    """Answers with probabilities and verdicts `correct` [answers]."""

    correct: np.ndarray


# What a guarantee says of a cascade's accuracy: how far it lies below the large model's, or at
# least which value it has.
Bound = Literal["below", "at_least"]


@dataclass(frozen=True)
class PairedAnswers(RatedAnswers):
    """Answers of a small and a large model to the same questions.

    `small` and `large` [answers] say which model is right. The probability is the small model's,
    minus infinity where it has none.
    """

    small: np.ndarray
    large: np.ndarray

    def loss(self, thresholds: np.ndarray, bound: Bound, largest_group: int) -> np.ndarray:
        """The weighted loss in each group that a guarantee bounds, [groups, t]."""
        is_kept = self.is_kept(thresholds)
        small, large = (right.astype(float)[:, None] for right in (self.small, self.large))
        if bound == "below":
            return self.sum_by_group((large - small) * is_kept, largest_group)
        return self.sum_by_group(1 - np.where(is_kept, small, large), largest_group)


def split_paired_answers(answers: pl.DataFrame) -> tuple[PairedAnswers, PairedAnswers]:
    """Return the calibration and the evaluation part of a split's `answers`.

    They have `example_id`, `rank`, `part`, `probability` (None: the answer is never kept), `small`
    and `large`.
    """
    rows = answers.with_columns(pl.col("probability").fill_null(-np.inf)).sort("rank", "example_id")

    def select_part(part: str) -> PairedAnswers:
        frame = rows.filter(part=part)
        columns = ("rank", "probability", "small", "large")
        return PairedAnswers(*(frame[name].to_numpy() for name in columns))

    return select_part("calibration"), select_part("evaluation")
