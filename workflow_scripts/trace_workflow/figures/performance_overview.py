"""The performance overview: average Brier and AUROC of all estimators, and AUROC across models."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.tables import settings
from trace_workflow.tables.notes import NAMES
from trace_workflow.tables.settings import MISSING, Average, Labels
from tracecal.estimators.entry import TRACE_PLUS, Entry
from tracecal.pages import figure_style

ROW_HEIGHT = 0.165
LANE = 0.13  # between the points of one model, per distance between two models


class Dot(NamedTuple):
    """One point of the cross-model panel."""

    average: Average
    look: figure_style.Look


def draw(
    means: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Figure:
    """Three panels; `study` has the parts `main` and `cross` (None: no third panel).

    Points have no error bars: splits share the same answers, so their standard deviation is not a
    confidence interval. `paired_differences` shows intervals of differences.
    """
    compared = [entry for entry in entries if entry.role in ("baseline", "trace")]
    main, cross = study["main"], study["cross"]
    selected = settings.select(means, compared, "main", main)
    ordered = _by_brier(settings.over_tasks(selected), main["model"], compared)
    across = cross_dots(means, compared, cross) if cross else {}
    rows = max(len(ordered), 2 * len(across))
    with figure_style.applied():
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 1.75 + ROW_HEIGHT * max(rows, 8)))
        ratios = [1, 1, 1.35] if across else [1, 1]
        brier, auroc, *third = figure.subplots(1, len(ratios), width_ratios=ratios)
        below = settings.basis(means, compared, "main", main, tasks, width=26)
        _ranking(brier, ordered, "brier", below)
        _ranking(auroc, ordered, "auroc", "")
        auroc.tick_params(labelleft=False)
        figure_style.panel_title(brier, "a", "Brier ↓")
        figure_style.panel_title(auroc, "b", "AUROC ↑")
        keys = figure_style.family_keys(entry for entry in compared if entry in dict(ordered))
        if across:
            below = settings.basis(means, compared, "cross", cross, tasks, width=26)
            _across(third[0], {models[m]: across[m] for m in models if m in across}, below)
            figure_style.panel_title(third[0], "c", "AUROC ↑, models")
            keys.append(figure_style.key("Best non-TRACE", figure_style.BEST_BASELINE))
        figure_style.legend(figure, keys)
        figure_style.message(figure, ranks(ordered, models[main["model"]]))
    return figure


def ranks(ordered: "Ordered", model: str) -> str:
    """The figure's message: the places of TRACE+ among all, by both metrics."""
    places = []
    for metric, sign in (("brier", 1), ("auroc", -1)):
        known = [(e.id, v[metric].mean) for e, v in ordered if v[metric].mean is not None]
        by_value = [name for name, _ in sorted(known, key=lambda pair: sign * pair[1])]
        if TRACE_PLUS in by_value:
            places.append(f"{by_value.index(TRACE_PLUS) + 1} of {len(by_value)} by {NAMES[metric]}")
    return f"{model}, point estimates: TRACE+ is {', '.join(places)}" if places else model


Ordered = list[tuple[Entry, dict[str, Average]]]


def _by_brier(overall: settings.ModelAverages, model: str, entries: Sequence[Entry]) -> Ordered:
    """The estimators that have a Brier score, the best first."""
    rows = [
        (entry, {m: overall.get((model, entry.id, m), MISSING) for m in ("brier", "auroc")})
        for entry in entries
    ]
    return sorted(
        (row for row in rows if row[1]["brier"].mean is not None),
        key=lambda row: row[1]["brier"].mean,
    )


def cross_dots(
    means: pl.DataFrame, entries: Sequence[Entry], study: Mapping
) -> dict[str, list[Dot]]:
    """By model: the defined AUROCs of the best baseline (an oracle), TRACE and TRACE+."""
    selected = settings.select(means, entries, "cross", study)
    overall = settings.over_tasks(selected)
    dots = {}
    for model in sorted(set(selected["model"])):
        aurocs = {e: overall.get((model, e.id, "auroc"), MISSING) for e in entries}
        baselines = [e for e in entries if e.role == "baseline" and aurocs[e].mean is not None]
        winner = max(baselines, key=lambda e: aurocs[e].mean, default=None)
        chosen = [Dot(aurocs[winner], figure_style.BEST_BASELINE)] if winner else []
        chosen += [Dot(aurocs[e], figure_style.style_of(e)) for e in entries if e.role == "trace"]
        dots[model] = [dot for dot in chosen if dot.average.mean is not None]
    return dots


def _ranking(axes: Axes, ordered: Ordered, metric: str, below: str) -> None:
    for height, (entry, values) in enumerate(ordered):
        if values[metric].mean is not None:
            _dot(axes, height, values[metric], figure_style.style_of(entry))
    _rows(axes, len(ordered), below)
    axes.set_yticks(range(len(ordered)), [entry.label for entry, _ in ordered])
    for tick, (entry, _) in zip(axes.get_yticklabels(), ordered, strict=True):
        if entry.role == "trace":
            tick.set(color=figure_style.style_of(entry).text, fontweight="bold")


def _across(axes: Axes, across: Mapping[str, Sequence[Dot]], below: str) -> None:
    for height, (label, dots) in enumerate(across.items()):
        means = [dot.average.mean for dot in dots]
        if means:
            axes.plot(
                [min(means), max(means)], [height] * 2, color=figure_style.FAINT, lw=6, zorder=0
            )
        # Slightly apart, so that none hides another.
        for place, dot in enumerate(dots):
            _dot(axes, height + LANE * (place - (len(dots) - 1) / 2), dot.average, dot.look)
        axes.annotate(
            label,
            (0, height),
            (2, 9),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=figure_style.SMALL,
            va="bottom",
        )
    _rows(axes, len(across), below)
    axes.set_ylim(max(len(across), 4) - 0.5, -0.8)
    axes.set_yticks([])


def _dot(axes: Axes, height: float, average: Average, look: figure_style.Look) -> None:
    axes.plot(average.mean, height, ls="", zorder=look.order, mew=0, **figure_style.point(look))


def _rows(axes: Axes, count: int, below: str) -> None:
    axes.grid(axis="y")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(count - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(below, fontsize=figure_style.SMALL, color=figure_style.MUTED)
