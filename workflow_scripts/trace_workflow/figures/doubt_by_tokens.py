"""How early can one tell? AUROC against the tokens seen, and what stopping there saves."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.early_doubt import ALL, TOKENS
from trace_workflow.tables import findings
from tracecal.estimators.entry import TRACE_PLUS, Entry
from tracecal.pages import figure_style

PANELS = {
    "auroc": "AUROC ↑",
    "saved": "Tokens saved",
    "error_change": "Change of error",
}
# Drawn in colour and named; the others are thin and grey.
NAMED = ("seq_logp", "first_k_entropy", "trace", TRACE_PLUS)


def draw(found: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Three panels, from the analysis `early_doubt`: the means over tasks."""
    places = {str(tokens): place for place, tokens in enumerate(TOKENS)} | {ALL: len(TOKENS)}
    means = found.filter(pl.col("task").is_null(), pl.col("prefix").is_in([*places]))
    means = means.with_columns(
        place=pl.col("prefix").replace_strict(places, return_dtype=pl.Int64)
    ).sort("place")
    with figure_style.applied():
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 3.3))
        for axes, letter, (metric, title) in zip(
            figure.subplots(1, 3), "abc", PANELS.items(), strict=True
        ):
            _panel(axes, means.filter(metric=metric), entries)
            axes.set_xticks(list(places.values()), list(places))
            axes.set_xlabel("tokens seen", fontsize=figure_style.SMALL, color=figure_style.MUTED)
            figure_style.panel_title(axes, letter, title)
        keys = [
            figure_style.key(f" {one.label}", figure_style.style_of(one), "-")
            for one in _named(entries)
        ]
        if len(keys) < len(entries):
            keys.append(figure_style.key(" other estimators", _thin(), "-"))
        figure_style.legend(figure, keys)
        figure_style.message(figure, early(found))
    return figure


def early(found: pl.DataFrame) -> str:
    """The figure's message, as the finding on it."""
    return next((one.sentence.rstrip(".") for one in findings.early(found)), "")


def _named(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.id in NAMED]


def _thin() -> figure_style.Look:
    return figure_style.OTHER._replace(color=figure_style.FAINT, marker="", order=1)


def _panel(axes: Axes, rows: pl.DataFrame, entries: Sequence[Entry]) -> None:
    named = _named(entries)
    for entry in entries:
        own = rows.filter(estimator=entry.id)
        look = figure_style.style_of(entry) if entry in named else _thin()
        axes.plot(own["place"], own["value"], zorder=look.order, **figure_style.point(look))
        if entry.id == TRACE_PLUS:
            ends = (own[end].cast(pl.Float64).to_numpy() for end in ("low", "high"))
            axes.fill_between(own["place"].to_numpy(), *ends, color=look.color, alpha=0.15, lw=0)
    axes.grid(axis="y")
