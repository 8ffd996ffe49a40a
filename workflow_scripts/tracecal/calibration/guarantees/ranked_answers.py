"""Answers with the scores that rank them: the thresholds that are guaranteed on their labels.

1. `answers = RankedAnswers(labelled, wrong, unlabelled, fitted, counted)`, scores of one ranking.
2. `answers.test(error_rates, level, largest_group)` finds a threshold for each error rate, and
   `answers.find_recall_threshold` one for a recall.
3. `answers.share_kept(threshold, largest_group)` is what a threshold keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracecal.calibration.guarantees.error_rate import (
    ErrorRateTest,
    GroupedScores,
    find_thresholds,
)
from tracecal.calibration.guarantees.recall import recall_threshold, recall_threshold_by_groups


@dataclass(frozen=True)
class RankedAnswers:
    """Answers with their ranking scores, NaN where no threshold decides about them.

    Attributes
    ----------
    labelled : GroupedScores
        The labelled answers that test.
    wrong : array [n] of bool
        Whether each of them is wrong.
    unlabelled : GroupedScores
        Answers that choose the thresholds to test; their labels are not used.
    fitted : pair of arrays, optional
        Scores of the answers that fitted the ranking, and whether each is wrong.
    counted : GroupedScores
        The answers that the share kept refers to.
    """

    labelled: GroupedScores
    wrong: np.ndarray
    unlabelled: GroupedScores
    fitted: tuple[np.ndarray, np.ndarray] | None
    counted: GroupedScores

    def test(
        self,
        error_rates: Sequence[float],
        level: float,
        largest_group: int,
    ) -> list[ErrorRateTest]:
        """Test thresholds of answers in groups of at most `largest_group`."""
        answers = self.labelled, self.wrong, self.unlabelled
        terms = error_rates, level, largest_group, False
        return find_thresholds(*answers, *terms, self.fitted)

    def find_recall_threshold(
        self, recall: float, level: float, largest_group: int
    ) -> float | None:
        """The highest threshold that is guaranteed to keep the share `recall` of right answers."""
        if largest_group > 1:
            answers = self.labelled, ~self.wrong, self.unlabelled
            return recall_threshold_by_groups(*answers, recall, level, largest_group)
        testable = self.labelled.size <= largest_group
        return recall_threshold(self.labelled.score[testable], ~self.wrong[testable], recall, level)

    def share_kept(self, threshold: float | None, largest_group: int) -> float:
        """The share of the counted answers that a guaranteed threshold keeps."""
        if threshold is None or not len(self.counted.score):
            return 0.0
        is_kept = (self.counted.score >= threshold) & (self.counted.size <= largest_group)
        return float(is_kept.mean())
