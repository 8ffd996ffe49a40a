"""How early can one tell? AUROC against the tokens seen, and what TRACE+ loses by an early look."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_workflow.analyses.early_doubt import ALL, TOKENS
from trace_workflow.tables.answer_findings import find_early_doubt
from tracecal.estimators.estimator import TRACE_PLUS, Entry
from tracecal.pages import figure_style as style

METRIC = "auroc"
NAMED = ("seq_logp", "first_k_entropy", "trace", TRACE_PLUS)
TICKS = {str(tokens): x for x, tokens in enumerate(TOKENS)} | {ALL: len(TOKENS)}


def draw(early_doubt: pl.DataFrame, entries: Sequence[Entry]) -> Figure:
    """Two panels, from the analysis `early_doubt`: the means over tasks."""
    x = pl.col("prefix").replace_strict(TICKS, return_dtype=pl.Int64)
    means = early_doubt.filter(
        pl.col("task").is_null(), pl.col("prefix").is_in([*TICKS]), metric=METRIC
    )
    means = means.with_columns(x=x).sort("x")
    named = [entry for entry in entries if entry.id in NAMED]
    with style.applied():
        figure = Figure(figsize=(style.TEXT_WIDTH, 3.1))
        by_tokens, lost = figure.subplots(1, 2, width_ratios=[1.25, 1])
        _draw_auroc(by_tokens, means, named)
        style.panel_title(by_tokens, "a", "AUROC ↑, band: interval of TRACE+")
        _draw_lost(lost, means.filter(pl.col("prefix") != ALL, estimator=TRACE_PLUS))
        level = 100 * (means["level"].max() or 0)
        style.panel_title(lost, "b", f"Lost by TRACE+, {level:g} % interval")
        style.legend(
            figure, [style.key(f" {entry.label}", style.style_of(entry), "-") for entry in named]
        )
        style.message(figure, message(early_doubt))
    return figure


def message(early_doubt: pl.DataFrame) -> str:
    """The figure's message, as the finding on it."""
    return next((finding.sentence.rstrip(".") for finding in find_early_doubt(early_doubt)), "")


def _draw_auroc(axes: Axes, means: pl.DataFrame, entries: Sequence[Entry]) -> None:
    for entry in entries:
        rows, look = means.filter(estimator=entry.id), style.style_of(entry)
        axes.plot(rows["x"], rows["value"], zorder=look.order, **style.point(look))
        if entry.id == TRACE_PLUS:
            ends = (rows[end].cast(pl.Float64).to_numpy() for end in ("low", "high"))
            axes.fill_between(rows["x"].to_numpy(), *ends, color=look.color, alpha=0.15, lw=0)
    _set_tokens_axis(axes)


def _draw_lost(axes: Axes, rows: pl.DataFrame) -> None:
    """The AUROC at the end less the AUROC of a prefix, hollow where the interval contains zero."""
    axes.axhline(0, color=style.MUTED, lw=0.7, zorder=1)
    point = style.point(style.TRACE_PLUS)
    for row in rows.drop_nulls("lost_low").iter_rows(named=True):
        contains_zero = row["lost_low"] <= 0 <= row["lost_high"]
        fill = {"mfc": "white"} if contains_zero else {}
        axes.vlines(row["x"], row["lost_low"], row["lost_high"], color=point["color"], lw=1.2)
        axes.plot(row["x"], row["lost"], ls="", **point | fill)
    _set_tokens_axis(axes)


def _set_tokens_axis(axes: Axes) -> None:
    axes.set_xticks(list(TICKS.values()), list(TICKS))
    axes.set_xlim(-0.4, len(TOKENS) + 0.4)
    style.note_below(axes, "tokens seen")
    axes.grid(axis="y")
