"""The robustness panels: calibration size, reliability and selective prediction, answer length."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tracecal.analyse.length_stratified import STRATA
from tracecal.analyse.reliability_selective import BINS, CURVE
from tracecal.figures import style
from tracecal.figures.labels import Label, name_ends, spread_names
from tracecal.storage.files import read_parquet
from tracecal.tables import averages
from tracecal.tables.averages import COLUMNS, MISSING
from tracecal.tables.settings import Entry

METRICS = {"brier": "Brier ↓", "auroc": "AUROC ↑"}
ROW_HEIGHT = 1.55
APART = 0.07  # of the distance between two ticks
FILLED = 0.01  # a bin with fewer of the predictions is not drawn


class Line(NamedTuple):
    """An estimator's values at the places x, with their s.d. over splits where there is one."""

    entry: Entry
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()


def draw(
    sizes: str, bins: str, curve: str, lengths: str, estimators: Sequence, study: Mapping
) -> Figure:
    """The figure, from the files of the three analyses: averages by size and by length."""
    return robustness_panels(
        read_parquet(sizes, [*COLUMNS, "calibration_share"]),
        read_parquet(bins, list(BINS)),
        read_parquet(curve, list(CURVE)),
        read_parquet(lengths, [*COLUMNS, "stratum"]),
        [Entry(*fields) for fields in estimators],
        study,
    )


def robustness_panels(
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
        figure = Figure(figsize=(style.TEXT_WIDTH, 3 * ROW_HEIGHT))
        grid = figure.subplots(3, 2)
        named = {}
        for axes, metric in zip(grid[0], METRICS, strict=True):
            lines = averaged_lines(sizes, "calibration_share", shares, metric, entries)
            named[axes] = _draw(axes, _apart(lines))
            _describe(axes, "a", METRICS[metric], "share of the answers that calibrates")
            axes.set_xticks(range(len(shares)), [f"{100 * share:.3g} %" for share in shares])
        named[grid[1, 0]] = _reliability(grid[1, 0], reliability_lines(bins, entries))
        named[grid[1, 1]] = _risk(grid[1, 1], risk_lines(curve, entries))
        for axes, metric in zip(grid[2], METRICS, strict=True):
            lines = averaged_lines(stratified, "stratum", STRATA, metric, entries)
            named[axes] = _draw(axes, _apart(lines), ls=":")
            _describe(axes, "c", METRICS[metric], "length of the answer")
            axes.set_xticks(range(len(STRATA)), STRATA)
        names = {axes: name_ends(axes, labels) for axes, labels in named.items()}
        figure.draw_without_rendering()
        for axes, texts in names.items():
            spread_names(axes, texts)
    return figure


def averaged_lines(
    selected: pl.DataFrame,
    column: str,
    parts: Sequence[object],
    metric: str,
    entries: Sequence[Entry],
) -> Iterator[Line]:
    """Averages over tasks of each part of `column`, drawn at 0, 1, ..., as far as defined."""
    model = selected["model"][0]
    overall = [averages.over_tasks(selected.filter(pl.col(column) == part)) for part in parts]
    for entry in entries:
        found = [one.get((model, entry.id, metric), MISSING) for one in overall]
        defined = [
            (x, one.mean, one.sd or 0.0) for x, one in enumerate(found) if one.mean is not None
        ]
        if defined:
            yield Line(entry, *zip(*defined, strict=True))


def reliability_lines(bins: pl.DataFrame, entries: Sequence[Entry]) -> Iterator[Line]:
    """Accuracy against mean probability, bin by bin over all splits, without sparse bins."""
    weighted = [(pl.col(name) * pl.col("n")).sum() for name in ("probability", "accuracy")]
    pooled = bins.group_by("estimator", "bin").agg(pl.col("n").sum(), *weighted).sort("bin")
    for entry in entries:
        own = pooled.filter(estimator=entry.id).filter(pl.col("n") >= FILLED * pl.col("n").sum())
        if len(own):
            yield Line(entry, *((own[name] / own["n"]).to_list() for name in own.columns[3:]))


def risk_lines(curve: pl.DataFrame, entries: Sequence[Entry]) -> Iterator[Line]:
    """Mean over splits of the risk at each coverage, and its s.d."""
    risk = pl.col("risk")
    means = curve.group_by("estimator", "coverage").agg(mean=risk.mean(), sd=risk.std())
    for entry in entries:
        own = means.filter(estimator=entry.id).sort("coverage")
        if len(own):
            yield Line(entry, *(own[name].to_list() for name in ("coverage", "mean", "sd")))


def _apart(lines: Iterator[Line]) -> list[Line]:
    """Lines a little beside one another, so that none hides another's spread."""
    found = list(lines)
    middle = (len(found) - 1) / 2
    return [
        line._replace(x=[x + APART * (place - middle) for x in line.x])
        for place, line in enumerate(found)
    ]


def _draw(axes: Axes, lines: Sequence[Line], ls: str = "-") -> list[Label]:
    """Draw the lines with their spreads; the labels of their right ends."""
    for entry, x, y, spread in lines:
        look = style.look(entry)
        axes.errorbar(
            x,
            y,
            yerr=spread or None,
            color=look.color,
            marker=look.marker,
            markersize=3.2,
            markeredgewidth=0,
            ls=ls,
            elinewidth=0.5,
            zorder=look.order,
        )
    if not lines:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "undefined", transform=axes.transAxes, ha="center", color=style.MUTED)
    return _ends(lines)


def _reliability(axes: Axes, lines: Iterator[Line]) -> list[Label]:
    axes.plot([0, 1], [0, 1], color=style.MUTED, lw=0.7, ls=":", zorder=1)
    _describe(axes, "b", "Reliability", "predicted probability")
    axes.set_ylabel("accuracy", fontsize=style.SMALL, color=style.MUTED)
    return _draw(axes, list(lines))


def _risk(axes: Axes, lines: Iterator[Line]) -> list[Label]:
    found = list(lines)
    for entry, x, y, spread in found:
        look = style.look(entry)
        low, high = np.subtract(y, spread), np.add(y, spread)
        axes.fill_between(x, low, high, color=look.color, alpha=0.12, lw=0, zorder=1)
        axes.plot(x, y, color=look.color, zorder=look.order)
    axes.set_ylim(bottom=0)
    _describe(axes, "b", "Risk ↓", "coverage: share of the answers kept")
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    return _ends(found)


def _describe(axes: Axes, letter: str, title: str, below: str) -> None:
    style.panel_title(axes, letter, title)
    axes.set_xlabel(below, fontsize=style.SMALL, color=style.MUTED)
    axes.locator_params(axis="y", nbins=5)
    axes.grid(axis="y")


def _ends(lines: Sequence[Line]) -> list[Label]:
    """Names for the right ends, from the line that lies lowest on the whole to the highest."""
    return [
        Label(
            line.x[-1],
            line.y[-1],
            line.entry.label,
            style.look(line.entry).text,
            line.entry.role == "trace",
            style.look(line.entry).color,
        )
        for line in sorted(lines, key=lambda line: fmean(line.y))
    ]
