"""The error rates that a calibrator guarantees.

`find_guarantees(ranking, answers, targets)` tests thresholds on the labels that have not fitted the
ranking, and returns what the calibrator's file holds.
`with_forecasts` adds how many labels would be enough where there is no threshold; it simulates the
labelled answers as a population, as `tracecal plan` does (`labelled_population`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy

from tracecal.answers.answers import require_threads
from tracecal.answers.record import ALSO
from tracecal.calibrator.answer_ranking import Ranking
from tracecal.calibrator.catalogue import describe_dependence
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    ErrorRateControl,
    ErrorsByColumn,
    HeldOut,
    RecallThreshold,
    ValueErrors,
)
from tracecal.errors import InputError
from tracecal.fits.fit_settings import RiskControl, Unit
from tracecal.guarantees.error_rate import (
    ErrorRateTest,
    RankedAnswers,
    confidence_at_once,
    overall_rows,
)
from tracecal.guarantees.forecast import MOST, LabelledPopulation, labels_needed, normal_scores
from tracecal.guarantees.line import find_places, significance_level
from tracecal.guarantees.part_tests import PARTS_NEED, RankedParts
from tracecal.guarantees.recall import recall_threshold, right_answers_needed

MAX_VALUES = 200  # of a column that errors are counted by
NO_VALUE = "none"  # the value of answers whose rows lack the column
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


class AnswerColumn(NamedTuple):
    """A column of the answers: its path, and its values by id."""

    path: str
    values: Mapping[str, str]


def find_guarantees(
    ranking: Ranking,
    answers: RankedAnswers | RankedParts,
    targets: RiskControl,
    unit: Unit = "questions",
    recall: float | None = None,
    by: AnswerColumn | None = None,
) -> ErrorRateControl:
    """Test thresholds for error rates, overall error rates and a recall.

    Parameters
    ----------
    ranking : Ranking
        What ranks the answers.
    answers : RankedAnswers or RankedParts
        The answers with its scores (`rank_answers`, `rank_split`).
    targets : RiskControl
        Error rates and confidence. Overall error rates are of whole answers.
    unit : {"questions", "answers"}
        What was drawn at random, which each guarantee counts once.
    recall : float, optional
        The share of the right answers to keep.
    by : AnswerColumn, optional
        A column to count errors by.

    Returns
    -------
    ErrorRateControl
        The ranking, the thresholds, and how they were tested; without a threshold a rate has a
        `reason`.
    """
    level, is_run = significance_level(targets.confidence), ranking.split is not None
    tests = answers.test(targets.error_rates, level)
    rows = [test.as_row() for test in tests]
    if not is_run:
        rows = [row | {"coverage": answers.share_kept(row["threshold"])} for row in rows]
    most_parts, overall, at_once, scope = None, [], None, SCOPES[unit]
    if isinstance(answers, RankedParts):
        most_parts = answers.most_parts
        scope = SCOPE_OF_PARTS.format(most_parts=most_parts)
    elif rates := targets.overall_errors:
        overall = [
            row | {"coverage": answers.share_kept(row["threshold"])}
            for row in overall_rows(answers.score, answers.wrong, rates, level)
        ]
        at_once = confidence_at_once(len(answers.score), rates, level)
    if own_columns := [
        name.removeprefix(ALSO) for name in ranking.columns if name.startswith(ALSO)
    ]:
        scope += f"; answers are kept by {describe_dependence(own_columns)}"
    return ErrorRateControl(
        ranked_by=ranking.ranked_by,
        features=ranking.features,
        fit=ranking.fit,
        split=ranking.split,
        confidence=targets.confidence,
        joint_confidence=None if is_run else joint_confidence(level, len(targets.error_rates)),
        groups=answers.n_tested,
        most_parts=most_parts,
        coverage_of=answers.n_counted,
        about=scope,
        thresholds=rows,
        recall=recall and _find_recall(answers, recall, level),
        overall=overall,
        overall_confidence=at_once,
        by=by and _errors_by_column(answers, ranking, tests, by, level),
        risk_coverage=find_places(answers.score, answers.wrong).risk_coverage(),
    )


def _find_recall(
    answers: RankedAnswers | RankedParts, recall: float, level: float
) -> RecallThreshold:
    """Guarantee a recall."""
    reason, n_right = None, answers.n_right
    if isinstance(answers, RankedParts):
        threshold, reason = answers.find_recall_threshold(recall, level), answers.lacks_unlabelled()
    else:
        threshold = recall_threshold(answers.score, ~answers.wrong, recall, level)
    if threshold is None and reason is None:
        reason = (
            f"a recall of {recall:g} needs at least {right_answers_needed(recall, level)} right "
            f"answers with a score that test; there are {n_right}"
        )
    return RecallThreshold(
        recall=recall,
        threshold=threshold,
        right=n_right,
        coverage=answers.share_kept(threshold),
        reason=reason,
    )


def _errors_by_column(
    answers: RankedAnswers | RankedParts,
    ranking: Ranking,
    tests: Sequence[ErrorRateTest],
    by: AnswerColumn,
    level: float,
) -> ErrorsByColumn:
    """Count the errors of the kept answers that tested, by the values of a column."""
    values = [by.values.get(name, NO_VALUE) for name in ranking.tested["example_id"]]
    if len({*values}) > MAX_VALUES:
        raise InputError(
            f"--by {by.path}: the labelled answers have {len({*values})} values, more than "
            f"{MAX_VALUES}; name a column with few, such as a task or a language."
        )
    rows = [
        row
        for test in tests
        if test.threshold is not None
        for row in errors_by_value(
            values, answers.score >= test.threshold, answers.wrong, test.error_rate, level
        )
    ]
    return ErrorsByColumn(column=by.path, values=rows)


def errors_by_value(
    values: Sequence[str], is_kept: np.ndarray, wrong: np.ndarray, error_rate: float, level: float
) -> list[ValueErrors]:
    """Count the answers with each value of a column, most frequent first.

    The labels that chose a pooled threshold are among those counted, so that with few values the
    intervals are a little too low.

    Parameters
    ----------
    values : sequence of str
        The value of each answer, [n].
    is_kept, wrong : array [n] of bool
        Whether each answer is kept, and wrong.
    error_rate : float
        The error rate that the threshold guarantees.
    level : float
        1 - confidence of the intervals.
    """
    values = np.asarray(values)
    distinct, counts = np.unique(values, return_counts=True)
    rows = []
    for value in distinct[np.argsort(-counts, kind="stable")]:
        mask = values == value
        n, n_kept = int(mask.sum()), int((mask & is_kept).sum())
        n_wrong = int((mask & is_kept & wrong).sum())
        low, high = error_interval(n_wrong, n_kept, level) if n_kept else (None, None)
        rows.append(
            ValueErrors(
                error_rate=error_rate,
                value=str(value),
                n=n,
                kept=n_kept,
                wrong=n_wrong,
                low=low,
                high=high,
            )
        )
    return rows


def error_interval(wrong: float, n_kept: int, level: float) -> tuple[float, float]:
    """The exact interval of an error rate with confidence 1 - level, by Clopper and Pearson."""
    quantile = scipy.special.betaincinv
    low = float(quantile(wrong, n_kept - wrong + 1, level / 2)) if wrong else 0.0
    high = float(quantile(wrong + 1, n_kept - wrong, 1 - level / 2)) if wrong < n_kept else 1.0
    return low, high


def joint_confidence(level: float, n_guarantees: int) -> float:
    """Return the joint confidence of `n_guarantees` at `level` each (Bonferroni).

    >>> joint_confidence(0.1, 3)
    0.7
    """
    return max(round(1 - n_guarantees * level, 12), 0.0)


def labelled_population(
    estimator: CalibratedEstimator, where: str, error_rate: float | None = None
) -> LabelledPopulation:
    """Return an estimator's labelled answers; raises `InputError` if its file lacks them.

    Where an `error_rate` was tested without a guarantee, the population knows how many there are.
    """
    require_threads()
    held_out, control = estimator.held_out, estimator.risk_control
    if held_out is None or control is None:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities and folds, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    failed = {entry.error_rate for entry in control.thresholds if entry.threshold is None}
    return population_of(held_out, control.most_parts is not None, error_rate in failed)


def population_of(
    held_out: HeldOut, of_parts: bool, lacks_guarantee: bool = False
) -> LabelledPopulation:
    """Make the population of labelled answers: one of each question.

    Its scores are those that `calibrate` ranks by: of fits on a fifth of the labels, and a fixed
    one for few labels, or for all where no fit ranks.
    """
    group, correct = np.array(held_out.group), np.array(held_out.correct)
    fold = np.array(held_out.fold, dtype=float)  # NaN where there is no probability
    chosen = np.arange(len(group))
    if not of_parts:
        _, chosen = np.unique(group, return_index=True)  # they stand in the order of their hashes

    def imitate(scores: Sequence[float | None], fold: np.ndarray) -> LabelledPopulation:
        ranks = normal_scores(np.array(scores, dtype=float)[chosen], fold[chosen])
        labelled = group[chosen], ranks, correct[chosen].astype(bool)
        return LabelledPopulation.from_labels(*labelled, of_parts)

    few, many = None, imitate(held_out.probability, fold)
    if held_out.fixed is not None and not of_parts:
        few = replace(imitate(held_out.fixed, np.zeros_like(group)), is_fixed=True)
    if held_out.by_fifths is not None:
        population = imitate(held_out.by_fifths, fold)
    else:
        population = few or many
    at_hand = len(np.unique(group)) if lacks_guarantee else 0
    return replace(population, at_hand=at_hand, few=few, many=many)


def population_of_tested(tested: RankedAnswers | RankedParts) -> LabelledPopulation:
    """Make the population of the answers that tested, as a run's guarantees have them."""
    of_parts = isinstance(tested, RankedParts)
    score = tested.labelled.score if of_parts else tested.score
    group = tested.labelled.document if of_parts else np.arange(len(score))
    ranks = normal_scores(score, np.zeros(len(score)))
    return LabelledPopulation.from_labels(group, ranks, ~tested.wrong, of_parts)


def with_forecasts(control: ErrorRateControl, population: LabelledPopulation) -> ErrorRateControl:
    """Add to each error rate without a threshold how many labels would be enough.

    There is no number where unlabelled parts are too few.
    """
    lacking = [
        entry.error_rate
        for entry in control.thresholds
        if entry.threshold is None and not (entry.reason or "").startswith(PARTS_NEED)
    ]
    needed = labels_needed(population, lacking, control.confidence) if lacking else {}
    thresholds = []
    for entry in control.thresholds:
        if entry.error_rate in needed:
            enough = needed[entry.error_rate]
            what = (
                f"{MOST:,} labelled questions like these would not be enough"
                if enough is None
                else f"about {enough:,} labelled questions like these would be enough: calibrating "
                "again on them is a second look (--looks 2 from the first)"
            )
            entry = entry.model_copy(update={"enough": enough, "reason": f"{entry.reason}; {what}"})
        thresholds.append(entry)
    return control.model_copy(update={"thresholds": tuple(thresholds)})
