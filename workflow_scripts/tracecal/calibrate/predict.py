"""Calibrated probabilities of every estimator in every split."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibrate.few_labels import fit_mixtures, fit_signed
from tracecal.calibrate.pooled import fit_pooled
from tracecal.calibrate.protocol import Calibrator, Method, as_json, fit_all, from_json
from tracecal.registry.estimators import OwnFit

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
    `tracecal.calibrate.pooled`). Returns the predictions, by estimator, split and example, and per
    estimator the calibrators as plain JSON: one per split, and `final`, fitted on all labels.
    """
    answers = answers.sort("example_id")
    parts = _calibration_parts(answers["example_id"], splits)
    inputs = {name: _inputs(answers.select(columns)) for name, columns in estimators.items()}
    correct, own_fits = answers["correct"].to_numpy(), own_fits or {}
    masks = [*parts.values(), np.ones_like(correct)]
    groups = _groups(answers["example_id"], splits) if "mixture" in own_fits.values() else []
    ways = {name: own_fits.get(name, method) for name in estimators}
    fits: dict[str, list[Calibrator]] = {}
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


def _inputs(columns: pl.DataFrame) -> _Inputs:
    complete = columns.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    names = [column.split(".", 1)[-1] for column in columns.columns]
    return _Inputs(names, columns.cast(pl.Float64).to_numpy(), complete.to_numpy())


def _fit(
    inputs: Sequence[_Inputs],
    correct: np.ndarray,
    parts: Sequence[np.ndarray],
    groups: Sequence[np.ndarray],
    way: Method | OwnFit,
    penalty: float,
) -> list[Calibrator]:
    """The fits of each input's complete answers in each of `parts` (masks [n]), in order."""
    if way not in ("signed", "mixture"):
        rows = [(one.x, one.complete & part) for one in inputs for part in parts]
        return fit_all([(x[used], correct[used]) for x, used in rows], way, penalty)
    fits = []
    for one in inputs:
        rows = [one.complete & part for part in parts]
        pairs = [(one.x[used], correct[used]) for used in rows]
        if way == "signed":
            fits += fit_signed(pairs, one.names)
        else:
            ranks = [group[used] for group, used in zip(groups, rows, strict=True)]
            triples = [(*pair, rank) for pair, rank in zip(pairs, ranks, strict=True)]
            fits += fit_mixtures(triples, one.names)
    return fits


def _predictions(
    ids: pl.Series,
    parts: Mapping[int, np.ndarray],
    inputs: Mapping[str, _Inputs],
    fitted: Mapping[str, Mapping[int, Calibrator]],
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
