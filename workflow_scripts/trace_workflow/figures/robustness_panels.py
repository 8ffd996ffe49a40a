"""The robustness panels: what TRACE+ gains by calibration size, coverage and answer length.

Splits share the same answers, so their standard deviation alone gives no valid interval. The
corrected resampled t interval (Nadeau and Bengio 2003, "Inference for the Generalization Error")
adds the share of evaluated to calibrating answers to 1/K of K splits.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t

from trace_workflow.analyses.length_stratified import STRATA
from trace_workflow.figures import figure_style as style
from trace_workflow.figures.study_averages import select_models
from trace_workflow.tables.study_results import rows_by
from tracecal.estimators.estimator import Entry

METRICS = {"brier": ("Brier", -1.0), "auroc": ("AUROC", 1.0)}
HEIGHT = 7.6
LEVEL = 0.95
SPACING = 0.22  # between estimators, per distance between two places
COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9)


class EstimatorPoint(NamedTuple):
    """An estimator's value at the place x, with half its interval where there are two splits."""

    entry: Entry
    x: float
    y: float
    half_width: float | None


def draw(
    sizes: pl.DataFrame,
    bins: pl.DataFrame,
    curve: pl.DataFrame,
    stratified: pl.DataFrame,
    entries: Sequence[Entry],
    study: Mapping,
    share: float,
) -> Figure:
    """Six panels from the frames of the analyses; `study` names the model and the tasks.

    `share` of the answers is used for calibration, except in panels (a) and (b).
    """
    sizes = select_models(sizes, entries, "main", study)
    stratified = select_models(stratified, entries, "main", study)
    size_shares = {size: size for size in sorted(set(sizes["calibration_share"]))}
    stratum_shares = dict.fromkeys(STRATA, share)
    gainer, contrasted = gainer_of(entries), contrasted_entries(entries)
    rivals = [entry for entry in contrasted if entry != gainer]
    with style.applied():
        figure = Figure(figsize=(style.TEXT_WIDTH, HEIGHT))
        grid = figure.subplots(3, 2)
        gains: list[EstimatorPoint] = []
        for row, letters, frame, column, shares, below in (
            (0, "ab", sizes, "calibration_share", size_shares, "answers that calibrate"),
            (2, "ef", stratified, "stratum", stratum_shares, "length of the answer"),
        ):
            names = [part if isinstance(part, str) else f"{100 * part:.0f} %" for part in shares]
            for axes, letter, metric in zip(grid[row], letters, METRICS, strict=True):
                points = list(metric_gains(frame, column, shares, metric, gainer, rivals))
                _draw_gains(axes, points, names)
                gains += points
                _describe(axes, letter, f"{METRICS[metric][0]}: gain of {gainer.label}", below)
        _draw_reliability(grid[1, 0], list(reliability(bins, contrasted, share)), bins)
        points = list(risk_gains(curve, gainer, rivals, share))
        _draw_gains(grid[1, 1], points, [f"{100 * coverage:.0f} %" for coverage in COVERAGES])
        _describe(grid[1, 1], "d", f"Error rate: gain of {gainer.label}", "answers kept")
        keys = [style.key(f" {entry.label}", style.style_of(entry)) for entry in contrasted]
        style.legend(figure, keys)
        style.message(figure, message([*gains, *points], gainer))
    return figure


def message(gains: Sequence[EstimatorPoint], gainer: Entry) -> str:
    """The figure's message: how many intervals of the gains lie above, below and on zero."""
    with_interval = [point for point in gains if point.half_width is not None]
    if not with_interval:
        return ""
    better = sum(point.y > point.half_width for point in with_interval)
    worse = sum(point.y < -point.half_width for point in with_interval)
    undecided = len(with_interval) - better - worse
    return (
        f"Above zero {gainer.label} is better: {better} of {len(with_interval)} intervals are "
        f"above, {worse} below, and {undecided} contain zero"
    )


def corrected_interval(
    values: Sequence[float | None], share: float
) -> tuple[float, float | None] | None:
    """The mean over splits and half its corrected interval; None where no split has a value.

    `share` is the share of the answers used for calibration in each split.

    >>> corrected_interval([0.5], 0.35), corrected_interval([None], 0.35)
    ((0.5, None), None)
    """
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    if len(defined) < 2:
        return defined[0], None
    n = len(defined)
    error = stdev(defined) * math.sqrt(1 / n + (1 - share) / share)
    return fmean(defined), float(t.ppf((1 + LEVEL) / 2, n - 1)) * error


def gainer_of(entries: Sequence[Entry]) -> Entry:
    """The estimator whose gains are drawn: TRACE+, or the last where it is missing."""
    return next((entry for entry in entries if entry.id == "trace_plus"), entries[-1])


def contrasted_entries(entries: Sequence[Entry]) -> list[Entry]:
    """The first baseline and TRACE's estimators, as many as can be told apart in one panel."""
    baselines = [entry for entry in entries if entry.role == "baseline"]
    return [*baselines[:1], *(entry for entry in entries if entry.role == "trace")]


def metric_gains(
    averages: pl.DataFrame,
    column: str,
    shares: Mapping[object, float],
    metric: str,
    gainer: Entry,
    rivals: Sequence[Entry],
) -> Iterator[EstimatorPoint]:
    """By how much the gainer is better than each rival, split by split, in each part.

    `shares` maps the parts, values of `column`, to the share used for calibration; places follow
    their order.
    """
    model, sign = averages["model"][0], METRICS[metric][1]
    for x, (part, share) in enumerate(shares.items()):
        means = rows_by(averages.filter(pl.col(column) == part), "model", "estimator", "metric")
        gainer_values = means.get((model, gainer.id, metric), {}).get("values")
        for entry in rivals:
            values = means.get((model, entry.id, metric), {}).get("values")
            pairs = zip(gainer_values, values, strict=True) if gainer_values and values else ()
            differences = [None if None in pair else sign * (pair[0] - pair[1]) for pair in pairs]
            if interval := corrected_interval(differences, share):
                yield EstimatorPoint(entry, x, *interval)


def risk_gains(
    curve: pl.DataFrame, gainer: Entry, rivals: Sequence[Entry], share: float
) -> Iterator[EstimatorPoint]:
    """By how much fewer of the answers that the gainer keeps are wrong, in the same split."""
    keys = ["split", "coverage"]
    compared = curve.join(curve.filter(estimator=gainer.id), on=keys, suffix="_gainer")
    for x, coverage in enumerate(COVERAGES):
        for entry in rivals:
            rows = compared.filter(
                (pl.col("coverage") - coverage).abs() < 1e-6, estimator=entry.id
            ).sort("split")
            differences = (rows["risk"] - rows["risk_gainer"]).to_list()
            if interval := corrected_interval(differences, share):
                yield EstimatorPoint(entry, x, *interval)


def reliability(
    bins: pl.DataFrame, entries: Sequence[Entry], share: float
) -> Iterator[EstimatorPoint]:
    """The share of correct answers in bins of equal counts, at their mean probability."""
    for entry in entries:
        for (_,), rows in sorted(bins.filter(estimator=entry.id).group_by("bin")):
            accuracy = corrected_interval(rows.sort("split")["accuracy"].to_list(), share)
            yield EstimatorPoint(entry, rows["probability"].mean(), *accuracy)


def _draw_gains(axes: Axes, points: Sequence[EstimatorPoint], names: Sequence[str]) -> None:
    """Differences at categories, without lines between them, around a line at zero."""
    axes.axhline(0, color=style.MUTED, lw=0.7, zorder=1)
    entries = list(dict.fromkeys(point.entry for point in points))
    middle = (len(entries) - 1) / 2
    for point in points:
        _draw_point(axes, point, point.x + SPACING * (entries.index(point.entry) - middle))
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), names)
    if not points:
        axes.set_yticks([])
        center = {"transform": axes.transAxes, "ha": "center", "color": style.MUTED}
        axes.text(0.5, 0.5, "undefined", **center)


def _draw_point(axes: Axes, point: EstimatorPoint, x: float) -> None:
    look = style.style_of(point.entry)
    bars = {"yerr": point.half_width, "mew": 0, "elinewidth": 0.9, "zorder": look.order}
    axes.errorbar(x, point.y, ls="", **bars, **style.point(look))


def _draw_reliability(axes: Axes, points: Sequence[EstimatorPoint], bins: pl.DataFrame) -> None:
    axes.plot([0, 1], [0, 1], color=style.MUTED, lw=0.7, ls=":", zorder=1)
    for point in points:
        _draw_point(axes, point, point.x)
    n = bins["n"].mean() or 0
    _describe(axes, "c", f"Reliability, n ≈ {n:.0f} in a bin", "predicted probability")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_ylabel("share correct", fontsize=style.SMALL, color=style.MUTED)


def _describe(axes: Axes, letter: str, title: str, below: str) -> None:
    style.panel_title(axes, letter, title)
    style.note_below(axes, below)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
