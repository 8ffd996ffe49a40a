"""Calibrated probabilities of every estimator in every split, and their means over splits.

1. `calibrate_all` fits the estimators and predicts.
2. `pick_baselines` picks the baseline that a user would pick in each split: the one that fits its
   labels best. `with_picked` adds its predictions.
3. `mean_probabilities` averages predictions over splits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.estimators.estimator import PICKED, OwnFit, input_columns
from tracecal.estimators.feature_sets import LOG_RIDGE, STACK_OF_SIX, TRACE_PLUS_ON_LOGARITHMS
from tracecal.fits.fits import EstimatorFits, Fit, LogOddsMean
from tracecal.fits.pooled import fit_pooled
from tracecal.fits.regression import Method, fit_all, fit_mixtures, fit_prior_ridge, fit_ridge
from tracecal.statistics.probability_metrics import nll

PREDICTIONS = {
    "estimator": pl.String,
    "split": pl.Int64,
    "example_id": pl.String,
    "probability": pl.Float64,
}
# The estimators whose log odds 'log_odds_mean' averages; None: the protocol's method.
MEAN_OF: tuple[tuple[OwnFit | None, tuple[str, ...]], ...] = (
    ("ridge", tuple(input_columns(LOG_RIDGE))),
    ("mixture", tuple(input_columns(STACK_OF_SIX))),
    (None, tuple(input_columns(TRACE_PLUS_ON_LOGARITHMS))),
)
PICKS = {"split": pl.Int64, "baseline": pl.String, "log_loss": pl.Float64}


class Inputs(NamedTuple):
    """An estimator's inputs x [n, d], their names, and a mask [n] of the answers that have all."""

    names: list[str]
    x: np.ndarray
    complete: np.ndarray


class Job(NamedTuple):
    """A way of fitting and its inputs; equal jobs of several estimators are done once."""

    way: Method | OwnFit
    columns: tuple[str, ...]


def calibrate_all(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    own_fits: Mapping[str, OwnFit] | None = None,
    part_names: Sequence[str] = (),
) -> tuple[pl.DataFrame, dict[str, EstimatorFits]]:
    """Fit each estimator on each split's calibration part and predict its evaluation part.

    `answers` holds `example_id`, `correct` and the columns that `estimators` names (id -> columns).
    An estimator's fit and predictions leave out rows with a None among its columns. `own_fits`
    prescribes the fits of some estimators; `method` fits the others.
    'mixture' and 'log_odds_mean' need the column `rank` of `splits`, and 'pooled' the `part_names`
    (see `calibration.pooled`). An answer whose `part` of a split is None is not predicted there.
    Returns the predictions by estimator, split and example, and each estimator's fits.
    """
    answers = answers.sort("example_id")
    ids = answers["example_id"]
    is_calibration = pl.col("part") == "calibration"
    calibration = _masks(ids, splits, is_calibration)
    unpredicted = _masks(ids, splits, is_calibration | pl.col("part").is_null())
    correct, own_fits = answers["correct"].to_numpy(), own_fits or {}
    masks = [*calibration.values(), np.ones_like(correct)]  # the last for the final fit
    jobs = {
        name: Job(own_fits.get(name, method), tuple(columns))
        for name, columns in estimators.items()
    }
    members = [Job(way or method, columns) for way, columns in MEAN_OF]
    means = {job for job in jobs.values() if job.way == "log_odds_mean"}
    fitted_jobs = [*jobs.values(), *(members if means else ())]
    inputs = _inputs(answers, fitted_jobs)
    takes_groups = any(job.way == "mixture" for job in fitted_jobs)
    groups = _groups(ids, splits) if takes_groups else []
    fits: dict[Job, list[Fit]] = {}
    for way in dict.fromkeys(job.way for job in inputs if job not in means):
        of_way = [job for job in inputs if job.way == way]
        inputs_of_way = [inputs[job] for job in of_way]
        data = LabelledInputs(inputs_of_way, correct, masks, groups, part_names)
        fitted = iter(WAYS[way](data) if way in WAYS else fit_all(data.pairs, way))
        fits |= {job: [next(fitted) for _ in masks] for job in of_way}
    for job in means:
        columns = [[job.columns.index(name) for name in member.columns] for member in members]
        by_mask = zip(*(fits[member] for member in members), strict=True)
        fits[job] = [LogOddsMean(columns, list(of_mask)) for of_mask in by_mask]
    calibrators = {
        name: EstimatorFits(
            features=inputs[job].names,
            splits=dict(zip(calibration, fits[job][:-1], strict=True)),
            final=fits[job][-1],
        )
        for name, job in jobs.items()
    }
    by_name = {name: inputs[job] for name, job in jobs.items()}
    return _predict(ids, unpredicted, by_name, calibrators), calibrators


def mean_probabilities(predictions: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Average `probability` by `keys` over the splits that evaluate them."""
    # Sorted, so that sums do not depend on the order of the rows.
    ordered = predictions.sort(*keys, "split").group_by(keys, maintain_order=True)
    return ordered.agg(pl.col("probability").mean())


def pick_baselines(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    calibrators: Mapping[str, EstimatorFits],
    baselines: Sequence[str],
) -> pl.DataFrame:
    """Pick a baseline in each split by its log loss (nats) there; columns PICKS.

    `answers`, `splits`, `estimators` and `calibrators` are those of `calibrate_all`. Only baselines
    that score the most answers of the calibration part are candidates, as losses on other answers
    do not compare; of equal losses the first of `baselines` counts.
    """
    answers = answers.sort("example_id")
    calibration = splits.filter(part="calibration").partition_by("split", as_dict=True)
    rows = []
    for (split,), part in calibration.items():
        labelled = answers.join(part.select("example_id"), on="example_id", how="semi")
        losses = {}
        for name in baselines:
            complete = labelled.drop_nulls(estimators[name])
            x = complete.select(estimators[name]).cast(pl.Float64).to_numpy()
            y_true = complete["correct"].to_numpy()[None]
            proba = calibrators[name].splits[split].predict(x)[None]
            losses[name] = (-len(x), nll(proba, y_true)[0] if len(x) else 0)
        best = min(losses, key=losses.__getitem__, default=None)
        if best is not None and losses[best][0]:
            rows.append((split, best, losses[best][1]))
    return pl.DataFrame(rows, schema=PICKS, orient="row").sort("split")


def with_picked(predictions: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
    """Add to `predictions` the `picked` baseline's of each split, under the name PICKED."""
    picks = picked.select("split", estimator="baseline")
    rows = predictions.join(picks, on=["estimator", "split"], how="semi", maintain_order="left")
    renamed = rows.with_columns(estimator=pl.lit(PICKED)).sort("split", maintain_order=True)
    return pl.concat([predictions, renamed])


def _masks(ids: pl.Series, splits: pl.DataFrame, condition: pl.Expr) -> dict[int, np.ndarray]:
    """Return by split a mask [n] of the `ids` whose row there meets a condition."""
    members = splits.group_by("split").agg(pl.col("example_id").filter(condition)).sort("split")
    return {split: ids.is_in(group).to_numpy() for split, group in members.iter_rows()}


def _groups(ids: pl.Series, splits: pl.DataFrame) -> list[np.ndarray]:
    """The ranks [n] of the groups of `ids` in each split, and the first split's for all labels."""
    ranks = [
        pl.DataFrame([ids]).join(rows, on="example_id", how="left", maintain_order="left")["rank"]
        for rows in splits.sort("split").partition_by("split")
    ]
    return [rank.to_numpy() for rank in (*ranks, *ranks[:1])]


def _inputs(answers: pl.DataFrame, jobs: Iterable[Job]) -> dict[Job, Inputs]:
    """The inputs of each job; all columns are read at once, which is faster."""
    jobs = dict.fromkeys(jobs)
    columns = sorted(set().union(*(job.columns for job in jobs)))
    places = {name: index for index, name in enumerate(columns)}
    frame = answers.select(*places)
    values = frame.cast(pl.Float64).to_numpy().T
    present = frame.select(pl.all().is_not_null()).to_numpy().T
    inputs = {}
    for job in jobs:
        rows = [places[column] for column in job.columns]
        names = [column.split(".", 1)[-1] for column in job.columns]
        inputs[job] = Inputs(names, values[rows].T, present[rows].all(axis=0))
    return inputs


class LabelledInputs(NamedTuple):
    """What a way of fitting takes: the inputs of several estimators, and masks of answers to fit.

    Attributes
    ----------
    inputs : sequence of Inputs
        Of each estimator.
    correct : array [n] of bool
        The labels.
    masks : sequence of arrays [n]
        The answers of each fit, of which those with all inputs are fitted.
    groups : sequence of arrays [n]
        The ranks of their groups in each mask.
    part_names : sequence of str
        Of `fit_pooled`.
    """

    inputs: Sequence[Inputs]
    correct: np.ndarray
    masks: Sequence[np.ndarray]
    groups: Sequence[np.ndarray]
    part_names: Sequence[str]

    @property
    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Inputs and labels of each estimator and mask, in order."""
        return [pair for estimator in self.inputs for pair in self.parts(estimator)]

    def parts(
        self, estimator: Inputs, *columns: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, ...]]:
        """Inputs and labels of an estimator in each mask, and further `columns` [n] of each."""
        rows = [estimator.complete & mask for mask in self.masks]
        return [
            (estimator.x[row], self.correct[row], *(values[number][row] for values in columns))
            for number, row in enumerate(rows)
        ]


# The ways of fitting but for the protocol's methods, which `fit_all` fits.
WAYS: Mapping[str, Callable[[LabelledInputs], list[Fit]]] = {
    "ridge": lambda data: [
        fit for inputs in data.inputs for fit in fit_ridge(data.parts(inputs), inputs.names)
    ],
    "prior_ridge": lambda data: [
        fit for inputs in data.inputs for fit in fit_prior_ridge(data.parts(inputs), inputs.names)
    ],
    "mixture": lambda data: [
        fit
        for inputs in data.inputs
        for fit in fit_mixtures(data.parts(inputs, data.groups), inputs.names)
    ],
    "pooled": lambda data: fit_pooled(data.pairs, data.part_names),
}


def _predict(
    ids: pl.Series,
    unpredicted: Mapping[int, np.ndarray],
    inputs: Mapping[str, Inputs],
    calibrators: Mapping[str, EstimatorFits],
) -> pl.DataFrame:
    """Predict each split's complete answers but those of a mask [n] (`PREDICTIONS`)."""
    keys = [(name, split) for name in inputs for split in unpredicted]
    if not keys:
        return pl.DataFrame(schema=PREDICTIONS)
    rows = [np.flatnonzero(inputs[name].complete & ~unpredicted[split]) for name, split in keys]
    predicted = [
        calibrators[name].splits[split].predict(inputs[name].x[places])
        for (name, split), places in zip(keys, rows, strict=True)
    ]
    key_of_row = np.repeat(np.arange(len(keys)), [len(places) for places in rows])
    key_rows = pl.DataFrame(keys, schema=["estimator", "split"], orient="row")
    columns = {
        "example_id": ids.gather(np.concatenate(rows)),
        "probability": np.concatenate(predicted),
    }
    return key_rows[key_of_row].with_columns(**columns).cast(PREDICTIONS)
