"""The robustness panels: calibration size, reliability and selective prediction, answer length."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tracecal.analyse.length_stratified import STRATA
from tracecal.figures import style
from tracecal.tables import averages
from tracecal.tables.averages import MISSING
from tracecal.tables.settings import Entry

PERCENT = PercentFormatter(1, decimals=0, symbol=" %")
METRICS = {"brier": "Brier ↓", "auroc": "AUROC ↑"}
HEIGHT = 5.0
APART = 0.09  # between lines, per distance between the two nearest ticks
FILLED = 0.01  # the share of predictions below which a bin is not drawn
KEPT = 0.1  # the coverage below which risk jumps and is not drawn
MARKED = 0.2  # distance of two marks on a curve, as a share of the panel's diagonal


class Line(NamedTuple):
    """An estimator's values at the places x, with their s.d. over splits where there is one."""

    entry: Entry
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()


def draw(
    sizes: pl.DataFrame,
    bins: pl.DataFrame,
    curve: pl.DataFrame,
    stratified: pl.DataFrame,
    entries: Sequence[Entry],
    study: Mapping,
) -> Figure:
    """Six panels from the frames of the analyses; `study` names the model and the tasks."""
    sizes = averages.select(sizes, entries, "main", study)
    stratified = averages.select(stratified, entries, "main", study)
    shares = sorted(set(sizes["calibration_share"]))
    with style.applied():
        figure = Figure(figsize=(style.TEXT_WIDTH, HEIGHT))
        grid = figure.subplots(3, 2)
        for axes, letter, (metric, name) in zip(grid[0], "ab", METRICS.items(), strict=True):
            _draw(axes, _apart(averaged_lines(sizes, "calibration_share", shares, metric, entries)))
            _describe(
                axes, letter, f"{name} by calibration size", "share of answers that calibrates"
            )
            axes.set_xticks(shares)
            axes.xaxis.set_major_formatter(PERCENT)
        _reliability(grid[1, 0], reliability_lines(bins, entries))
        kept = [entry for entry in entries if entry.id in set(curve["estimator"])] or entries
        _risk(grid[1, 1], list(risk_lines(curve, kept)), reference(kept).label)
        strata = range(len(STRATA))
        ranked = stratified.with_columns(pl.col("stratum").replace_strict(STRATA, strata))
        for axes, letter, (metric, name) in zip(grid[2], "ef", METRICS.items(), strict=True):
            _draw(axes, _apart(averaged_lines(ranked, "stratum", strata, metric, entries)))
            _describe(axes, letter, f"{name} by answer length", "length of the answer")
            axes.set_xticks(strata, STRATA)
        looks = [(entry.label, style.look(entry)) for entry in entries]
        style.legend(figure, [style.key(f" {name}", look, look.line) for name, look in looks])
    return figure


def averaged_lines(
    selected: pl.DataFrame,
    column: str,
    parts: Sequence[float],
    metric: str,
    entries: Sequence[Entry],
) -> Iterator[Line]:
    """The defined averages over tasks by estimator, at the places `parts`, values of `column`."""
    model = selected["model"][0]
    overall = [averages.over_tasks(selected.filter(pl.col(column) == part)) for part in parts]
    for entry in entries:
        averaged = [means.get((model, entry.id, metric), MISSING) for means in overall]
        defined = [
            (x, average.mean, average.sd or 0.0)
            for x, average in zip(parts, averaged, strict=True)
            if average.mean is not None
        ]
        if defined:
            yield Line(entry, *zip(*defined, strict=True))


def reliability_lines(bins: pl.DataFrame, entries: Sequence[Entry]) -> Iterator[Line]:
    """Accuracy against mean probability of the bins over all splits, without sparse bins."""
    weighted = [(pl.col(name) * pl.col("n")).sum() for name in ("probability", "accuracy")]
    pooled = bins.group_by("estimator", "bin").agg(pl.col("n").sum(), *weighted).sort("bin")
    for entry in entries:
        own = pooled.filter(estimator=entry.id).filter(pl.col("n") >= FILLED * pl.col("n").sum())
        if len(own):
            yield Line(entry, *((own[name] / own["n"]).to_list() for name in own.columns[3:]))


def reference(entries: Sequence[Entry]) -> Entry:
    """The estimator that risks are compared with: TRACE+, or the last where it is missing."""
    return next((entry for entry in entries if entry.id == "trace_plus"), entries[-1])


def risk_lines(curve: pl.DataFrame, entries: Sequence[Entry]) -> Iterator[Line]:
    """Risk at each coverage minus the reference's in the same split: mean and s.d. over splits."""
    key = ["split", "coverage"]
    curve = curve.filter(pl.col("coverage") >= KEPT)
    compared = curve.join(
        curve.filter(estimator=reference(entries).id), on=key, suffix="_reference"
    )
    more = pl.col("risk") - pl.col("risk_reference")
    means = compared.group_by("estimator", "coverage").agg(mean=more.mean(), sd=more.std())
    for entry in entries:
        own = means.filter(estimator=entry.id).sort("coverage")
        if len(own):
            yield Line(entry, *(own[name].to_list() for name in ("coverage", "mean", "sd")))


def _apart(lines: Iterator[Line]) -> list[Line]:
    """The lines slightly beside one another, so that none hides another's spread."""
    drawn = list(lines)
    middle = (len(drawn) - 1) / 2
    places = np.unique([x for line in drawn for x in line.x])
    step = APART * np.diff(places).min(initial=1.0)
    return [
        line._replace(x=[x + step * (place - middle) for x in line.x])
        for place, line in enumerate(drawn)
    ]


def _draw(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw the lines with their spreads."""
    for entry, x, y, spread in lines:
        look = style.look(entry)
        shown = {"ls": look.line, "mew": 0, "elinewidth": 0.5, "zorder": look.order}
        axes.errorbar(x, y, yerr=spread or None, **shown, **style.point(look))
    _empty(axes, lines)


def _empty(axes: Axes, lines: Sequence[Line]) -> None:
    """Write "undefined" where there are no lines."""
    if not lines:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "undefined", transform=axes.transAxes, ha="center", color=style.MUTED)


def _reliability(axes: Axes, lines: Iterator[Line]) -> None:
    axes.plot([0, 1], [0, 1], color=style.MUTED, lw=0.7, ls=":", zorder=1)
    _describe(axes, "c", "Reliability", "predicted probability")
    axes.set_ylabel("accuracy", fontsize=style.SMALL, color=style.MUTED)
    _draw(axes, list(lines))


def _risk(axes: Axes, lines: Sequence[Line], reference: str) -> None:
    for entry, x, y, spread in lines:
        look = style.look(entry)
        low, high = np.subtract(y, spread), np.add(y, spread)
        axes.fill_between(x, low, high, color=look.color, alpha=0.12, lw=0, zorder=1)
        marked = {"ls": look.line, "mew": 0, "zorder": look.order, "markevery": MARKED}
        axes.plot(x, y, **marked, **style.point(look))
    _describe(axes, "d", f"Risk minus that of {reference} ↓", "coverage: share of the answers kept")
    axes.xaxis.set_major_formatter(PERCENT)
    _empty(axes, lines)


def _describe(axes: Axes, letter: str, title: str, below: str) -> None:
    style.panel_title(axes, letter, title)
    axes.set_xlabel(below, fontsize=style.SMALL, color=style.MUTED)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")
