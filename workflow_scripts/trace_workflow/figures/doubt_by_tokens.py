"""How early can one tell? AUROC against the tokens seen, and what stopping there saves."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.early_doubt import ALL, TOKENS
from trace_workflow.figures.panels import note_below
from trace_workflow.tables.answer_findings import find_early_doubt
from tracecal.estimators.estimator import TRACE_PLUS, Entry
from tracecal.pages import figure_style as style

PANELS = {
    "auroc": "AUROC ↑",
    "saved": "Tokens saved",
    "error_change": "Change of error",
}
# Drawn in colour and named; the other estimators are thin and grey.
NAMED = ("seq_logp", "first_k_entropy", "trace", TRACE_PLUS)
THIN = style.OTHER._replace(color=style.FAINT, marker="", order=1)


def draw(early_doubt: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Three panels, from the analysis `early_doubt`: the means over tasks."""
    ticks = {str(tokens): x for x, tokens in enumerate(TOKENS)} | {ALL: len(TOKENS)}
    x = pl.col("prefix").replace_strict(ticks, return_dtype=pl.Int64)
    means = early_doubt.filter(pl.col("task").is_null(), pl.col("prefix").is_in([*ticks]))
    means = means.with_columns(x=x).sort("x")
    coloured = [entry for entry in entries if entry.id in NAMED]
    with style.applied():
        figure = Figure(figsize=(style.TEXT_WIDTH, 3.3))
        for axes, letter, (metric, title) in zip(
            figure.subplots(1, 3), "abc", PANELS.items(), strict=True
        ):
            _draw_panel(axes, means.filter(metric=metric), entries)
            axes.set_xticks(list(ticks.values()), list(ticks))
            note_below(axes, "tokens seen")
            style.panel_title(axes, letter, title)
        keys = [style.key(f" {entry.label}", style.style_of(entry), "-") for entry in coloured]
        if len(coloured) < len(entries):
            keys.append(style.key(" other estimators", THIN, "-"))
        style.legend(figure, keys)
        style.message(figure, message(early_doubt))
    return figure


def message(early_doubt: pl.DataFrame) -> str:
    """The figure's message, as the finding on it."""
    return next((finding.sentence.rstrip(".") for finding in find_early_doubt(early_doubt)), "")


def _draw_panel(axes: Axes, means: pl.DataFrame, entries: Sequence[Entry]) -> None:
    for entry in entries:
        rows = means.filter(estimator=entry.id)
        look = style.style_of(entry) if entry.id in NAMED else THIN
        axes.plot(rows["x"], rows["value"], zorder=look.order, **style.point(look))
        if entry.id == TRACE_PLUS:
            ends = (rows[end].cast(pl.Float64).to_numpy() for end in ("low", "high"))
            axes.fill_between(rows["x"].to_numpy(), *ends, color=look.color, alpha=0.15, lw=0)
    axes.grid(axis="y")
