"""Fitting a calibrator on labelled answers, and on the unlabelled ones beside them.

A user's own column beside the trace must not be the label itself (`require_no_label`): it would
make any guarantee look easy and say nothing about new answers.
"""

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import ALSO
from tracecal.calibration.fits import EstimatorFits, probabilities
from tracecal.calibration.guarantees.fixed_score import AMOUNTS, fit_fixed_score
from tracecal.calibration.ranking import single_auroc
from tracecal.calibration.settings import FitSettings
from tracecal.calibrator.guarantee import AnswerColumn, find_guarantees, with_forecasts
from tracecal.calibrator.looks import level_of, looks_confidence, with_look
from tracecal.calibrator.predictor import UNDEFINED
from tracecal.calibrator.ranking import choose_ranking, rank_answers
from tracecal.calibrator.recommendation import DIGITS, count_smaller_class, recommend
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    CalibrationData,
    CalibratorFile,
    HeldOut,
)
from tracecal.calibrator.trace_kinds import describe_other_kinds
from tracecal.calibrator.training_set import TrainingFits, TrainingSet, describe_answers
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse

MOST_REASONS = 3  # why labelled answers have no probability
LABEL_PATHS = ("correct", "label")  # where a label is read unless its path is named
MIN_OF_CLASS = 10  # right and wrong answers that a column must equal to be taken for the label
SUSPICIOUS_AUROC = 0.99


def fit_calibrator(
    training: TrainingSet,
    fits: TrainingFits,
    task: str,
    settings: FitSettings,
    revision: str | None = None,
    vocabulary: int | None = None,
    parts: Parts | None = None,
    estimator: str | None = None,
    recall: float | None = None,
    by: AnswerColumn | None = None,
    looks: int | None = None,
    earlier: CalibrationData | None = None,
) -> CalibratorFile:
    """Recommend one of the `fits` of a training set and find guaranteed error rates.

    One calibrator serves all names of `parts` (rows of `part_answers`). Custom estimators are
    never recommended, since a reader of the file may not have them. The recommended estimator takes
    the further columns of the answers (`also`) as inputs. A named `estimator` gives
    the probabilities and ranks the answers to keep; `recall` is the target share of right answers
    to keep, and `by` a column to count errors by. `looks` are planned at growing labels, of which
    `earlier` describes the one before (`with_look`). Raises `InputError` if the estimator cannot be
    computed, or the answers mix models or kinds of trace.
    """
    data = describe_answers(training, task, revision, vocabulary, parts)
    confidence = settings.risk_control.confidence
    data = with_look(data, training.records, confidence, looks, earlier)
    settings = settings.with_confidence(1 - level_of(data, training.records))
    if warning := describe_other_kinds(training.records, data):
        LOGGER.warning("%s", warning)
    ranking = choose_ranking(training, fits.estimators, estimator)
    answers = rank_answers(training, ranking)
    control = find_guarantees(ranking, answers, settings.risk_control, training.unit, recall, by)
    recommendation = recommend(training, fits, settings)
    if estimator is not None:
        recommendation = recommendation._replace(estimator=estimator, gain=None)
    missing = _count_missing(training, recommendation.estimator)
    data = data.model_copy(update={"without_probability": missing} | recommendation._asdict())
    estimators = {name: _final_fit(training, name, fit) for name, fit in fits.estimators.items()}
    held_out = _hold_out(training, fits.predictions.filter(estimator=recommendation.estimator))
    control = control.model_copy(update={"looks_confidence": looks_confidence(data)})
    control = with_forecasts(control, held_out)
    # Refuse now what `read` would refuse.
    parse(CalibrationData, data.model_dump(mode="json", by_alias=True), "the calibrator")
    return CalibratorFile.of(data, estimators).with_keys(
        data.estimator,
        risk_control=control,
        reference=ranking.reference(),
        held_out=held_out,
    )


def _final_fit(training: TrainingSet, name: str, fits: EstimatorFits) -> CalibratedEstimator:
    """Return an estimator's fit on all labels, as files hold it."""
    custom = training.custom
    definition = str(custom[name]) if name in custom else None
    return CalibratedEstimator(
        features=fits.features, splits={}, final=fits.final, definition=definition
    )


def _count_missing(training: TrainingSet, estimator: str) -> tuple[tuple[str, int], ...]:
    """Count the reasons why labelled answers get no probability from an estimator."""
    columns = training.estimators[estimator]
    missing = training.frame.filter(pl.any_horizontal(pl.col(columns).is_null()))
    rows = training.records.join(missing, on="example_id", how="semi")
    lacks = rows["lacks"].fill_null(UNDEFINED).str.replace_all(r"token \d+", "a token")
    counts = lacks.value_counts()
    reasons = counts.sort(["count", "lacks"], descending=[True, False]).rows()
    n_others = sum(count for _, count in reasons[MOST_REASONS:])
    others = [("other reasons", n_others)] if n_others else []
    return (*reasons[:MOST_REASONS], *others)


def _hold_out(training: TrainingSet, predictions: pl.DataFrame) -> HeldOut:
    """Describe labelled answers by their cross-fitted `predictions`, for `plan` and `explore`."""
    ranking = fit_fixed_score(training.unlabelled.select(AMOUNTS))
    (fixed,) = probabilities(training.frame.select(ranking.inputs), [ranking.fit])
    labels = training.frame.select(
        "example_id",
        "correct",
        training.records["fingerprint"].alias("answer"),
        pl.Series("fixed", fixed).fill_nan(None),
        group="rank",
    )
    rows = labels.join(
        predictions, on="example_id", validate="1:1", maintain_order="left"
    ).with_columns(pl.col("probability", "fixed").round_sig_figs(DIGITS))
    columns = ("group", "correct", "fold", "probability", "answer", "fixed")
    return HeldOut(**rows.select(columns).to_dict(as_series=False))


def require_no_label(training: TrainingSet, label: str | None = None) -> None:
    """Raise `InputError` if an own column is the label; warn if it nearly determines the label.

    Parameters
    ----------
    training : TrainingSet
        The labelled answers.
    label : str, optional
        The path that their labels were read from.
    """
    label_paths = LABEL_PATHS if label is None else (label,)
    for name, path in training.own_columns.items():
        if path in label_paths:
            raise InputError(_refusal(name, path, "is the path of the label"))
        column = f"{ALSO}{name}"
        rows = training.frame.select("correct", value=pl.col(column)).drop_nulls()
        correct, value = rows["correct"], rows["value"]
        if count_smaller_class(rows) < MIN_OF_CLASS:
            continue
        if (value == correct.cast(pl.Float64)).all():
            what = f"equals the label in all {rows.height} labelled answers"
            raise InputError(_refusal(name, path, what))
        auroc = single_auroc(value.to_numpy(), correct.to_numpy())
        if auroc is not None and auroc > SUSPICIOUS_AUROC:
            LOGGER.warning(
                "--also %s=%s tells right from wrong labels nearly perfectly (AUROC %.3f): what is "
                "guaranteed rests on it, and holds only if new answers get it before they are "
                "judged",
                *(name, path, auroc),
            )


def _refusal(name: str, path: str, what: str) -> str:
    return (
        f"--also {name}={path} {what}, so that new answers have no such column, or are judged "
        "already: leave it out."
    )
