"""The error rates that a calibrator guarantees.

`find_guarantees(training, fits, data, settings)` chooses what ranks the answers to keep, tests
thresholds on the labels that have not fitted it, and returns what the calibrator's file holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.bets import significance_level
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.groups import group_size_choices
from tracecal.calibration.groups import largest_group as choose_largest_group
from tracecal.calibration.guarantees.by_value import errors_by_value, joint_confidence
from tracecal.calibration.guarantees.control import describe_tests
from tracecal.calibration.guarantees.error_rate import ErrorRateTest, lacks_unlabelled
from tracecal.calibration.guarantees.ranked_answers import RankedAnswers
from tracecal.calibration.guarantees.recall import keep_both, right_answers_needed
from tracecal.calibrator.catalogue import describe_dependence
from tracecal.calibrator.ranking import Ranking, choose_ranking, rank_answers
from tracecal.calibrator.schema import (
    BothThreshold,
    CalibrationData,
    ErrorRateControl,
    ErrorsByColumn,
    GroupChoice,
    RecallControl,
    RecallThreshold,
    Reference,
)
from tracecal.calibrator.settings import FitSettings
from tracecal.calibrator.training_set import TrainingSet
from tracecal.errors import InputError
from tracecal.estimators.registry import LOG_RIDGE_ALSO

MAX_VALUES = 200  # of a column that errors are counted by
NO_VALUE = "none"  # the value of answers whose rows lack the column


class AnswerColumn(NamedTuple):
    """A column of the answers: its path, and its values by id."""

    path: str
    values: Mapping[str, str]


def find_guarantees(
    training: TrainingSet,
    fits: Mapping[str, EstimatorFits],
    data: CalibrationData,
    settings: FitSettings,
    estimator: str | None = None,
    recall: float | None = None,
    by: AnswerColumn | None = None,
) -> tuple[ErrorRateControl, Reference]:
    """Test thresholds for the error rates of the settings, and for a recall.

    Parameters
    ----------
    training : TrainingSet
        The labelled and unlabelled answers.
    fits : mapping
        The fits of its estimators, of which one may rank.
    data : CalibrationData
        Description of the labelled answers. If the ranking takes entropies, answers with unusual
        entropies neither test nor are kept.
    settings : FitSettings
        Error rates, confidence, and the largest group that counts.
    estimator : str, optional
        Estimator that ranks, instead of the default (`choose_ranking`).
    recall : float, optional
        The share of the right answers to keep.
    by : AnswerColumn, optional
        A column to count errors by.

    Returns
    -------
    ErrorRateControl
        The ranking, the thresholds, and how they were tested.
    Reference
        Scores of the tested answers, for monitors to compare new ones with.
    """
    control = settings.risk_control
    level, rates = significance_level(control.confidence), control.error_rates
    sizes = _group_sizes(training)
    largest_group = control.largest_group or choose_largest_group(sizes)
    ranking = choose_ranking(training, fits, largest_group, estimator)
    answers = rank_answers(training, data, ranking)
    tests = answers.test(rates, level, largest_group)
    content = describe_tests(tests, answers.labelled, answers.wrong, sizes, largest_group)
    if ranking.ranked_by == LOG_RIDGE_ALSO.id:
        content["about"] += f"; answers are kept by {describe_dependence(data.columns)}"
    for row in content["thresholds"]:
        row["coverage"] = answers.share_kept(row["threshold"], largest_group)
    content |= {
        "ranked_by": ranking.ranked_by,
        "features": [name.split(".", 1)[1] for name in ranking.columns],
        "fit": ranking.fit,
        "confidence": control.confidence,
        "joint_confidence": joint_confidence(level, len(rates)),
        "group_choices": _group_choices(answers, sizes, rates, level),
        "coverage_of": len(answers.counted.score),
        "recall": recall and _recall_control(answers, recall, rates, level, largest_group),
        "by": by and _errors_by_column(answers, ranking, tests, by, largest_group, level),
    }
    return ErrorRateControl.model_validate(content), ranking.reference()


def _group_sizes(training: TrainingSet) -> np.ndarray:
    """The number of answers of each group, unlabelled ones among them, [groups]."""
    columns = "group_id", "size"
    rows = pl.concat([training.frame.select(columns), training.unlabelled.select(columns)])
    return rows.unique("group_id")["size"].sort().to_numpy()


def _group_choices(
    answers: RankedAnswers, sizes: np.ndarray, error_rates: Sequence[float], level: float
) -> list[GroupChoice]:
    """The largest groups that make sense, and what each would keep; none where all are single."""
    choices = []
    for largest_group, larger in group_size_choices(sizes).items() if sizes.max() > 1 else ():
        tests = answers.test(error_rates, level, largest_group)
        coverage = [answers.share_kept(test.threshold, largest_group) for test in tests]
        choice = GroupChoice(
            largest_group=largest_group, larger_groups=round(larger, 4), coverage=coverage
        )
        choices.append(choice)
    return choices


def _recall_control(
    answers: RankedAnswers,
    recall: float,
    error_rates: Sequence[float],
    level: float,
    largest_group: int,
) -> RecallControl:
    """Guarantee a recall alone, and with each error rate at half the level each."""
    threshold = answers.find_recall_threshold(recall, level, largest_group)
    n_right = int((~answers.wrong[answers.labelled.size <= largest_group]).sum())
    needed = right_answers_needed(recall, level)
    reason = None
    if threshold is None:
        reason = f"a recall of {recall:g} needs at least {needed} right answers with a score that "
        reason += f"test; there are {n_right}"
        if largest_group > 1:
            reason = lacks_unlabelled(answers.unlabelled) or reason
    half = level / 2
    tests = answers.test(error_rates, half, largest_group)
    lower = answers.find_recall_threshold(recall, half, largest_group)
    both = [(test.error_rate, keep_both(test.guaranteed, lower)) for test in tests]
    return RecallControl(
        alone=RecallThreshold(
            recall=recall,
            threshold=threshold,
            right=n_right,
            coverage=answers.share_kept(threshold, largest_group),
            reason=reason,
        ),
        both=[
            BothThreshold(
                error_rate=rate, threshold=at, coverage=answers.share_kept(at, largest_group)
            )
            for rate, at in both
        ],
    )


def _errors_by_column(
    answers: RankedAnswers,
    ranking: Ranking,
    tests: Sequence[ErrorRateTest],
    by: AnswerColumn,
    largest_group: int,
    level: float,
) -> ErrorsByColumn:
    """Count the errors of the kept answers that tested, by the values of a column."""
    values = [by.values.get(name, NO_VALUE) for name in ranking.tested["example_id"]]
    if len({*values}) > MAX_VALUES:
        raise InputError(
            f"--by {by.path}: the labelled answers have {len({*values})} values, more than "
            f"{MAX_VALUES}; name a column with few, such as a task or a language."
        )
    rows = []
    for test in tests:
        if test.threshold is None:
            continue
        is_kept = answers.labelled.score >= test.threshold
        is_kept &= answers.labelled.size <= largest_group
        for row in errors_by_value(values, is_kept, answers.wrong, level):
            rows.append({"error_rate": test.error_rate} | asdict(row))
    return ErrorsByColumn(column=by.path, values=rows)
