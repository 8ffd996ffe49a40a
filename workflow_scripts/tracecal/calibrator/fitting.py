"""Fitting a calibrator on a file of labelled answers, by the workflow's protocol."""

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import own_column_paths
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.risk_control import control_risk
from tracecal.calibrator.calibration_data import describe_answers
from tracecal.calibrator.catalogue import describe_dependence
from tracecal.calibrator.fingerprints import fingerprints
from tracecal.calibrator.recommendation import DIGITS, recommend
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    CalibrationData,
    CalibratorFile,
    ErrorRateControl,
    HeldOut,
    Reference,
)
from tracecal.calibrator.settings import FitSettings
from tracecal.calibrator.trace_kinds import describe_other_kinds, undecided
from tracecal.calibrator.training_set import TrainingSet, make_training_set
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.estimators.trace_inputs import NO_CUSTOM, Custom
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded
from tracecal.io.settings import parse

MAX_REFERENCE = 500
MAX_TESTED_GROUPS = 5000  # more would cost time and hardly move a threshold


def fit_calibrator(
    answers: pl.DataFrame,
    task: str,
    settings: FitSettings,
    revision: str | None = None,
    vocabulary: int | None = None,
    parts: Parts | None = None,
    custom: Custom = NO_CUSTOM,
    training: TrainingSet | None = None,
) -> CalibratorFile:
    """Fit all estimators that need only a trace, recommend one and find its thresholds.

    `answers` has the columns of `RECORDS`; answers without a label are left out. Where they are
    `parts` of answers, as `part_answers` makes them, one calibrator serves all names. `custom`
    estimators are fitted, too, and never recommended, as a reader of the file may not know them.
    The recommended one takes further columns, with which answers were read (`also`), as inputs.
    `training` is the training set of the answers, where it is made already. Raises `InputError`
    where too few are labelled, where they mix models or kinds of trace, or where equal answers have
    different labels.
    """
    training = training or make_training_set(answers, task, settings, parts, custom)
    usable = answers.join(training.frame.select("example_id"), on="example_id", how="semi")
    usable = usable.sort("example_id")
    split = _limit_tested(training.first_split)
    # Calibration part only; the other part tests thresholds.
    untested = usable.join(split.filter(part="calibration"), on="example_id", how="semi")
    data = describe_answers(usable, untested, task, revision, vocabulary, parts)
    if warning := describe_other_kinds(usable, data):
        LOGGER.warning("%s", warning)
    _, fits = training.calibrate(training.first_split, settings)
    recommendation = recommend(training, fits, settings)
    groups = training.frame["group_id"].n_unique()
    data = data.model_copy(update={"groups": groups} | recommendation._asdict())
    estimators = {
        name: _guarantee(name, training, fits[name], usable, split, data, settings, custom)
        for name in training.estimators
    }
    held_out = _hold_out(training, data.estimator, settings, usable)
    # Refuse now what `read` would refuse.
    parse(CalibrationData, data.model_dump(mode="json", by_alias=True), "the calibrator")
    return CalibratorFile.of(data, estimators).with_keys(data.estimator, held_out=held_out)


def _guarantee(
    name: str,
    training: TrainingSet,
    fits: EstimatorFits,
    usable: pl.DataFrame,
    split: pl.DataFrame,
    data: CalibrationData,
    settings: FitSettings,
    custom: Custom,
) -> CalibratedEstimator:
    """Find an estimator's thresholds on the tested part of `split`."""
    columns, control = training.estimators[name], settings.risk_control
    reasons = pl.Series(undecided(usable, columns, data), dtype=pl.String)
    decided = usable.select("example_id").filter(reasons.is_null())
    inputs = {column.split(".", 1)[1]: column for column in columns}
    rows = training.frame.select("example_id", "correct", **inputs)
    tested = control_risk(
        fits,
        rows.join(decided, on="example_id", how="semi"),
        split,
        control.error_rates,
        control.confidence,
        largest_group=control.largest_group,
        forecast=name == data.estimator,
    )
    if name == LOG_RIDGE_ALSO.id:
        tested["about"] += f"; answers are kept by {describe_dependence(own_column_paths(usable))}"
    return CalibratedEstimator(
        features=fits.features,
        splits=fits.splits,
        final=fits.final,
        risk_control=ErrorRateControl.model_validate(tested),
        reference=_reference(training, fits, columns, split, settings.seed),
        definition=str(custom[name]) if name in custom else None,
    )


def _limit_tested(split: pl.DataFrame) -> pl.DataFrame:
    """Keep the first MAX_TESTED_GROUPS groups of a split's evaluation part, in random order."""
    ranks = split.filter(part="evaluation")["rank"].unique().sort()
    if len(ranks) <= MAX_TESTED_GROUPS:
        return split
    counts = MAX_TESTED_GROUPS, len(ranks)
    LOGGER.info("thresholds are tested on %d of the %d questions", *counts)
    last = ranks[MAX_TESTED_GROUPS]
    return split.filter((pl.col("part") == "calibration") | (pl.col("rank") < last))


def _reference(
    training: TrainingSet,
    fits: EstimatorFits,
    columns: list[str],
    split: pl.DataFrame,
    seed: int,
) -> Reference:
    """Values of answers that the first split's fit has not seen, for monitors to compare with.

    One of each group, as members of a group are alike, drawn at random among those with all
    `columns`; at most MAX_REFERENCE.
    """
    unseen = split.filter(part="evaluation").join(training.frame, on="example_id")
    unseen = unseen.sort("example_id").drop_nulls(columns)
    order = pl.Series("order", seeded("reference", seed).permutation(unseen.height))
    shuffled = unseen.lazy().with_columns(order).sort("rank", "order")
    first = shuffled.unique("rank", keep="first", maintain_order=True).head(MAX_REFERENCE)
    rows = first.select({"features.log_length", *columns}).collect()
    length = rows["features.log_length"].drop_nulls().exp().round()
    proba = fits.splits[0].predict(rows.select(columns).to_numpy())
    return Reference(tuple(proba.tolist()), tuple(length.to_list()))


def _hold_out(
    training: TrainingSet, estimator: str, settings: FitSettings, usable: pl.DataFrame
) -> HeldOut:
    """Predict each answer by fits that had not seen it, for `tracecal plan` and `explore`."""
    alone = training._replace(estimators={estimator: training.estimators[estimator]})
    labels = training.frame.select("example_id", "correct", "group_id")
    answers = usable.select("example_id", answer=fingerprints(usable))
    rows = (
        alone.cross_fitted(settings)
        .join(labels, on="example_id", validate="1:1")
        .join(answers, on="example_id", validate="1:1")
        .sort("example_id")
        .with_columns(
            pl.col("probability").round_sig_figs(DIGITS),
            group=pl.col("group_id").rank("dense") - 1,
        )
    )
    columns = ("group", "correct", "fold", "probability", "answer")
    return HeldOut(**rows.select(columns).to_dict(as_series=False))
