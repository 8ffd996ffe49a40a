"""Answers with the scores that rank them: the error rates that their labels guarantee.

1. `answers = RankedAnswers(score, wrong, unlabelled, fitted, counted)`, scores of one ranking.
2. `answers.test(error_rates, level)` finds a threshold for each error rate, and
   `RankedAnswers.find_recall_threshold` one for a recall.
3. `describe_guarantees` tests all targets, and gives the JSON values with the risk-coverage curve.

`control_error_rates` does this for the labelled answers of a run and their split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibration.fits import EstimatorFits, as_json, probabilities
from tracecal.calibration.guarantees.error_rate import ErrorRateTest, find_thresholds
from tracecal.calibration.guarantees.line import find_places, significance_level
from tracecal.calibration.guarantees.overall import confidence_at_once, overall_rows
from tracecal.calibration.guarantees.parts import PartScores, RankedParts, most_parts
from tracecal.calibration.guarantees.recall import recall_threshold
from tracecal.calibration.settings import RiskControl, Unit

SCOPES: Mapping[Unit, str] = {
    "questions": "the share of wrong answers among all that are kept, of new questions drawn as "
    "the labelled ones were, each counted once; each guarantee holds by itself",
    "answers": "the share of wrong answers among all that are kept, of new answers drawn one by "
    "one as the labelled ones were; each guarantee holds by itself",
}
SCOPE_OF_PARTS = (
    "the share of wrong parts among all that are kept, of new answers drawn as the labelled ones "
    "were; parts of answers with more than {most_parts} parts are never kept; each guarantee holds "
    "by itself"
)


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


def control_error_rates(
    estimator: str,
    fits: EstimatorFits,
    answers: pl.DataFrame,
    split: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
    overall_errors: Sequence[float] = (),
) -> dict[str, Any]:
    """Find the thresholds whose error rates one estimator guarantees.

    The calibration part of the split fixes the ranking, and its evaluation part tests thresholds.

    Parameters
    ----------
    estimator : str
        The estimator's id.
    fits : EstimatorFits
        The estimator's fits.
    answers : polars.DataFrame
        `example_id`, `correct`, the estimator's features and `represents` (`place_answers`), which
        says which answers of their questions count. Parts of answers have `parent_id`.
    split : polars.DataFrame
        `example_id`, `split`, `rank` (the random order of groups) and `part` ('calibration' or
        'evaluation'). The split with the lowest number is used.
    error_rates : sequence of float
        Target error rates.
    confidence : float
        Confidence of each guarantee.
    overall_errors : sequence of float
        Target overall error rates, of whole answers.

    Returns
    -------
    dict
        JSON values. `thresholds` has a row per error rate; without a threshold it says the `reason`
        and the number of labels that would be `enough`. `groups` is the number of tested questions,
        `about` the scope of the guarantees and `risk_coverage` the curve of the tested answers.
        `ranked_by`, `features` and `fit` say what ranks; `split` and `confidence` repeat what was
        used, and `most_parts` is the limit on parts.
    """
    number = int(split["split"].min())
    rows = split.filter(split=number).join(answers, on="example_id", validate="1:1")
    rows = rows.filter("represents").sort("rank", "example_id")
    fit = fits.splits[number]
    (score,) = probabilities(rows.select(fits.features), [fit])
    ranked = _ranked_parts if "parent_id" in rows.columns else _ranked_answers
    tested = ranked(rows, score)
    targets = RiskControl(
        error_rates=error_rates, overall_errors=overall_errors, confidence=confidence
    )
    _, content = describe_guarantees(tested, targets, "questions", with_forecast=True)
    ranking = {"ranked_by": estimator, "features": list(fits.features), "fit": as_json(fit)}
    return ranking | {"split": number} | content


def _ranked_answers(rows: pl.DataFrame, score: np.ndarray) -> RankedAnswers:
    """The answers of a split with their scores."""
    is_tested, wrong = (rows["part"] == "evaluation").to_numpy(), ~rows["correct"].to_numpy()
    tested, others = score[is_tested], score[~is_tested]
    return RankedAnswers(tested, wrong[is_tested], others, None, tested)


def _ranked_parts(rows: pl.DataFrame, score: np.ndarray) -> RankedParts:
    """The parts of a split with their scores."""
    size = rows.select(pl.len().over("parent_id")).to_series().to_numpy()
    is_tested, wrong = (rows["part"] == "evaluation").to_numpy(), ~rows["correct"].to_numpy()
    scores = PartScores(score, rows["rank"].to_numpy(), size)
    tested, others = scores.select(is_tested), scores.select(~is_tested)
    limit = most_parts(rows.group_by("parent_id").len()["len"].to_numpy())
    return RankedParts(tested, wrong[is_tested], others, tested, limit)


def describe_guarantees(
    answers: RankedAnswers | RankedParts,
    targets: RiskControl,
    unit: Unit,
    with_forecast: bool = False,
) -> tuple[list[ErrorRateTest], dict[str, Any]]:
    """Test the targets on `answers`, which count each `unit` once.

    Returns the tests of error rates, and the JSON values of all guarantees. Overall error rates are
    of whole answers.
    """
    level = significance_level(targets.confidence)
    tests = answers.test(targets.error_rates, level, with_forecast)
    content: dict[str, Any] = {
        "confidence": targets.confidence,
        "groups": answers.n_tested,
        "about": SCOPES[unit],
        "thresholds": [test.as_row() for test in tests],
    }
    ranked = ~np.isnan(answers.score)
    content["risk_coverage"] = risk_coverage(answers.score[ranked], answers.wrong[ranked])
    if isinstance(answers, RankedParts):
        parts = {"most_parts": answers.most_parts}
        return tests, content | parts | {"about": SCOPE_OF_PARTS.format(**parts)}
    if rates := targets.overall_errors:
        rows = overall_rows(answers.score, answers.wrong, rates, level)
        content["overall"] = [
            row | {"coverage": answers.share_kept(row["threshold"])} for row in rows
        ]
        content["overall_confidence"] = confidence_at_once(len(answers.score), rates, level)
    return tests, content


def risk_coverage(score: np.ndarray, wrong: np.ndarray) -> list[tuple[float, float]]:
    """The share of answers kept and the error rate among them, at up to ten thresholds.

    The thresholds keep a tenth of the answers, two tenths, and so on; tied ones are merged.
    """
    places = find_places(score, wrong)
    tenths = np.ceil(places.n * np.arange(1, 11) / 10)
    chosen = np.unique(np.searchsorted(places.kept, tenths)) if places.n else []
    n_kept, n_wrong = places.kept[chosen], places.wrong[chosen]
    return [
        *zip(
            (n_kept / places.n).round(4).tolist(), (n_wrong / n_kept).round(4).tolist(), strict=True
        )
    ]
