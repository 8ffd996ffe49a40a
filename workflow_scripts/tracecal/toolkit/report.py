"""The quality of a calibrator: how well each estimator predicts, and what is guaranteed."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from tracecal.analyse import bootstrap
from tracecal.calibrate.metrics import bin_index, weighted_auroc, weighted_brier
from tracecal.toolkit.fit import FitSettings, Labelled
from tracecal.toolkit.fitted import FEW_LABELS

QUALITY = {
    "estimator": pl.String,
    "n": pl.Int64,
    **{
        f"{metric}{end}": pl.Float64
        for metric in ("brier", "auroc", "gap", "ece")
        for end in ("", "_low", "_high")
    },
    "distinct": pl.Int64,
}
GUARANTEES = {
    "error_rate": pl.Float64,
    "threshold": pl.Float64,
    "coverage": pl.Float64,
    "error": pl.Float64,
    "more": pl.Int64,
}


def quality(known: Labelled, task: str, settings: FitSettings) -> pl.DataFrame:
    """Columns of `QUALITY`, a row per estimator, smallest Brier score first.

    By cross-fitting over whole groups; intervals by resampling groups. `gap` is the mean
    probability minus the share correct; `distinct` counts the different probabilities.
    """
    labels = known.frame.select("example_id", "correct", "group_id")
    drawn = bootstrap.draw_counts(
        labels["group_id"].to_list(), settings.seed, settings.bootstrap.resamples
    )
    counts = np.vstack([np.ones(labels.height), drawn])
    places = labels.with_row_index("place")
    rows = []
    for (name,), predicted in known.cross_fitted(settings).group_by("estimator"):
        joined = predicted.join(places, on="example_id", validate="1:1").sort("place")
        rows.append(_row(name, joined, counts, settings))
    return pl.DataFrame(rows, schema=QUALITY).sort(pl.col("brier").round(12), "estimator")


def _row(
    name: str, answers: pl.DataFrame, counts: np.ndarray, settings: FitSettings
) -> dict[str, Any]:
    probability, correct = answers["probability"].to_numpy(), answers["correct"].to_numpy()
    counts = counts[:, answers["place"].to_numpy()]
    bins = settings.calibration.ece_bins
    index = bin_index(probability, bins)
    # Of each bin: the weighted sum of correct minus probability, [resamples, bins].
    gaps = counts @ (np.eye(bins)[index] * (correct - probability)[:, None])
    totals = counts.sum(axis=1)
    values = {
        "brier": weighted_brier(probability, correct, counts),
        "auroc": weighted_auroc(probability, correct, counts),
        "gap": -gaps.sum(axis=1) / np.maximum(totals, 1),
        "ece": np.abs(gaps).sum(axis=1) / np.maximum(totals, 1),
    }
    row: dict[str, Any] = {"estimator": name, "n": answers.height}
    for metric, (observed, *resampled) in values.items():
        low, high, _ = bootstrap.interval(resampled, settings.bootstrap.level)
        row |= {metric: _defined(observed), f"{metric}_low": low, f"{metric}_high": high}
    return row | {"distinct": answers["probability"].n_unique()}


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def guarantees(control: Mapping[str, Any], groups: int) -> pl.DataFrame:
    """Columns of `GUARANTEES`, a row per target error rate, from an estimator's `risk_control`.

    `groups` is the number of labelled questions; `more` is about how many further ones would do
    where there is no threshold, null where that cannot be said.
    """
    rows = []
    for entry in control["thresholds"]:
        more = None
        if entry["threshold"] is None and entry["enough"]:
            # Of all questions the same share is tested.
            more = math.ceil(entry["enough"] * groups / control["groups"]) - groups
        certified = entry["threshold"] is not None
        rows.append(
            {
                "error_rate": entry["error_rate"],
                "threshold": entry["threshold"],
                "coverage": entry["coverage"] if certified else None,
                "error": entry["error"],
                "more": more,
            }
        )
    return pl.DataFrame(rows, schema=GUARANTEES)


def summary(
    stored: Mapping[str, Any],
    measured: pl.DataFrame,
    certified: pl.DataFrame,
    estimator: str,
    outlook: str | None = None,
) -> str:
    """The report as lines of text for a terminal; `outlook` says what a promise would need."""
    fitted_on = stored["fitted_on"]
    confidence = stored[estimator]["risk_control"]["confidence"]
    lines = [
        f"{fitted_on['n']} labelled answers of {fitted_on['model']} to {fitted_on['task']}, "
        f"{fitted_on['base_rate']:.1%} correct; entropies: {fitted_on['entropy']}",
        "",
        f"{'estimator':34}{'Brier':>20}{'AUROC':>20}{'mean - correct':>20}{'ECE':>8}",
    ]
    lines += [
        f"{row['estimator']:34}{_with_ends(row, 'brier'):>20}{_with_ends(row, 'auroc'):>20}"
        f"{_with_ends(row, 'gap'):>20}{_number(row['ece']):>8}"
        + ("  few different values" if 2 * row["distinct"] < row["n"] else "")
        for row in measured.iter_rows(named=True)
    ]
    lines += ["", f"Guaranteed error rates of {estimator}, each with confidence {confidence:g}:"]
    lines += [guaranteed(row) for row in certified.iter_rows(named=True)]
    lines += ["", advice(fitted_on, estimator)]
    lines += ["", outlook] if outlook else []
    return "\n".join(lines)


def guaranteed(row: Mapping[str, Any]) -> str:
    """One target error rate, as a sentence."""
    target = f"  at most {row['error_rate']:.0%} incorrect:"
    if row["threshold"] is not None:
        return f"{target} keeps {row['coverage']:.0%} of the answers ({row['error']:.1%} observed)"
    if row["more"] is None:
        return f"{target} cannot be certified"
    return f"{target} cannot be certified; about {row['more']:,} more labelled questions would do"


def advice(fitted_on: Mapping[str, Any], estimator: str) -> str:
    """Which estimator to use."""
    best = fitted_on["ranking"][0]
    chosen = "chosen on answers that no threshold was tested on"
    if fitted_on.get("estimator") == estimator:
        return (
            f"Use {estimator}: of fits to fewer than {FEW_LABELS} labels it predicts best "
            "(docs/few_labels.md)."
        )
    if best == estimator:
        return f"Use {estimator}: it has the smallest Brier score ({chosen})."
    return (
        f"Use {best}: it has the smallest Brier score ({chosen}); 'tracecal score' takes "
        f"{estimator} unless --estimator names another."
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _with_ends(row: Mapping[str, Any], metric: str) -> str:
    if row[f"{metric}_low"] is None:
        return _number(row[metric])
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.2f}, {row[f'{metric}_high']:.2f}]"
