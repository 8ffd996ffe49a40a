"""Calibrated probabilities of every estimator in every split, and the baseline selected by them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from tracecal.calibration.few_labels import fit_mixtures, fit_pooled, fit_ridge
from tracecal.calibration.fits import Fit, Method, as_json, fit_all, from_json
from tracecal.calibration.proper_scores import nll
from tracecal.estimators.entry import PICKED
from tracecal.estimators.estimator import OwnFit
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet

PREDICTIONS = {
    "estimator": pl.String,
    "split": pl.Int64,
    "example_id": pl.String,
    "probability": pl.Float64,
}


class _Inputs(NamedTuple):
    """An estimator's columns [n, d], their `names` without folders, and a mask [n] of the answers
    that have all of them."""

    names: list[str]
    x: np.ndarray
    complete: np.ndarray


def calibrate_all(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    own_fits: Mapping[str, OwnFit] | None = None,
    penalty: float = 1.0,
    part_names: Sequence[str] = (),
) -> tuple[pl.DataFrame, dict[str, object]]:
    """Fit each estimator on each split's calibration part and predict its evaluation part.

    `answers` holds `example_id`, `correct` and the columns named by `estimators` (id -> columns).
    A row with a null among an estimator's columns is left out of its fit and prediction. The
    estimators in `own_fits` are fitted in that way, the others by `method` with `fit_all`'s
    `penalty`; a 'mixture' needs the column `rank` of `splits`, and 'pooled' the `part_names` (see
    `calibration.few_labels`). Returns the predictions, by estimator, split and example, and per
    estimator the calibrators as plain JSON: one per split, and `final`, fitted on all labels.
    """
    answers = answers.sort("example_id")
    parts = _calibration_parts(answers["example_id"], splits)
    inputs = _inputs(answers, estimators)
    correct, own_fits = answers["correct"].to_numpy(), own_fits or {}
    masks = [*parts.values(), np.ones_like(correct)]
    groups = _groups(answers["example_id"], splits) if "mixture" in own_fits.values() else []
    ways = {name: own_fits.get(name, method) for name in estimators}
    fits: dict[str, list[Fit]] = {}
    for way in dict.fromkeys(ways.values()):
        names = [name for name in estimators if ways[name] == way]
        chosen = [inputs[name] for name in names]
        if way == "pooled":
            rows = [(one.x, one.complete & mask) for one in chosen for mask in masks]
            found = iter(fit_pooled([(x[used], correct[used]) for x, used in rows], part_names))
        else:
            found = iter(_fit(chosen, correct, masks, groups, way, penalty))
        fits |= {name: [next(found) for _ in masks] for name in names}
    fitted = {name: dict(zip(parts, fits[name][:-1], strict=True)) for name in estimators}
    predictions = _predictions(answers["example_id"], parts, inputs, fitted)
    return predictions, {
        name: {
            "features": inputs[name].names,
            "splits": {str(split): as_json(fit) for split, fit in fitted[name].items()},
            "final": as_json(fits[name][-1]),
        }
        for name in estimators
    }


def probabilities(columns: pl.DataFrame, fits: Iterable[Mapping]) -> np.ndarray:
    """The probability of each answer by each split's calibrator, [splits, n], NaN where a column is
    null. `fits` are calibrators as JSON, in the order of their splits.
    """
    x = columns.cast({pl.Null: pl.Float64}).cast(pl.Float64).to_numpy()
    complete = np.isfinite(x).all(axis=1)
    found = [from_json(fit).predict(np.where(complete[:, None], x, 0.0)) for fit in fits]
    return np.where(complete, np.array(found), np.nan)


def _calibration_parts(ids: pl.Series, splits: pl.DataFrame) -> dict[int, np.ndarray]:
    """By split, a mask [n] of the `ids` that calibrate."""
    calibration = pl.col("example_id").filter(part="calibration")
    groups = splits.group_by("split").agg(calibration).sort("split")
    return {split: ids.is_in(members).to_numpy() for split, members in groups.iter_rows()}


def _groups(ids: pl.Series, splits: pl.DataFrame) -> list[np.ndarray]:
    """The ranks [n] of the groups of `ids` in each split, and the first split's for all labels."""
    ranks = [
        pl.DataFrame([ids]).join(rows, on="example_id", how="left", maintain_order="left")["rank"]
        for rows in splits.sort("split").partition_by("split")
    ]
    return [rank.to_numpy() for rank in (*ranks, *ranks[:1])]


def _inputs(answers: pl.DataFrame, estimators: Mapping[str, Sequence[str]]) -> dict[str, _Inputs]:
    """The inputs of each estimator; all columns are read at once, which is faster."""
    used = {name: place for place, name in enumerate(sorted(set().union(*estimators.values())))}
    inputs = answers.select(*used)
    values = inputs.cast(pl.Float64).to_numpy().T
    known = inputs.select(pl.all().is_not_null()).to_numpy().T
    found = {}
    for name, columns in estimators.items():
        places = [used[column] for column in columns]
        names = [column.split(".", 1)[-1] for column in columns]
        found[name] = _Inputs(names, values[places].T, known[places].all(axis=0))
    return found


def _fit(
    inputs: Sequence[_Inputs],
    correct: np.ndarray,
    parts: Sequence[np.ndarray],
    groups: Sequence[np.ndarray],
    way: Method | OwnFit,
    penalty: float,
) -> list[Fit]:
    """The fits of each input's complete answers in each of `parts` (masks [n]), in order."""
    if way not in ("ridge", "mixture"):
        rows = [(one.x, one.complete & part) for one in inputs for part in parts]
        return fit_all([(x[used], correct[used]) for x, used in rows], way, penalty)
    fits = []
    for one in inputs:
        rows = [one.complete & part for part in parts]
        pairs = [(one.x[used], correct[used]) for used in rows]
        if way == "ridge":
            fits += fit_ridge(pairs, one.names)
        else:
            ranks = [group[used] for group, used in zip(groups, rows, strict=True)]
            triples = [(*pair, rank) for pair, rank in zip(pairs, ranks, strict=True)]
            fits += fit_mixtures(triples, one.names)
    return fits


def _predictions(
    ids: pl.Series,
    parts: Mapping[int, np.ndarray],
    inputs: Mapping[str, _Inputs],
    fitted: Mapping[str, Mapping[int, Fit]],
) -> pl.DataFrame:
    """`PREDICTIONS` of each split's complete answers outside its calibration part."""
    keys = [(name, split) for name in inputs for split in parts]
    rows = [np.flatnonzero(inputs[name].complete & ~parts[split]) for name, split in keys]
    probabilities = [
        fitted[name][split].predict(inputs[name].x[used])
        for (name, split), used in zip(keys, rows, strict=True)
    ]
    if not keys:
        return pl.DataFrame(schema=PREDICTIONS)
    of_key = np.repeat(np.arange(len(keys)), [len(used) for used in rows])
    key_rows = pl.DataFrame(keys, schema=["estimator", "split"], orient="row")
    columns = {
        "example_id": ids.gather(np.concatenate(rows)),
        "probability": np.concatenate(probabilities),
    }
    return key_rows[of_key].with_columns(**columns).cast(PREDICTIONS)


# A task's labelled answers: the input of calibration, and mean predictions.


def read_answers(
    labels: str | Path, task: str | Path, scores: str | Path, features: str | Path
) -> pl.DataFrame:
    """One row per evaluated answer, sorted by `example_id`, with `group_id`, `correct`, all inputs.

    Columns of the files `scores` and `features` are named `scores.<column>` and
    `features.<column>`: some share a name and differ in sign. Raises `InputError` where a file
    is unreadable or an evaluated example has no label.
    """
    labelled = read_parquet(labels, ["example_id", "correct"])
    answers = evaluated(labelled, task, ["group_id"])
    for folder, path in (("scores", scores), ("features", features)):
        columns = read_parquet(path, needed=["example_id"])
        prefixed = columns.select("example_id", pl.exclude("example_id").name.prefix(f"{folder}."))
        answers = answers.join(prefixed, on="example_id", how="left", validate="1:1")
    return answers


def raw_scores(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and the columns of `scores/` under their own names."""
    renamed = cs.starts_with("scores.").name.map(lambda name: name.removeprefix("scores."))
    return answers.select("example_id", renamed)


def mean_probabilities(predictions: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """`keys` and the mean `probability` over the splits that evaluate them."""
    # Sorted, so that sums are rounded alike whatever the order of the rows.
    ordered = predictions.sort(*keys, "split").group_by(keys, maintain_order=True)
    return ordered.agg(pl.col("probability").mean())


# The baseline that a user would choose: the one that fits the calibration labels best.


PICKS = {"split": pl.Int64, "baseline": pl.String, "log_loss": pl.Float64}


def picks(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    calibrators: Mapping[str, Mapping],
    baselines: Sequence[str],
) -> pl.DataFrame:
    """The baseline selected in each split, and its log loss (nats) there; columns PICKS.

    `answers`, `splits`, `estimators` and `calibrators` are those of `calibrate_all`. Only baselines
    that score the most answers of the calibration part are candidates, as losses on other answers
    do not compare; of equal losses the first of `baselines` counts.
    """
    labelled = answers.sort("example_id")
    rows = []
    for (split,), part in (
        splits.filter(part="calibration").partition_by("split", as_dict=True).items()
    ):
        seen = labelled.join(part.select("example_id"), on="example_id", how="semi")
        losses = {}
        for name in baselines:
            known = seen.drop_nulls(estimators[name])
            fit = from_json(calibrators[name]["splits"][str(split)])
            x = known.select(estimators[name]).cast(pl.Float64).to_numpy()
            loss = nll(fit.predict(x)[None], known["correct"].to_numpy()[None])[0] if len(x) else 0
            losses[name] = (-len(x), loss)
        best = min(losses, key=losses.__getitem__, default=None)
        if best is not None and losses[best][0]:
            rows.append((split, best, losses[best][1]))
    return pl.DataFrame(rows, schema=PICKS, orient="row").sort("split")


def with_picked(predictions: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
    """`predictions`, then those of the baseline selected in each split (`picked`), as PICKED."""
    own = picked.select("split", estimator="baseline")
    rows = predictions.join(own, on=["estimator", "split"], how="semi", maintain_order="left")
    renamed = rows.with_columns(estimator=pl.lit(PICKED)).sort("split", maintain_order=True)
    return pl.concat([predictions, renamed])
