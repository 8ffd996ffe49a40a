"""The baseline that a user would pick in each split: the one that fits its labels best."""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.proper_scores import nll
from tracecal.estimators.estimator import PICKED

PICKS = {"split": pl.Int64, "baseline": pl.String, "log_loss": pl.Float64}


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
    """`predictions`, then those of the baseline picked in each split (`picked`), as PICKED."""
    picks = picked.select("split", estimator="baseline")
    rows = predictions.join(picks, on=["estimator", "split"], how="semi", maintain_order="left")
    renamed = rows.with_columns(estimator=pl.lit(PICKED)).sort("split", maintain_order=True)
    return pl.concat([predictions, renamed])
