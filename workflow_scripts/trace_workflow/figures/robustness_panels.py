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
from trace_workflow.tables import settings
from trace_workflow.tables.settings import MISSING
from tracecal.estimators.entry import Entry
from tracecal.pages import figure_style

METRICS = {"brier": ("Brier", -1.0), "auroc": ("AUROC", 1.0)}
HEIGHT = 7.2
LEVEL = 0.95
APART = 0.22  # between estimators, per distance between two places
COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9)


class Mark(NamedTuple):
    """An estimator's value at the place x, with half its interval where there are two splits."""

    entry: Entry
    x: float
    y: float
    half: float | None


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
    sizes = settings.select(sizes, entries, "main", study)
    stratified = settings.select(stratified, entries, "main", study)
    shares = sorted(set(sizes["calibration_share"]))
    own = reference(entries)
    shown = contrasted(entries)
    rivals = [entry for entry in shown if entry != own]
    with figure_style.applied():
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, HEIGHT))
        grid = figure.subplots(3, 2)
        ratios = dict.fromkeys(STRATA, share)
        for row, frame, column, parts, below in (
            (0, sizes, "calibration_share", {s: s for s in shares}, "answers that calibrate"),
            (2, stratified, "stratum", ratios, "length of the answer"),
        ):
            for axes, letter, metric in zip(grid[row], ("ab", "", "ef")[row], METRICS, strict=True):
                marks = list(gains(frame, column, parts, metric, own, rivals))
                names = [f"{s:.0%}" if column == "calibration_share" else s for s in parts]
                _differences(axes, marks, names)
                _describe(axes, letter, f"{METRICS[metric][0]}: gain of {own.label}", below)
        _reliability(grid[1, 0], list(reliability(bins, shown, share)), bins)
        _differences(
            grid[1, 1],
            list(risk_gains(curve, own, rivals, share)),
            [f"{coverage:.0%}" for coverage in COVERAGES],
        )
        _describe(grid[1, 1], "d", f"Error rate: gain of {own.label}", "answers kept")
        looks = [(entry.label, figure_style.style_of(entry)) for entry in shown]
        figure_style.legend(figure, [figure_style.key(f" {name}", look) for name, look in looks])
    return figure


def corrected(values: Sequence[float | None], share: float) -> tuple[float, float | None] | None:
    """The mean over splits and half its corrected interval; None where no split has a value.

    `share` is the share of the answers used for calibration in each split.
    """
    defined = [value for value in values if value is not None]
    if not defined:
        return None
    if len(defined) < 2:
        return defined[0], None
    count = len(defined)
    error = stdev(defined) * math.sqrt(1 / count + (1 - share) / share)
    return fmean(defined), float(t.ppf((1 + LEVEL) / 2, count - 1)) * error


def gains(
    selected: pl.DataFrame,
    column: str,
    parts: Mapping[object, float],
    metric: str,
    own: Entry,
    rivals: Sequence[Entry],
) -> Iterator[Mark]:
    """By how much `own` is better than each rival, split by split, in each of `parts`.

    `parts` maps values of `column` to the share used for calibration; places follow their order.
    """
    model, sign = selected["model"][0], METRICS[metric][1]
    for place, (part, share) in enumerate(parts.items()):
        means = settings.over_tasks(selected.filter(pl.col(column) == part))
        mine = means.get((model, own.id, metric), MISSING).values
        for entry in rivals:
            theirs = means.get((model, entry.id, metric), MISSING).values
            pairs = zip(mine, theirs, strict=True) if mine and theirs else ()
            found = corrected([None if None in p else sign * (p[0] - p[1]) for p in pairs], share)
            if found:
                yield Mark(entry, place, *found)


def reference(entries: Sequence[Entry]) -> Entry:
    """The estimator whose gains are drawn: TRACE+, or the last where it is missing."""
    return next((entry for entry in entries if entry.id == "trace_plus"), entries[-1])


def risk_gains(
    curve: pl.DataFrame, own: Entry, rivals: Sequence[Entry], share: float
) -> Iterator[Mark]:
    """By how much fewer of the answers that `own` keeps are wrong, in the same split."""
    key = ["split", "coverage"]
    compared = curve.join(curve.filter(estimator=own.id), on=key, suffix="_own")
    for place, coverage in enumerate(COVERAGES):
        for entry in rivals:
            rows = compared.filter(
                (pl.col("coverage") - coverage).abs() < 1e-6, estimator=entry.id
            ).sort("split")
            found = corrected((rows["risk"] - rows["risk_own"]).to_list(), share)
            if found:
                yield Mark(entry, place, *found)


def contrasted(entries: Sequence[Entry]) -> list[Entry]:
    """The first baseline and TRACE's estimators, as many as can be told apart in one panel."""
    baselines = [entry for entry in entries if entry.role == "baseline"]
    return [*baselines[:1], *(entry for entry in entries if entry.role == "trace")]


def reliability(bins: pl.DataFrame, entries: Sequence[Entry], share: float) -> Iterator[Mark]:
    """The share of correct answers in bins of equal counts, at their mean probability."""
    for entry in entries:
        own = bins.filter(estimator=entry.id)
        for (_,), part in sorted(own.group_by("bin")):
            accuracy = corrected(part.sort("split")["accuracy"].to_list(), share)
            yield Mark(entry, part["probability"].mean(), *accuracy)


def _differences(axes: Axes, marks: Sequence[Mark], names: Sequence[str]) -> None:
    """Differences at categories, without lines between them, around a line at zero."""
    axes.axhline(0, color=figure_style.MUTED, lw=0.7, zorder=1)
    drawn = list(dict.fromkeys(mark.entry for mark in marks))
    middle = (len(drawn) - 1) / 2
    for mark in marks:
        _mark(axes, mark, mark.x + APART * (drawn.index(mark.entry) - middle))
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), names)
    if not marks:
        axes.set_yticks([])
        axes.text(
            0.5, 0.5, "undefined", transform=axes.transAxes, ha="center", color=figure_style.MUTED
        )


def _mark(axes: Axes, mark: Mark, x: float) -> None:
    look = figure_style.style_of(mark.entry)
    shown = {"mew": 0, "elinewidth": 0.9, "zorder": look.order}
    axes.errorbar(x, mark.y, yerr=mark.half, ls="", **shown, **figure_style.point(look))


def _reliability(axes: Axes, marks: Sequence[Mark], bins: pl.DataFrame) -> None:
    axes.plot([0, 1], [0, 1], color=figure_style.MUTED, lw=0.7, ls=":", zorder=1)
    for mark in marks:
        _mark(axes, mark, mark.x)
    n = bins["n"].mean() or 0
    _describe(axes, "c", f"Reliability, n ≈ {n:.0f} in a bin", "predicted probability")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_ylabel("share correct", fontsize=figure_style.SMALL, color=figure_style.MUTED)


def _describe(axes: Axes, letter: str, title: str, below: str) -> None:
    figure_style.panel_title(axes, letter, title)
    axes.set_xlabel(below, fontsize=figure_style.SMALL, color=figure_style.MUTED)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
