"""What a calibrator is fitted on: labelled answers with their inputs, estimators and sides.

1. `training = make_training_set(answers, task, settings)` groups the answers, takes the labelled
   ones and computes all inputs.
2. `TrainingSet.fit_estimators` fits all estimators, on one side of the labels and on all, and
   predicts each labelled answer by fits that have not seen it.

Answers to several tasks are neither pooled nor scored in silence (`task_names`).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from tracecal.answers.groups import MIN_FITTED, group_answers, in_order
from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import ALSO
from tracecal.calibrator.catalogue import LOG_RIDGE, inputs_with_columns
from tracecal.calibrator.trace_kinds import (
    are_among,
    fingerprints,
    has_usual_entropies,
    usual_entropies,
)
from tracecal.errors import InputError
from tracecal.estimators.custom import NO_CUSTOM, Custom
from tracecal.estimators.custom_scores import with_own_inputs
from tracecal.estimators.estimator import OwnFit
from tracecal.estimators.features import FEATURES, TRACE_INPUTS, UNCHANGED, compute_inputs
from tracecal.estimators.registry import ESTIMATORS, INPUTS, LOG_RIDGE_ALSO, OF_FILES
from tracecal.fits.fit_settings import FitSettings, Unit
from tracecal.fits.fits import EstimatorFits
from tracecal.fits.pooled import by_part, part_codes
from tracecal.fits.predictions import calibrate_all
from tracecal.fits.regression import Method
from tracecal.io.log import LOGGER

MIN_LABELS = 20  # complete answers that an estimator is fitted on
MIN_CHOOSING = 30  # labels of side 'fit' that may choose an estimator
MIN_ENTROPY_SHARE = 0.9  # of the traces of a log that lists alternatives
# Inputs that an answer has if it has surprisals, or entropies.
SURPRISAL_INPUT = "features.mean_surprisal_log_conf"
ENTROPY_INPUT = "features.mean_entropy_log_conf"
FOLDS = 5
SIDE_SPLIT = 0  # the split of `TrainingFits` whose fits are on the labels of side 'fit'
IS_FITTED = pl.col("side") == "fit"
NO_OWN_FITS: Mapping[str, OwnFit] = {}
NO_COLUMNS: Mapping[str, str] = {}
FOLD = {"split": "fold"}  # how predictions name the split that left an answer out
MIN_ANSWERS_PER_TASK = 5  # with fewer on average, the names are instructions or ids


class TrainingFits(NamedTuple):
    """The fits of all estimators on a training set, and their predictions of unseen answers.

    Attributes
    ----------
    estimators : dict
        By estimator: `final` on all labels, and split SIDE_SPLIT on those of side 'fit'.
    predictions : polars.DataFrame
        `estimator`, `example_id`, `fold` and `probability` of each labelled answer, by fits on the
        other folds, which hold whole groups.
    side_predictions : polars.DataFrame
        The same among the labels of side 'fit'; none where these choose no estimator.
    """

    estimators: dict[str, EstimatorFits]
    predictions: pl.DataFrame
    side_predictions: pl.DataFrame


class TrainingSet(NamedTuple):
    """Labelled answers, the estimators that can be computed for them, and unlabelled answers.

    Attributes
    ----------
    records : polars.DataFrame
        The labelled answers as read, with their `fingerprint`, in an order that their contents fix.
    frame : polars.DataFrame
        Their `example_id`, `correct`, `no_answer` and, of parts, `parent_id`, what `place_answers`
        says of them, whether thresholds on entropies decide about them (`has_usual_entropies`), and
        all inputs, named 'features.<name>' or 'scores.<id>'. Answers of one `rank` are of one
        question; with `unit` "answers" each has a rank of its own.
    estimators : dict
        The inputs of each estimator.
    unlabelled : polars.DataFrame
        The answers without a label as read, with what `place_answers` says of them among these
        answers alone, `has_usual_entropies` and all inputs.
    n_questions : int
        To how many questions the labelled answers are.
    unit : {"questions", "answers"}
        What was drawn at random, which each guarantee counts once.
    method : str
        How to fit the estimators for which the registry prescribes no fit.
    own_fits : mapping
        The fits that it prescribes, by estimator.
    own_columns : mapping
        The path of each of the user's own columns, by name.
    row_tasks : sequence of str
        The tasks that the rows of the labelled answers name.
    part_names : sequence of str
        The names of parts that share a fit with an intercept each ('platt' alone can).
    custom : mapping
        The scores of custom estimators by id.
    """

    records: pl.DataFrame
    frame: pl.DataFrame
    estimators: dict[str, list[str]]
    unlabelled: pl.DataFrame
    n_questions: int
    unit: Unit
    method: Method
    own_fits: Mapping[str, OwnFit] = NO_OWN_FITS
    own_columns: Mapping[str, str] = NO_COLUMNS
    row_tasks: Sequence[str] = ()
    part_names: Sequence[str] = ()
    custom: Custom = NO_CUSTOM

    @property
    def n_answers(self) -> int:
        """Number of labelled and unlabelled answers."""
        return self.records.height + self.unlabelled.height

    @property
    def n_traces(self) -> int:
        """Number of labelled answers with surprisals."""
        return self.frame[SURPRISAL_INPUT].count()

    @property
    def n_entropies(self) -> int:
        """Number of labelled answers with surprisals and entropies."""
        return self.frame.drop_nulls(SURPRISAL_INPUT)[ENTROPY_INPUT].count()

    @property
    def lists_alternatives(self) -> bool:
        """Whether nearly all traces have entropies, as a log that lists alternatives does."""
        return self.n_entropies >= MIN_ENTROPY_SHARE * self.n_traces

    @property
    def n_groups(self) -> int:
        """Number of groups of labelled answers, which no fold parts: the units."""
        return self.frame["rank"].n_unique()

    @property
    def chooses(self) -> bool:
        """Whether the labels of side 'fit' are enough to choose the recommended estimator by.

        They test no threshold, so that the choice does not flatter a guarantee.
        """
        return self.n_groups >= MIN_FITTED and self.frame.filter(IS_FITTED).height >= MIN_CHOOSING

    @property
    def compared(self) -> pl.DataFrame:
        """`example_id` of the labelled answers that choose no estimator."""
        rows = self.frame.filter(side="test") if self.chooses else self.frame
        return rows.select("example_id")

    def select(self, *estimators: str) -> "TrainingSet":
        """Return the training set with some of the estimators only."""
        return self._replace(estimators={name: self.estimators[name] for name in estimators})

    def fit_estimators(self) -> TrainingFits:
        """Fit all estimators: on all labels, on those of side 'fit', and on all folds but one."""
        part = pl.when(IS_FITTED).then(pl.lit("calibration"))
        of_side = self._folds(IS_FITTED, SIDE_SPLIT + 1) if self.chooses else []
        of_all = self._folds(pl.lit(True), SIDE_SPLIT + 1 + len(of_side))
        predictions, fits = self.calibrate(
            pl.concat([self._split(SIDE_SPLIT, part), *of_side, *of_all])
        )
        fold, is_of_side = pl.col("split") - SIDE_SPLIT - 1, pl.col("split") <= len(of_side)
        return TrainingFits(
            fits,
            predictions.filter(~is_of_side).with_columns(split=fold - len(of_side)).rename(FOLD),
            predictions.filter(is_of_side).with_columns(split=fold).rename(FOLD),
        )

    def cross_fitted(self) -> pl.DataFrame:
        """The `predictions` of `TrainingFits` alone."""
        predictions, _ = self.calibrate(pl.concat(self._folds(pl.lit(True), 0)))
        return predictions.rename(FOLD)

    def fitted_by_fifths(self) -> pl.DataFrame:
        """Predict each labelled answer by a fit on the next fold alone, as few labels as rank."""
        splits = self._folds(pl.lit(True), 0)
        is_next = pl.col("part").eq("evaluation")
        alone = [
            split.with_columns(
                part=pl.when(is_next)
                .then("part")
                .when(following.select(is_next).to_series())
                .then(pl.lit("calibration"))
            )
            for split, following in zip(splits, splits[1:] + splits[:1], strict=True)
        ]
        predictions, _ = self.calibrate(pl.concat(alone))
        return predictions.rename(FOLD)

    def calibrate(self, splits: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, EstimatorFits]]:
        """Fit all estimators on `splits` of the labelled answers, and predict (`calibrate_all`).

        Answers are named by their places, so that their ids change no digit of a fit.
        """
        number = pl.int_range(pl.len()).cast(pl.String).str.zfill(9)
        places = self.frame.select("example_id", place=number)
        predictions, fits = calibrate_all(
            self.frame.with_columns(example_id=places["place"]),
            splits.join(places, on="example_id", maintain_order="left").with_columns(
                example_id="place"
            ),
            self.estimators,
            self.method,
            self.own_fits,
            part_names=self.part_names,
        )
        rows = predictions["example_id"].cast(pl.Int64)
        return predictions.with_columns(example_id=self.frame["example_id"].gather(rows)), fits

    def _folds(self, members: pl.Expr, first: int) -> list[pl.DataFrame]:
        """Make a split for each fold of the `members`, which is predicted by the rest.

        The splits are numbered from `first`. The `part` of other answers is None: they neither fit
        nor are predicted.
        """
        index = self.frame.select(pl.when(members).then("rank").rank("dense") - 1).to_series()
        n_folds = min(FOLDS, index.max() + 1)
        fold = pl.lit(index % n_folds)
        return [
            self._split(
                first + number,
                pl.when(fold == number)
                .then(pl.lit("evaluation"))
                .when(members)
                .then(pl.lit("calibration")),
            )
            for number in range(n_folds)
        ]

    def _split(self, number: int, part: pl.Expr) -> pl.DataFrame:
        """Make a split for `calibrate_all`."""
        return self.frame.select("example_id", "rank", split=pl.lit(number, pl.Int64), part=part)


def make_training_set(
    answers: pl.DataFrame,
    task: str,
    settings: FitSettings,
    parts: Parts | None = None,
    custom: Custom = NO_CUSTOM,
    unlabelled: pl.DataFrame | None = None,
    unit: Unit = "questions",
) -> TrainingSet:
    """Group `answers` (columns of `RECORDS`), or `parts` of answers, and take the labelled ones.

    The answers of `unlabelled` are added without their labels, except for duplicates. Parts of one
    answer share its group. With `unit` "answers" each answer is its own group. Raises `InputError`
    if there are too few labels, equal answers have different labels, or all answers form one group.
    """
    answers = random_labels(answers).with_columns(fingerprint=fingerprints(answers))
    if unlabelled is not None:
        answers = _with_unlabelled(answers, unlabelled)
    labelled, unlabelled = _choose_answers(answers, task)
    row_tasks = tuple(sorted(task_names(labelled)))
    own_columns = own_column_paths(labelled)
    rows = pl.concat([labelled, unlabelled])
    # Parts have the group of their answer.
    groups = rows.select("example_id", "group_id") if parts else group_answers(rows)
    n_questions = groups.join(labelled, on="example_id", how="semi")["group_id"].n_unique()
    if unit == "answers":
        groups = rows.select("example_id", group_id="parent_id" if parts else "example_id")
    labelled, frame = in_order(labelled, groups)
    unlabelled, places = in_order(unlabelled, groups)
    names = (
        *TRACE_INPUTS,
        *(f"scores.{name}" for name in custom),
        *(f"{ALSO}{name}" for name in own_columns),
    )
    extend = (
        partial(with_own_inputs, names=names, custom=custom) if custom or own_columns else UNCHANGED
    )
    usual = usual_entropies(labelled)
    is_usual = has_usual_entropies(labelled, *usual)
    whole_of_part = ["parent_id"] if parts else []
    facts = labelled.select("correct", "no_answer", *whole_of_part, has_usual_entropies=is_usual)
    frame = frame.hstack([*facts, *compute_inputs(labelled, names, extend).drop("example_id")])
    if frame["rank"].n_unique() == 1:
        raise InputError(
            f"all {frame.height} labelled answers belong to one question, so that none can be "
            "predicted by the labels of others. Give answers that are not variants of each other "
            "group ids of their own."
        )
    inputs = compute_inputs(unlabelled, names, extend).drop("example_id")
    unlabelled = unlabelled.with_columns(
        *places.drop("example_id"),
        *inputs,
        has_usual_entropies=has_usual_entropies(unlabelled, *usual),
    )
    estimators = choose_inputs(frame, labelled["lacks"], own_columns, custom)
    own_fits = {e.id: e.fit for e in OF_FILES if e.id in estimators and e.fit}
    method = settings.calibration.method
    part_names = parts.pooled if parts and method == "platt" else ()
    if part_names:
        frame, unlabelled = (
            rows.join(
                part_codes(records, part_names),
                on="example_id",
                validate="1:1",
                maintain_order="left",
            )
            for rows, records in ((frame, labelled), (unlabelled, unlabelled))
        )
        estimators, own_fits = by_part(estimators, own_fits)
    return TrainingSet(
        labelled,
        frame,
        estimators,
        unlabelled,
        n_questions,
        unit,
        method,
        own_fits,
        own_columns,
        row_tasks,
        part_names,
        custom,
    )


def own_column_paths(answers: pl.DataFrame) -> dict[str, str]:
    """The paths of the own columns of answers, by their names."""
    columns = answers.select(pl.col("also").explode()).unnest("also").drop_nulls("name")
    return dict(
        columns.unique("name", keep="first", maintain_order=True).select("name", "path").rows()
    )


def _with_unlabelled(answers: pl.DataFrame, unlabelled: pl.DataFrame) -> pl.DataFrame:
    """Add the answers of `unlabelled` without their labels, except for duplicates.

    `answers` have a column `fingerprint`. Duplicates have equal questions, texts and traces. Ids
    that occur twice get a mark.
    """
    is_known = are_among(unlabelled, answers["fingerprint"].drop_nulls())
    if n_known := int(is_known.sum()):
        LOGGER.info(
            "left out %d of %d unlabelled answers, which are among the labelled",
            n_known,
            unlabelled.height,
        )
    is_taken = pl.col("example_id").is_in(answers["example_id"].implode())
    renamed = pl.when(is_taken).then(pl.col("example_id") + "+").otherwise("example_id")
    rows = unlabelled.filter(~is_known).with_columns(
        example_id=renamed, correct=pl.lit(None, pl.Boolean)
    )
    return pl.concat([answers, rows], how="diagonal_relaxed")


def choose_inputs(
    frame: pl.DataFrame, lacks: pl.Series, own_columns: Mapping[str, str], custom: Custom
) -> dict[str, list[str]]:
    """Return the inputs of each estimator that enough answers allow to compute.

    Parameters
    ----------
    frame
        All inputs of the labelled answers.
    lacks
        Why some of their traces are incomplete, for messages.
    own_columns
        The paths of the user's own columns, by name; with any, the fit that takes them is added.
    custom
        The custom estimators.

    Raises
    ------
    InputError
        If no estimator can be computed, too few answers have the own columns, or a feature has the
        name of one.
    """
    columns = set(frame.columns)
    estimators = {
        entry.id: INPUTS[entry.id] for entry in ESTIMATORS if columns.issuperset(INPUTS[entry.id])
    }
    estimators |= {name: [f"scores.{name}"] for name in custom}
    counts = {name: _count_complete(frame, inputs) for name, inputs in estimators.items()}
    left_out = [name for name, count in counts.items() if count < MIN_LABELS]
    if left_out:
        reasons = lacks.drop_nulls().unique().sort().to_list() or ["undefined"]
        names = ", ".join(left_out) if len(left_out) <= 3 else f"{len(left_out)} estimators"
        LOGGER.warning("%s left out: %s", names, "; ".join(reasons[:3]))
    if len(left_out) == len(estimators):
        raise InputError("no answer has log-probabilities: there is nothing to calibrate.")
    computable = {name: inputs for name, inputs in estimators.items() if name not in left_out}
    if own_columns:
        computable[LOG_RIDGE_ALSO.id] = _with_columns(frame, own_columns)
    return computable


def _with_columns(frame: pl.DataFrame, own_columns: Iterable[str]) -> list[str]:
    """Return the inputs of the fit with own columns: log ridge's common inputs, then the columns.

    Raises `InputError` if too few answers have the columns, or a feature has a column's name.
    """
    names = [*own_columns]
    if clashing := [name for name in names if name in FEATURES]:
        raise InputError(
            f"--also {clashing[0]}: a feature of traces has this name; choose another."
        )
    of_trace = [name for name in INPUTS[LOG_RIDGE] if frame[name].count() >= MIN_LABELS]
    columns = inputs_with_columns(of_trace, names)
    if (count := _count_complete(frame, columns)) < MIN_LABELS:
        raise InputError(
            f"{count} of {frame.height} labelled answers have a trace and "
            f"{' and '.join(names)}; at least {MIN_LABELS} are needed. Give the path of each in a "
            f"row (--also {names[0]}=PATH)."
        )
    return columns


def _count_complete(frame: pl.DataFrame, columns: Sequence[str]) -> int:
    return frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).sum()).item()


def random_labels(answers: pl.DataFrame) -> pl.DataFrame:
    """Take back the verdicts that 'tracecal label --error-rate' asked for, and say how many.

    Answers whose verdicts decide most are no random sample: they neither fit nor test.
    """
    is_asked_for = pl.col("correct").is_not_null() & pl.col("asked_for").fill_null(False)
    n_asked = answers.filter(is_asked_for).height
    if not n_asked:
        return answers
    LOGGER.warning(
        "%d of the %d labels are not used: 'tracecal label --error-rate' asked for them because "
        "they decide, so they are no random sample",
        *(n_asked, answers["correct"].count()),
    )
    return answers.with_columns(correct=pl.when(~is_asked_for).then("correct"))


def _choose_answers(answers: pl.DataFrame, task: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the labelled answers to a task, and the unlabelled ones beside them."""
    labelled = answers_of_task(answers.filter(pl.col("correct").is_not_null()), task)
    if labelled.height < MIN_LABELS:
        n_asked = int(answers["asked_for"].sum())
        note = (
            f" beside the {n_asked} that 'tracecal label --error-rate' asked for" if n_asked else ""
        )
        raise InputError(
            f"{labelled.height} of {answers.height} answers have a verdict{note}; at least "
            f"{MIN_LABELS} are needed. Give a file of verdicts with --labels, their path in a row "
            "with --label, or a column 'correct'."
        )
    if labelled["model"].null_count() == labelled.height:
        LOGGER.warning(
            "no answer names its model, so the calibrator will score answers of any model: name it "
            "with --model"
        )
    return labelled, of_their_tasks(answers.filter(pl.col("correct").is_null()), labelled)


def task_names(answers: pl.DataFrame) -> dict[str, int]:
    """Count the answers by the task that they name; empty if these texts are no task names.

    >>> task_names(pl.DataFrame({"row_task": ["cities"] * 7 + ["sums"] * 5 + [None]}))
    {'cities': 7, 'sums': 5}
    """
    counts = answers.select(pl.col("row_task").drop_nulls().value_counts(sort=True)).unnest(
        "row_task"
    )
    are_names = counts["count"].sum() >= MIN_ANSWERS_PER_TASK * counts.height
    return dict(counts.iter_rows()) if are_names else {}


def answers_of_task(answers: pl.DataFrame, task: str) -> pl.DataFrame:
    """Select the answers to `task` if rows name it and other tasks; otherwise return all.

    Warns how many are left out, or that answers to several tasks are pooled.
    """
    counts = task_names(answers)
    if len(counts) < 2:
        return answers
    listed = ", ".join(f"{name} ({count})" for name, count in counts.items())
    if task not in counts:
        LOGGER.warning(
            "the labelled answers are to %d tasks, which are pooled: %s. Guarantees hold for the "
            "same mix of tasks, not for each alone; name one to calibrate on it (--task %s)",
            *(len(counts), listed, next(iter(counts))),
        )
        return answers
    chosen = answers.filter((pl.col("row_task") == task).fill_null(False))
    LOGGER.warning(
        "the answers are to %d tasks: %s. Those to %s are used, and %d left out; another name "
        "pools all (--task)",
        *(len(counts), listed, task, answers.height - chosen.height),
    )
    return chosen


def of_their_tasks(unlabelled: pl.DataFrame, labelled: pl.DataFrame) -> pl.DataFrame:
    """Select the unlabelled answers to the labelled answers' tasks; all if rows name no task."""
    names = task_names(labelled)
    if not names:
        return unlabelled
    chosen = unlabelled.filter(pl.col("row_task").is_in([*names]) | pl.col("row_task").is_null())
    if n_others := unlabelled.height - chosen.height:
        LOGGER.warning("left out %d unlabelled answers to other tasks", n_others)
    return chosen
