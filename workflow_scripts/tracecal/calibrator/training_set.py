"""What a calibrator is fitted on: labelled answers with their inputs, estimators and sides.

1. `training = make_training_set(answers, task, settings)` groups the answers, takes the labelled
   ones and computes all inputs.
2. `TrainingSet.fit` fits on one side of the labels or on all.
3. `TrainingSet.cross_fitted` predicts each labelled answer by fits that have not seen it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import own_column_paths
from tracecal.answers.tasks import answers_of_task, of_their_tasks
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.fits import Method
from tracecal.calibration.groups import sized_groups
from tracecal.calibration.guarantees.sides import MIN_FITTED, Side, assign_sides
from tracecal.calibration.pooled import by_part, part_codes
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibrator.catalogue import INPUTS, LOG_RIDGE, inputs_with_columns
from tracecal.calibrator.settings import FitSettings
from tracecal.errors import InputError
from tracecal.estimators.estimator import OwnFit
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES
from tracecal.estimators.trace_inputs import NO_CUSTOM, TRACE_INPUTS, Custom, compute_inputs
from tracecal.features.features import FEATURES
from tracecal.io.log import LOGGER

MIN_LABELS = 20
MIN_CHOOSING = 30  # labels of side 'fit' that may choose an estimator
FOLDS = 5


class TrainingSet(NamedTuple):
    """Labelled answers, the estimators that can be computed for them, and unlabelled answers.

    Attributes
    ----------
    records : polars.DataFrame
        The labelled answers as read, sorted by id.
    frame : polars.DataFrame
        Their `example_id`, `correct`, `group_id`, `size` (of the group, unlabelled answers among
        them), `side` ('fit' or 'test'), `rank` (of the group in an order that the answers' contents
        fix) and all inputs.
    estimators : dict
        The inputs of each estimator.
    unlabelled : polars.DataFrame
        The answers without a label as read, with `group_id` and `size`.
    method : str
        How to fit the estimators that prescribe no fit.
    part_names : sequence of str
        The names of pooled parts.
    custom : mapping
        The scores of custom estimators by id.
    """

    records: pl.DataFrame
    frame: pl.DataFrame
    estimators: dict[str, list[str]]
    unlabelled: pl.DataFrame
    method: Method
    part_names: Sequence[str] = ()
    custom: Custom = NO_CUSTOM

    @property
    def n_answers(self) -> int:
        """Number of labelled and unlabelled answers."""
        return self.records.height + self.unlabelled.height

    @property
    def n_groups(self) -> int:
        """Number of groups of labelled answers."""
        return self.frame["group_id"].n_unique()

    @property
    def chooses(self) -> bool:
        """Whether the labels of side 'fit' may choose an estimator; these labels test nothing."""
        n_fit = self.frame.filter(side="fit").height
        return self.n_groups >= MIN_FITTED and n_fit >= MIN_CHOOSING

    @property
    def compared(self) -> pl.DataFrame:
        """`example_id` of the labelled answers that choose no estimator."""
        rows = self.frame.filter(side="test") if self.chooses else self.frame
        return rows.select("example_id")

    def own_fits(self) -> dict[str, OwnFit]:
        """Return the estimators with a prescribed fit, and which."""
        fits = {e.id: e.fit for e in OF_FILES if e.id in self.estimators and e.fit}
        return by_part(self.estimators, fits)[1] if self.part_names else fits

    def fit(self, side: Side | None = None) -> dict[str, EstimatorFits]:
        """Fit all estimators: `final` on all labels and, given a `side`, split 0 on its labels."""
        part = pl.lit("evaluation") if side is None else _part_of(pl.col("side") == side)
        return self._calibrate(self.frame, self._split(self.frame, 0, part))[1]

    def select(self, *estimators: str) -> "TrainingSet":
        """Return the training set with some of the estimators only."""
        return self._replace(estimators={name: self.estimators[name] for name in estimators})

    def cross_fitted(self, side: Side | None = None) -> pl.DataFrame:
        """Predict each answer with fits on the other folds, which hold whole groups.

        `estimator`, `example_id`, `fold` and `probability`; `side` restricts all to its answers.
        """
        frame = self.frame if side is None else self.frame.filter(side=side)
        index = frame["rank"].rank("dense") - 1
        frame = frame.with_columns(fold=index % min(FOLDS, index.n_unique()))
        folds = [
            self._split(frame, fold, _part_of(pl.col("fold") != fold))
            for fold in frame["fold"].unique().sort()
        ]
        predictions, _ = self._calibrate(frame, pl.concat(folds))
        return predictions.rename({"split": "fold"})

    def calibrate(self, splits: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, EstimatorFits]]:
        """Fit all estimators on `splits` of the labelled answers, and predict (`calibrate_all`)."""
        return self._calibrate(self.frame, splits)

    def _split(self, frame: pl.DataFrame, number: int, part: pl.Expr) -> pl.DataFrame:
        """Make a split of the rows of `frame` for `calibrate_all`."""
        split = pl.lit(number, pl.Int64)
        return frame.select("example_id", "rank", split=split, part=part)

    def _calibrate(
        self, frame: pl.DataFrame, splits: pl.DataFrame
    ) -> tuple[pl.DataFrame, dict[str, EstimatorFits]]:
        own_fits, names = self.own_fits(), self.part_names
        return calibrate_all(
            frame, splits, self.estimators, self.method, own_fits, part_names=names
        )


def _part_of(calibrates: pl.Expr) -> pl.Expr:
    return pl.when(calibrates).then(pl.lit("calibration")).otherwise(pl.lit("evaluation"))


def make_training_set(
    answers: pl.DataFrame,
    task: str,
    settings: FitSettings,
    parts: Parts | None = None,
    custom: Custom = NO_CUSTOM,
) -> TrainingSet:
    """Group `answers` (columns of `RECORDS`), or `parts` of answers, and take the labelled ones.

    Parts of one answer share its group. Raises `InputError` if there are too few labels, equal
    answers have different labels, or all answers form one group.
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
    unlabelled = of_their_tasks(answers.filter(pl.col("correct").is_null()), labelled)
    groups = sized_groups(pl.concat([labelled, unlabelled]))
    own_columns = [*own_column_paths(labelled)]
    names = (
        *TRACE_INPUTS,
        *(f"scores.{name}" for name in custom),
        *inputs_with_columns((), own_columns),
    )
    rows = labelled.select("example_id", "correct").join(groups, on="example_id", validate="1:1")
    sides = assign_sides(labelled, rows.select("example_id", "group_id")).select(
        "example_id", "side", rank=pl.col("order").rank("dense").cast(pl.Int64) - 1
    )
    inputs = compute_inputs(labelled, names, custom)
    frame = rows.join(sides, on="example_id", validate="1:1").join(
        inputs, on="example_id", validate="1:1"
    )
    if frame["group_id"].n_unique() == 1:
        raise InputError(
            f"all {frame.height} labelled answers are of one group, so that none can be predicted "
            "by the labels of others. Give answers that are not variants of each other group ids "
            "of their own."
        )
    estimators = _computable(frame, labelled, custom)
    if own_columns:
        estimators |= {LOG_RIDGE_ALSO.id: _with_columns(frame, own_columns)}
    grouped = unlabelled.drop("group_id").join(groups, on="example_id", validate="1:1")
    method = settings.calibration.method
    training = TrainingSet(labelled, frame, estimators, grouped, method, custom=custom)
    part_names = parts.pooled if parts and method == "platt" else ()
    if not part_names:
        return training
    return training._replace(
        frame=frame.join(part_codes(labelled, part_names), on="example_id", validate="1:1"),
        estimators=by_part(estimators, training.own_fits())[0],
        part_names=part_names,
    )


def _computable(
    frame: pl.DataFrame, labelled: pl.DataFrame, custom: Custom
) -> dict[str, list[str]]:
    """Return the inputs of each estimator that enough answers allow to compute."""
    columns = set(frame.columns)
    estimators = {
        entry.id: INPUTS[entry.id] for entry in ESTIMATORS if columns.issuperset(INPUTS[entry.id])
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
    """Return the inputs of the fit with own columns: log ridge's common inputs, then the columns.

    Raises `InputError` if too few answers have the columns, or a feature has a column's name.
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
