"""Confidences of answers as the explorer shows them: probabilities, held-out ones and scores."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import polars as pl

from tracecal.calibrator.predictor import Predictor, make_predictor
from tracecal.calibrator.schema import CalibratorFile
from tracecal.calibrator.trace_kinds import compare_answers, fingerprints
from tracecal.estimators.custom_scores import with_own_inputs
from tracecal.estimators.features import SCORES, TRACE_INPUTS, compute_inputs
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO
from tracecal.explorer.explorer_contents import HELD_OUT, PROBABILITY, SCORE
from tracecal.io.log import LOGGER


def trace_predictors(file: CalibratorFile, where: str) -> dict[str, Predictor]:
    """A calibrator's predictors that need only a trace, by estimator."""
    of_trace = [entry.id for entry in ESTIMATORS if {*entry.inputs} <= {*TRACE_INPUTS}]
    names = [name for name in (*of_trace, LOG_RIDGE_ALSO.id) if name in file.estimators]
    return {name: make_predictor(file, name, where) for name in names}


def with_held_out(
    fits: Mapping[str, Predictor], predictions: pl.DataFrame, records: pl.DataFrame
) -> dict[str, Predictor]:
    """Give each fit the `predictions` by other folds of the labelled answers, their `records`."""
    answers = records.select("example_id", answer=fingerprints(records)).drop_nulls("answer")
    rows = predictions.join(answers, on="example_id").select("estimator", "answer", "probability")
    held_out: dict[str, dict[str, float]] = {}
    for estimator, answer, probability in rows.iter_rows():
        held_out.setdefault(estimator, {})[answer] = probability
    return {name: replace(fit, held_out=held_out.get(name, {})) for name, fit in fits.items()}


def confidence_columns(
    records: pl.DataFrame, fits: Mapping[str, Predictor], task: str | None
) -> pl.DataFrame:
    """Compute each record's probability, held-out probability and score by estimator.

    Of an answer that the calibrator was fitted on, both probabilities are by a fit that had not
    seen it; where the file holds none, the second is None. Without `fits` there are scores alone.
    """
    # A calibrator's fits share one model, task and set of labels.
    labelled: tuple[str, ...] = ()
    for fit in [*fits.values()][:1]:
        labelled = fit.fitted_on.answers
        for warning in compare_answers(records, fit.fitted_on, task):
            LOGGER.warning("%s", warning)
    answers = fingerprints(records)
    is_labelled = answers.is_in(list(labelled)).fill_null(False)
    if is_labelled.any() and not any(fit.held_out for fit in fits.values()):
        LOGGER.warning(
            "the calibrator was fitted on %d of the answers, and holds no probability of them by a "
            "fit that had not seen them: charts leave them out. Calibrate again to change that",
            is_labelled.sum(),
        )
    nulls = pl.repeat(None, records.height, dtype=pl.Float64, eager=True)
    fit_inputs = dict.fromkeys(name for fit in fits.values() for name in fit.inputs)
    extend = partial(with_own_inputs, names=fit_inputs)
    values = compute_inputs(records, dict.fromkeys([*TRACE_INPUTS, *fit_inputs]), extend)
    parts = records["part"] if "part" in records.columns else nulls
    columns = {}
    for name in fits or SCORES:
        probability = held_out = nulls
        if fits:
            held_out = answers.replace_strict(
                fits[name].held_out, default=None, return_dtype=pl.Float64
            )
            probability = predict(values, fits[name], parts)
            held_out = probability.zip_with(~is_labelled, held_out)
            probability = probability.zip_with(held_out.is_null(), held_out)
        score = values[f"scores.{name}"] if f"scores.{name}" in values.columns else nulls
        if probability.count() or score.count():
            columns[PROBABILITY + name] = probability
            columns[HELD_OUT + name] = held_out.set(records["correct"].is_null(), None)
            columns[SCORE + name] = score
    return pl.DataFrame(columns)


def predict(values: pl.DataFrame, fit: Predictor, parts: pl.Series) -> pl.Series:
    """The probability of each row of `values`; None where an input of the estimator is."""
    x = values.select(fit.inputs)
    is_defined = x.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    rows = is_defined.arg_true()
    probabilities = pl.Series([None] * values.height, dtype=pl.Float64)
    if len(rows):
        matrix = x.filter(is_defined).to_numpy(order="c")
        matrix = fit.with_part(matrix, parts.filter(is_defined))
        probabilities = probabilities.scatter(rows, fit.final.predict(matrix))
    return probabilities
