"""Answers with the scores that rank them: the thresholds that are guaranteed on their labels.

1. `answers = RankedAnswers(score, wrong, unlabelled, fitted, counted)`, scores of one ranking.
2. `answers.test(error_rates, level)` finds a threshold for each error rate, and
   `RankedAnswers.find_recall_threshold` one for a recall.
3. `answers.share_kept(threshold)` is what a threshold keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracecal.calibration.guarantees.error_rate import ErrorRateTest, find_thresholds
from tracecal.calibration.guarantees.recall import recall_threshold


@dataclass(frozen=True)
class RankedAnswers:
    """Answers, one of each question, with their ranking scores; NaN where no threshold decides.

    Attributes
    ----------
    score : array [n]
        The scores of the labelled answers that test.
    wrong : array [n] of bool
        Whether each of them is wrong.
    unlabelled : array [m]
        Scores of answers that choose the thresholds to test; their labels are not used.
    fitted : pair of arrays, optional
        Scores of the answers that fitted the ranking, and whether each is wrong.
    counted : array
        Scores of the answers that the share kept refers to.
    """

    score: np.ndarray
    wrong: np.ndarray
    unlabelled: np.ndarray
    fitted: tuple[np.ndarray, np.ndarray] | None
    counted: np.ndarray

    @property
    def n_tested(self) -> int:
        """How many questions test."""
        return int((~np.isnan(self.score)).sum())

    @property
    def n_right(self) -> int:
        """How many right answers test."""
        return int((~self.wrong).sum())

    def test(
        self, error_rates: Sequence[float], level: float, with_forecast: bool = False
    ) -> list[ErrorRateTest]:
        """Find the thresholds of each error rate, smallest rate first."""
        answers = self.score, self.wrong, self.unlabelled
        return find_thresholds(*answers, error_rates, level, with_forecast, self.fitted)

    def find_recall_threshold(self, recall: float, level: float) -> float | None:
        """The highest threshold that is guaranteed to keep the share `recall` of right answers."""
        return recall_threshold(self.score, ~self.wrong, recall, level)

    @property
    def n_counted(self) -> int:
        """Of how many answers the share kept is."""
        return len(self.counted)

    def lacks_unlabelled(self) -> str | None:
        """Why a guarantee needs more unlabelled answers: none does."""
        return None

    def share_kept(self, threshold: float | None) -> float:
        """The share of the counted answers that a guaranteed threshold keeps."""
        if threshold is None or not len(self.counted):
            return 0.0
        return float((self.counted >= threshold).mean())
