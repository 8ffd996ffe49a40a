"""The report of `tracecal calibrate`: how well each estimator predicts, and what is guaranteed."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from jinja2 import Environment, StrictUndefined
from scipy.special import expit, logit, ndtri

from tracecal.calibration import resampling
from tracecal.calibration.calibrator import DEFAULT, LABELS
from tracecal.calibration.fit import FitSettings, Labelled
from tracecal.calibration.metrics import auroc_within, bin_index, weighted_brier

# Intervals come from fewer resamples where they would draw more answers than this.
MOST_DRAWN, FEWEST_RESAMPLES = 4_000_000, 200
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

    By cross-fitting over whole groups, of the answers that no estimator is chosen by: those outside
    the calibration part of the first split. Intervals by resampling groups. `gap` is the mean
    probability minus the share correct; `distinct` counts the different probabilities. AUROC ranks
    the score itself where a fit is of one, and else the probability, among answers of one fold.
    """
    reported = known.first_split.filter(part="evaluation")
    labels = known.frame.join(reported, on="example_id", how="semi")
    labels = labels.select("example_id", "correct", "group_id")
    most = max(FEWEST_RESAMPLES, MOST_DRAWN // labels.height)
    resamples = min(settings.bootstrap.resamples, most)
    drawn = resampling.draw_counts(labels["group_id"].to_list(), settings.seed, resamples)
    counts = np.vstack([np.ones(labels.height), drawn])
    places = labels.with_row_index("place")
    rows = []
    for (name,), predicted in known.cross_fitted(settings).group_by("estimator"):
        ranking = predicted.select("example_id", "fold", score="probability")
        (first, *more) = known.estimators[name]
        if first.startswith("scores.") and not more:
            ranking = known.frame.select("example_id", fold=pl.lit(0), score=first)
        joined = predicted.drop("fold").join(places, on="example_id", validate="1:1")
        joined = joined.join(ranking, on="example_id", validate="1:1").sort("place")
        rows.append(_row(name, joined, counts, settings))
    return pl.DataFrame(rows, schema=QUALITY).sort(pl.col("brier").round(12), "estimator")


def _row(
    name: str, answers: pl.DataFrame, counts: np.ndarray, settings: FitSettings
) -> dict[str, Any]:
    probability, correct = answers["probability"].to_numpy(), answers["correct"].to_numpy()
    counts, fold = counts[:, answers["place"].to_numpy()], answers["fold"].to_numpy()
    bins = settings.calibration.ece_bins
    index = bin_index(probability, bins)
    # Of each bin: the weighted sum of correct minus probability, [resamples, bins].
    gaps = counts @ (np.eye(bins)[index] * (correct - probability)[:, None])
    totals = counts.sum(axis=1)
    values = {
        "brier": weighted_brier(probability, correct, counts),
        "auroc": auroc_within(answers["score"].to_numpy(), correct, counts, fold),
        "gap": -gaps.sum(axis=1) / np.maximum(totals, 1),
        "ece": np.abs(gaps).sum(axis=1) / np.maximum(totals, 1),
    }
    row: dict[str, Any] = {"estimator": name, "n": answers.height}
    for metric, (observed, *resampled) in values.items():
        of = _ranking_interval if metric == "auroc" else _interval
        low, high = of(observed, resampled, settings.bootstrap.level)
        row |= {metric: _defined(observed), f"{metric}_low": low, f"{metric}_high": high}
    return row | {"distinct": answers["probability"].n_unique()}


def _interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float | None, float | None]:
    return resampling.interval(resampled, level)[:2]


def _ranking_interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float | None, float | None]:
    """Normal on the scale of log odds, by the spread of the resamples: with few wrong answers their
    percentiles are too narrow near 1. Percentiles where the log odds are not finite.
    """
    low, high = _interval(observed, resampled, level)
    if low is None or not 0 < observed < 1:
        return low, high
    spread = np.nanstd(resampled) / (observed * (1 - observed))
    reach = ndtri((1 + level) / 2) * spread
    ends = expit(logit(observed) + np.array([-reach, reach]))
    return float(ends[0]), float(ends[1])


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
    model = fitted_on["model"] or "an unnamed model"
    control = stored[estimator]["risk_control"]
    lines = [
        f"{fitted_on['n']} labelled answers of {model} to {fitted_on['task']}, "
        f"{fitted_on['base_rate']:.1%} correct; entropies: {fitted_on['entropy']}",
        "",
        f"By the {measured['n'].max()} of them that no estimator was chosen by:",
        "",
        f"{'estimator':34}{'Brier':>20}{'AUROC':>20}{'mean - correct':>20}{'ECE':>8}",
    ]
    lines += [
        f"{LABELS[row['estimator']]:34}{_with_ends(row, 'brier'):>20}"
        f"{_with_ends(row, 'auroc'):>20}{_with_ends(row, 'gap'):>20}{_number(row['ece']):>8}"
        + "".join(f"  {note}" for note in notes(row, estimator))
        for row in measured.iter_rows(named=True)
    ]
    lines += ["", f"Guaranteed error rates of {LABELS[estimator]}, {holding(control)}:"]
    lines += [guaranteed(row) for row in certified.iter_rows(named=True)]
    lines += ["", advice(fitted_on)]
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


def holding(control: Mapping[str, Any]) -> str:
    """With what an estimator's guarantees hold, from its `risk_control`."""
    most = control["largest_group"]
    counted = f"; a group counts with at most {most} answers" if most > 1 else ""
    return f"each with confidence {control['confidence']:g}{counted}"


def notes(row: Mapping[str, Any], estimator: str) -> list[str]:
    """What is to be said of an estimator's row of `quality`, where `estimator` is recommended."""
    recommended = ["recommended"] if row["estimator"] == estimator else []
    return recommended + (["few different values"] if 2 * row["distinct"] < row["n"] else [])


def advice(fitted_on: Mapping[str, Any]) -> str:
    """Which estimator to use, and why that one."""
    estimator, gain = fitted_on["estimator"], fitted_on.get("gain")
    use = f"Use {LABELS[estimator]}, as 'tracecal score' does (--estimator {estimator})"
    usual = LABELS[DEFAULT]
    if estimator == DEFAULT:
        return f"{use}: it was fixed beforehand, and no other is better by more than its interval."
    if gain is None:
        return f"{use}: {usual} gives these answers one probability, or cannot be computed."
    return (
        f"{use}: on labels that neither this table nor a guarantee counts, its Brier score is "
        f"{gain[0]:.3f} lower than that of {usual}, which is used otherwise (interval "
        f"{gain[1]:.3f} to {gain[2]:.3f}, for all estimators at once)."
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _with_ends(row: Mapping[str, Any], metric: str) -> str:
    if row[f"{metric}_low"] is None:
        return _number(row[metric])
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.2f}, {row[f'{metric}_high']:.2f}]"


# The report of `tracecal calibrate` as one self-contained HTML page.


PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Calibrator of {{ fitted_on.model or 'an unnamed model' }} for {{ fitted_on.task }}</title>
<style>
:root { color-scheme: light dark; }
body { margin: 1.5rem auto; max-width: 62rem; padding: 0 1rem;
  font: 15px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid; }
.scroll { overflow-x: auto; }
small { opacity: .7; }
</style>
</head>
<body>
<h1>Calibrator of {{ fitted_on.model or 'an unnamed model' }} for {{ fitted_on.task }}</h1>
<p>{{ fitted_on.n }} labelled answers, {{ "%.1f" | format(100 * fitted_on.base_rate) }} % correct;
entropies: {{ fitted_on.entropy }}.</p>
<p><strong>{{ advice }}</strong></p>
<h2>Guarantees of {{ labels[estimator] }}</h2>
<p>Among the answers kept, error rates hold for new questions like those labelled,
{{ holding }}.</p>
<ul>
{% for line in guaranteed -%}
<li>{{ line }}</li>
{% endfor -%}
</ul>
{% if outlook %}<p>{{ outlook }}</p>
{% endif -%}
<h2>Estimators</h2>
<p>Of the labelled answers, those that no estimator was chosen by. Each probability is from a fit
that did not see the answer or its group. In brackets:
{{ "%g" | format(100 * level) }} % intervals from resampled questions.</p>
<div class="scroll">
<table>
<thead><tr><th>estimator</th><th>id</th><th>answers</th><th>Brier ↓</th><th>AUROC ↑</th>
<th>mean − share correct</th><th>ECE ↓</th><th>different values</th></tr></thead>
<tbody>
{% for row in rows -%}
<tr><td>{{ labels[row.estimator] }}
{%- for note in notes(row, estimator) %} <small>{{ note }}</small>{% endfor %}</td>
<td>{{ row.estimator }}</td><td>{{ row.n }}</td>
{%- for metric in ("brier", "auroc", "gap", "ece") %}
<td>{% if row[metric] is none %}–{% else %}{{ "%.3f" | format(row[metric]) }}
{%- if row[metric + "_low"] is not none %} <small>[{{ "%.3f" | format(row[metric + "_low"]) }},
{{ "%.3f" | format(row[metric + "_high"]) }}]</small>{% endif %}{% endif %}</td>
{%- endfor %}
<td>{{ row.distinct }}</td></tr>
{% endfor -%}
</tbody>
</table>
</div>
<p><small>The expected calibration error (ECE) of few answers is biased upwards; the mean
probability minus the share correct is not.</small></p>
</body>
</html>
"""


def render(
    stored: Mapping[str, Any],
    measured: pl.DataFrame,
    certified: pl.DataFrame,
    estimator: str,
    level: float,
    outlook: str | None = None,
) -> str:
    """The page, of what `report.quality` measured and `report.guarantees` certified; `outlook` says
    what a promise would need.
    """
    return (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string(PAGE)
        .render(
            fitted_on=stored["fitted_on"],
            estimator=estimator,
            holding=holding(stored[estimator]["risk_control"]),
            advice=advice(stored["fitted_on"]),
            labels=LABELS,
            notes=notes,
            guaranteed=[guaranteed(row).strip() for row in certified.iter_rows(named=True)],
            rows=list(measured.iter_rows(named=True)),
            level=level,
            outlook=outlook,
        )
    )
