"""The error rates that a calibrator guarantees, and what ranks the answers to keep.

1. `choose_ranking(training, largest_group)` fixes the ranking by the kind of log and the number of
   labels.
2. `rank_answers(training, data, ranking)` gives all answers their scores.
3. `find_guarantees(training, data, settings)` does both, tests thresholds on the labels that have
   not fitted the ranking, and returns what the calibrator's file holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.answers.record import own_column_paths
from tracecal.calibration.bets import significance_level
from tracecal.calibration.fingerprints import are_among
from tracecal.calibration.fits import Fit, probabilities
from tracecal.calibration.groups import group_size_choices
from tracecal.calibration.groups import largest_group as choose_largest_group
from tracecal.calibration.guarantees.by_value import (
    errors_by_value,
    joint_confidence,
    thresholds_by_value,
)
from tracecal.calibration.guarantees.control import describe_tests
from tracecal.calibration.guarantees.error_rate import (
    ErrorRateTest,
    GroupedScores,
    find_thresholds,
    lacks_unlabelled,
)
from tracecal.calibration.guarantees.fixed_score import (
    AMOUNTS,
    MEAN_SURPRISAL,
    MIN_UNLABELLED,
    fit_fixed_score,
)
from tracecal.calibration.guarantees.recall import (
    keep_both,
    recall_threshold,
    recall_threshold_by_groups,
    right_answers_needed,
)
from tracecal.calibration.guarantees.sides import MIN_FITTED
from tracecal.calibration.pooled import PART, part_codes
from tracecal.calibrator.catalogue import (
    FIXED_SCORE,
    MEAN_OF_THREE,
    SURPRISAL_RIDGE,
    describe_dependence,
)
from tracecal.calibrator.recommendation import MIN_ENTROPY_SHARE, count_smaller_class, count_traces
from tracecal.calibrator.schema import (
    BothThreshold,
    CalibrationData,
    CalibratorFile,
    ErrorRateControl,
    ErrorsByColumn,
    GroupChoice,
    RecallControl,
    RecallThreshold,
    Reference,
    ValueThreshold,
)
from tracecal.calibrator.settings import FitSettings
from tracecal.calibrator.trace_kinds import undecided
from tracecal.calibrator.training_set import TrainingSet
from tracecal.errors import InputError
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.estimators.trace_inputs import compute_inputs
from tracecal.io.randomness import seeded

MIN_OF_CLASS = 3  # right and wrong labels that a ranking is fitted on, at least
MAX_REFERENCE = 500
MAX_VALUES = 200  # of a column that errors are counted by
NO_VALUE = "none"  # the value of answers whose rows lack the column


class AnswerColumn(NamedTuple):
    """A column of the answers: its path, its values by id, and whether each gets a threshold."""

    path: str
    values: Mapping[str, str]
    each: bool = False


class Ranking(NamedTuple):
    """The ranking of answers that thresholds are tested on.

    Attributes
    ----------
    ranked_by : str
        The id of an estimator, or 'fixed_score'.
    columns : list of str
        The fit's inputs.
    fit : Fit
        Maps the inputs to the score.
    tested : polars.DataFrame
        The rows of the training set's `frame` that test thresholds.
    fitted : polars.DataFrame
        The other rows: their labels fit the ranking, or they stand for unlabelled answers.
    is_fitted : bool
        Whether the fit uses labels of this training set.
    like : str, optional
        The calibrator of other answers that the fit comes from.
    """

    ranked_by: str
    columns: list[str]
    fit: Fit
    tested: pl.DataFrame
    fitted: pl.DataFrame
    is_fitted: bool
    like: str | None = None

    def score(self, rows: pl.DataFrame) -> np.ndarray:
        """Compute the scores [n] of `rows`; NaN where an input is missing."""
        return probabilities(rows.select(self.columns), [self.fit])[0]


def choose_ranking(
    training: TrainingSet,
    largest_group: int,
    estimator: str | None = None,
    like: CalibratorFile | None = None,
) -> Ranking:
    """Fix the ranking, without the labels that test it.

    The fit of a calibrator that is `like` this one ranks, and all labels test. An `estimator` that
    is named ranks, fitted on a fifth of the labels. Otherwise with fewer than MIN_FITTED groups the
    fixed score ranks and all labels test, and so they do for one-token answers without entropies;
    with more the default fit ranks, or the fixed score where the fifth has fewer than MIN_OF_CLASS
    right or wrong answers.

    Raises `InputError` where the training set lacks the estimator.
    """
    frame = training.frame
    if like is not None:
        return _borrowed_ranking(training, like)
    if estimator is not None and estimator not in training.estimators:
        raise InputError(
            f"--estimator {estimator}: it cannot be computed for these answers; choose one of "
            f"{', '.join(training.estimators)}."
        )
    testable = frame.filter(pl.col("size") <= largest_group).drop_nulls(MEAN_SURPRISAL)
    name = estimator
    if name is None and testable["group_id"].n_unique() >= MIN_FITTED:
        name = default_ranking(training)
    if name is None:
        return _fixed_ranking(training, frame, frame.clear())
    tested, fitted = (frame.filter(side=side) for side in ("test", "fit"))
    complete = fitted.drop_nulls(training.estimators[name])
    if estimator is None and count_smaller_class(complete) < MIN_OF_CLASS:
        return _fixed_ranking(training, tested, fitted)
    fit = training.select(name).fit("fit")[name].splits[0]
    return Ranking(name, training.estimators[name], fit, tested, fitted, True)


def _borrowed_ranking(training: TrainingSet, like: CalibratorFile) -> Ranking:
    """Rank by the recommended fit of a calibrator of other answers."""
    name, data = like.recommended(), like.fitted_on
    fits = like.estimators[name]
    columns = training.estimators.get(name, [])
    if [column.split(".", 1)[1] for column in columns] != [*fits.features]:
        raise InputError(
            f"--like: its fit {name} takes {', '.join(fits.features)}, which these answers lack."
        )
    if n_shared := int(are_among(training.records, data.answers).sum()):
        raise InputError(
            f"--like: it was fitted on {n_shared} of these labelled answers, which then could not "
            "test what it ranks; give a calibrator of other answers."
        )
    words = f"{data.model or 'an unnamed model'} for {data.task}"
    frame = training.frame
    return Ranking(name, columns, fits.final, frame, frame.clear(), False, words)


def default_ranking(training: TrainingSet) -> str | None:
    """The estimator that ranks a log of this kind from MIN_FITTED groups on; None: no fit does."""
    names, (n_traces, n_entropies) = training.estimators, count_traces(training)
    if LOG_RIDGE_ALSO.id in names:
        return LOG_RIDGE_ALSO.id
    if MEAN_OF_THREE in names and n_entropies >= MIN_ENTROPY_SHARE * n_traces:
        return MEAN_OF_THREE
    longest = training.frame["features.log_length"].max()
    return SURPRISAL_RIDGE if SURPRISAL_RIDGE in names and longest else None


def _fixed_ranking(training: TrainingSet, tested: pl.DataFrame, untested: pl.DataFrame) -> Ranking:
    """Rank by the fixed score, standardised on unlabelled answers or else on `untested` ones."""
    unlabelled = compute_inputs(training.unlabelled, AMOUNTS)
    if unlabelled[MEAN_SURPRISAL].count() < MIN_UNLABELLED and untested.height:
        unlabelled = untested.select(AMOUNTS)
    fixed = fit_fixed_score(unlabelled)
    return Ranking(FIXED_SCORE, [*fixed.inputs], fixed.fit, tested, untested, False)


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


def rank_answers(training: TrainingSet, data: CalibrationData, ranking: Ranking) -> RankedAnswers:
    """Compute the ranking scores of a training set's answers."""
    inputs = _inputs_of_unlabelled(training, ranking)
    # Whether a threshold decides about an answer follows from its trace alone.
    tested, fitted, labelled = (
        _grouped_scores(rows, training.records, ranking, data)
        for rows in (ranking.tested, ranking.fitted, training.frame)
    )
    unlabelled = _grouped_scores(inputs, training.unlabelled, ranking, data)
    is_enough = np.isfinite(unlabelled.score).sum() >= MIN_UNLABELLED
    return RankedAnswers(
        labelled=tested,
        wrong=~ranking.tested["correct"].to_numpy(),
        unlabelled=unlabelled if is_enough or not ranking.fitted.height else fitted,
        fitted=(fitted.score, ~ranking.fitted["correct"].to_numpy()) if ranking.is_fitted else None,
        counted=unlabelled if is_enough else labelled,
    )


def _inputs_of_unlabelled(training: TrainingSet, ranking: Ranking) -> pl.DataFrame:
    """The unlabelled answers with `rank` (of the group), `size` and the inputs of the ranking."""
    records, columns = training.unlabelled, [name for name in ranking.columns if name != PART]
    rank = pl.col("group_id").rank("dense").cast(pl.Int64) - 1
    rows = records.select("example_id", "size", rank=rank).join(
        compute_inputs(records, columns, training.custom), on="example_id", validate="1:1"
    )
    if PART not in ranking.columns:
        return rows
    codes = part_codes(records, training.part_names)
    return rows.join(codes, on="example_id", validate="1:1")


def _grouped_scores(
    rows: pl.DataFrame, records: pl.DataFrame, ranking: Ranking, data: CalibrationData
) -> GroupedScores:
    """The scores of `rows`, whose traces are among the `records`."""
    kinds = records.join(rows.select("example_id"), on="example_id", how="right")
    is_undecided = [reason is not None for reason in undecided(kinds, ranking.columns, data)]
    score = np.where(is_undecided, np.nan, ranking.score(rows)) if rows.height else np.empty(0)
    return GroupedScores(score, rows["rank"].to_numpy(), rows["size"].to_numpy())


def find_guarantees(
    training: TrainingSet,
    data: CalibrationData,
    settings: FitSettings,
    estimator: str | None = None,
    recall: float | None = None,
    by: AnswerColumn | None = None,
    like: CalibratorFile | None = None,
) -> tuple[ErrorRateControl, Reference]:
    """Test thresholds for the error rates of the settings, and for a recall.

    Parameters
    ----------
    training : TrainingSet
        The labelled and unlabelled answers.
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
    like : CalibratorFile, optional
        A calibrator of other answers that ranks.

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
    ranking = choose_ranking(training, largest_group, estimator, like)
    answers = rank_answers(training, data, ranking)
    tests = answers.test(rates, level, largest_group)
    content = describe_tests(tests, answers.labelled, answers.wrong, sizes, largest_group)
    if ranking.ranked_by == LOG_RIDGE_ALSO.id:
        columns = own_column_paths(training.records)
        content["about"] += f"; answers are kept by {describe_dependence(columns)}"
    for row in content["thresholds"]:
        row["coverage"] = answers.share_kept(row["threshold"], largest_group)
    content |= {
        "ranked_by": ranking.ranked_by,
        "ranked_like": ranking.like,
        "features": [name.split(".", 1)[1] for name in ranking.columns],
        "fit": ranking.fit,
        "confidence": control.confidence,
        "joint_confidence": joint_confidence(level, len(rates)),
        "group_choices": _group_choices(answers, sizes, rates, level),
        "coverage_of": len(answers.counted.score),
        "recall": recall and _recall_control(answers, recall, rates, level, largest_group),
        "by": by and _errors_by_column(answers, ranking, tests, by, largest_group, level),
    }
    return ErrorRateControl.model_validate(content), _reference(ranking)


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
    each = _thresholds_by_value(answers, values, tests, largest_group, level) if by.each else ()
    return ErrorsByColumn(column=by.path, values=rows, each=each)


def _thresholds_by_value(
    answers: RankedAnswers,
    values: Sequence[str],
    tests: Sequence[ErrorRateTest],
    largest_group: int,
    level: float,
) -> list[ValueThreshold]:
    """Find a threshold for each value from its labelled answers alone."""
    tests_by_value = thresholds_by_value(
        values,
        answers.labelled,
        answers.wrong,
        answers.unlabelled,
        [test.error_rate for test in tests],
        level,
        largest_group,
        answers.fitted,
    )
    return [
        ValueThreshold(
            error_rate=test.error_rate,
            value=value,
            threshold=test.threshold,
            n=test.n,
            coverage=test.kept / test.n if test.threshold is not None else 0.0,
            reason=test.reason if test.threshold is None else None,
        )
        for value, value_tests in tests_by_value.items()
        for test in value_tests
    ]


def _reference(ranking: Ranking) -> Reference:
    """The scores, lengths and groups of answers that tested, at most MAX_REFERENCE.

    Answers are drawn as traffic comes: they stand in the order of their groups, which is random,
    and at random within a group.
    """
    rows = ranking.tested.sort("example_id").drop_nulls(ranking.columns)
    order = pl.Series("order", seeded("reference").permutation(rows.height))
    rows = rows.with_columns(order).sort("rank", "order").head(MAX_REFERENCE)
    length = rows["features.log_length"].exp().round()
    values = ranking.score(rows).tolist(), length.to_list(), rows["rank"].to_list()
    return Reference(*map(tuple, values))


def ranking_scores(
    training: TrainingSet, rows: pl.DataFrame, control: ErrorRateControl
) -> np.ndarray:
    """The scores that guarantees compare with thresholds, of `rows` with the inputs of the training
    set, [n]; NaN where an input is missing.
    """
    usual = [f"features.{name}" for name in control.features]
    columns = training.estimators.get(control.ranked_by, usual)
    return probabilities(rows.select(columns), [control.fit])[0]


def count_reordered(
    training: TrainingSet, predictions: pl.DataFrame, control: ErrorRateControl
) -> dict[float, tuple[int, int]]:
    """How many labelled answers each guarantee keeps, and how many the probability would not.

    `predictions` are the shown estimator's cross-fitted probabilities; as many of the most probable
    answers are compared with those kept.
    """
    rows = training.frame.join(predictions, on="example_id").sort("probability", descending=True)
    score = ranking_scores(training, rows, control)
    counts = {}
    for entry in control.thresholds:
        if entry.threshold is not None:
            is_kept = score >= entry.threshold
            n_kept = int(is_kept.sum())
            counts[entry.error_rate] = n_kept, n_kept - int(is_kept[:n_kept].sum())
    return counts
