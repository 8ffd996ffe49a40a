"""What a calibrator is fitted on: labelled answers with their inputs, estimators and splits."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import own_column_paths
from tracecal.answers.tasks import answers_of_task
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.groups import group_answers
from tracecal.calibration.pooled import by_part, part_codes
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.splits import make_splits
from tracecal.calibrator.catalogue import INPUTS, LOG_RIDGE, inputs_with_columns
from tracecal.calibrator.settings import FitSettings
from tracecal.errors import InputError
from tracecal.estimators.estimator import OwnFit
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES
from tracecal.estimators.trace_inputs import NO_CUSTOM, TRACE_INPUTS, Custom, compute_inputs
from tracecal.features.features import FEATURES
from tracecal.io.log import LOGGER

MIN_LABELS = 20
FOLDS = 5


class TrainingSet(NamedTuple):
    """Labelled answers, the estimators that can be computed for them, and the splits.

    `frame` holds `example_id`, `correct`, `group_id` and all inputs; `estimators` have their
    inputs; `splits` are those of the protocol; `part_names` are the names of pooled parts;
    `n_answers` counts the unlabelled, too.
    """

    frame: pl.DataFrame
    estimators: dict[str, list[str]]
    splits: pl.DataFrame
    part_names: Sequence[str] = ()
    n_answers: int = 0

    @property
    def first_split(self) -> pl.DataFrame:
        """The split whose fit has the guarantees."""
        return self.splits.filter(pl.col("split") == 0)

    def own_fits(self) -> dict[str, OwnFit]:
        """The estimators that are not fitted by the protocol's method, and how they are."""
        fits = {e.id: e.fit for e in OF_FILES if e.id in self.estimators and e.fit}
        return by_part(self.estimators, fits)[1] if self.part_names else fits

    def calibrate(
        self, splits: pl.DataFrame, settings: FitSettings, answers: pl.DataFrame | None = None
    ) -> tuple[pl.DataFrame, dict[str, EstimatorFits]]:
        """Fit all estimators on `splits` of the answers, by default of all, and predict."""
        return calibrate_all(
            self.frame if answers is None else answers,
            splits,
            self.estimators,
            settings.calibration.method,
            self.own_fits(),
            part_names=self.part_names,
        )

    def cross_fitted(self, settings: FitSettings, part: str | None = None) -> pl.DataFrame:
        """Predict each answer by fits on the other folds, which are of whole groups.

        `estimator`, `example_id`, `fold` and `probability`; `part` restricts it to that part of
        the first split.
        """
        rows = self.first_split
        rows = rows if part is None else rows.filter(part=part)
        ranks = rows["rank"].rank("dense") - 1
        rows = rows.with_columns(fold=ranks % min(FOLDS, ranks.n_unique()))
        held_out = pl.when(pl.col("fold") == pl.col("split")).then(pl.lit("evaluation"))
        folds = pl.concat(
            rows.with_columns(split=pl.lit(fold, pl.Int64)).with_columns(
                part=held_out.otherwise(pl.lit("calibration"))
            )
            for fold in rows["fold"].unique().sort()
        )
        answers = self.frame.join(rows.select("example_id"), on="example_id", how="semi")
        predictions, _ = self.calibrate(folds, settings, answers)
        return predictions.rename({"split": "fold"})


def make_training_set(
    answers: pl.DataFrame,
    task: str,
    settings: FitSettings,
    parts: Parts | None = None,
    custom: Custom = NO_CUSTOM,
) -> TrainingSet:
    """Take the labelled ones of `answers` (columns of `RECORDS`), or of `parts` of answers.

    Parts of one answer share its group. Raises `InputError` where too few are labelled, or where
    equal answers have different labels.
    """
    labelled = answers_of_task(answers.filter(pl.col("correct").is_not_null()), task)
    labelled = labelled.sort("example_id")
    if labelled.height < MIN_LABELS:
        raise InputError(
            f"{labelled.height} of {answers.height} answers have a verdict; at least {MIN_LABELS} "
            "are needed. Give a file of verdicts with --labels, their path in a row with --label, "
            "or a column 'correct'."
        )
    if labelled["model"].null_count() == labelled.height:
        LOGGER.warning(
            "no answer names its model, so that the calibrator is used for answers of any: name it "
            "with --model"
        )
    groups = labelled.select("example_id", "group_id") if parts else group_answers(labelled)
    own_columns = [*own_column_paths(answers)]
    names = (
        *TRACE_INPUTS,
        *(f"scores.{name}" for name in custom),
        *inputs_with_columns((), own_columns),
    )
    frame = (
        labelled.select("example_id", "correct")
        .join(groups, on="example_id", validate="1:1")
        .join(compute_inputs(labelled, names, custom), on="example_id", validate="1:1")
    )
    share = settings.splits.calibration_share
    splits = make_splits(groups, task, settings.seed, settings.splits.count, share)
    estimators = _computable(frame, labelled, custom)
    if own_columns:
        estimators |= {LOG_RIDGE_ALSO.id: _with_columns(frame, own_columns)}
    training = TrainingSet(frame, estimators, splits, n_answers=answers.height)
    part_names = parts.pooled if parts and settings.calibration.method == "platt" else ()
    if not part_names:
        return training
    return TrainingSet(
        frame.join(part_codes(labelled, part_names), on="example_id", validate="1:1"),
        by_part(estimators, training.own_fits())[0],
        splits,
        part_names,
        answers.height,
    )


def _computable(
    frame: pl.DataFrame, labelled: pl.DataFrame, custom: Custom
) -> dict[str, list[str]]:
    """The estimators that can be computed for enough answers, and their inputs."""
    columns = set(frame.columns)
    estimators = {
        entry.id: entry.inputs for entry in ESTIMATORS if columns.issuperset(entry.inputs)
    }
    estimators |= {name: [f"scores.{name}"] for name in custom}
    counts = {name: _count_complete(frame, needed) for name, needed in estimators.items()}
    left_out = [name for name, count in counts.items() if count < MIN_LABELS]
    if left_out:
        reasons = labelled["lacks"].drop_nulls().unique().sort().to_list() or ["undefined"]
        names = ", ".join(left_out) if len(left_out) <= 3 else f"{len(left_out)} estimators"
        LOGGER.warning("%s left out: %s", names, "; ".join(reasons[:3]))
    if len(left_out) == len(estimators):
        raise InputError("no answer has log-probabilities: there is nothing to calibrate.")
    return {name: needed for name, needed in estimators.items() if name not in left_out}


def _with_columns(frame: pl.DataFrame, own_columns: Sequence[str]) -> list[str]:
    """The inputs of the fit with own columns: log ridge's that enough answers have, and these.

    Raises `InputError` where too few answers have the columns, or a feature has one's name.
    """
    if clashing := [name for name in own_columns if name in FEATURES]:
        raise InputError(
            f"--also {clashing[0]}: a feature of traces has this name; choose another."
        )
    of_trace = [name for name in INPUTS[LOG_RIDGE] if frame[name].count() >= MIN_LABELS]
    columns = inputs_with_columns(of_trace, own_columns)
    if (count := _count_complete(frame, columns)) < MIN_LABELS:
        raise InputError(
            f"{count} of {frame.height} labelled answers have a trace and "
            f"{' and '.join(own_columns)}; at least {MIN_LABELS} are needed. Give the path of each "
            f"in a row (--also {own_columns[0]}=PATH)."
        )
    return columns


def _count_complete(frame: pl.DataFrame, columns: Sequence[str]) -> int:
    return frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).sum()).item()
