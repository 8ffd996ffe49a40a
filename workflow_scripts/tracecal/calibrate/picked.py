"""The baseline that a user would choose: the one that fits the calibration labels best.

In each split it is the baseline whose calibrator has the smallest mean log loss on the calibration
part. All baselines are scalars with one weight each, so none gains by a richer fit. Its predictions
enter every comparison as an estimator of its own, which is ranked by calibrated probability: raw
scores of different splits have no common scale.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.calibrate.metrics import nll
from tracecal.calibrate.protocol import from_json
from tracecal.registry.picked import PICKED

PICKS = {"split": pl.Int64, "baseline": pl.String, "log_loss": pl.Float64}


def picks(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    estimators: Mapping[str, Sequence[str]],
    calibrators: Mapping[str, Mapping],
    baselines: Sequence[str],
) -> pl.DataFrame:
    """The baseline picked in each split, and its log loss (nats) there; columns PICKS.

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
    """`predictions`, then those of the baseline `picked` in each split, as the estimator PICKED."""
    own = picked.select("split", estimator="baseline")
    rows = predictions.join(own, on=["estimator", "split"], how="semi", maintain_order="left")
    renamed = rows.with_columns(estimator=pl.lit(PICKED)).sort("split", maintain_order=True)
    return pl.concat([predictions, renamed])
