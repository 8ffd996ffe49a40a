"""Accuracy and cost of cascades by the share of answers sent to the large model: routing by the
recommended fit, by TRACE+, by a baseline, at random, and by the oracle.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tracecal.calibration.cascade import KEYS, NOTHING, select_worthwhile
from tracecal.calibration.routing import ORACLE, RANDOM
from tracecal.estimators.estimator import TRACE_PLUS, Entry
from tracecal.pages import figure_style

ACROSS = 2
MOST = 4
TICKS = (0, 0.5, 1)  # shares escalated
MARK = figure_style.OTHER._replace(color=figure_style.INK, marker="o", size=5.0)
LOOKS = {
    ORACLE: ("Oracle", figure_style.OTHER._replace(color=figure_style.INK, marker=""), ":"),
    RANDOM: ("Random", figure_style.OTHER._replace(marker=""), "--"),
}


def draw(
    results: pl.DataFrame,
    entries: Sequence[Entry],
    models: Mapping[str, str],
    named_baseline: str,
    every: bool = False,
    router: str = TRACE_PLUS,
    guaranteed: Sequence[float] = (),
) -> Figure:
    """A panel per pair of models, those with the largest gain; the means over their tasks.

    Pairs that the table leaves out are pairs with `every` alone. `guaranteed` are shares that the
    thresholds of a guarantee escalate, marked on the curve of the `router`.
    """
    means = results.filter(pl.col("task").is_null()) if every else select_worthwhile(results)[0]
    facts = means.filter(pl.col("router").is_null()).pivot("metric", index=KEYS, values="value")
    with figure_style.applied():
        if means.is_empty():
            return figure_style.sentence(NOTHING, figure_style.TEXT_WIDTH, 1.5)
        gain = pl.col("large_right") - pl.col("small_right")
        pairs = facts.sort(gain, descending=True, maintain_order=True).head(MOST)
        rows = -(-len(pairs) // ACROSS)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 1.0 + 2.7 * rows))
        columns = min(ACROSS, len(pairs))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, letter, pair in zip(panels, "abcd", pairs.iter_rows(named=True), strict=False):
            curves = means.filter(small=pair["small"], large=pair["large"])
            lines = _lines(entries, {named_baseline, TRACE_PLUS, router})
            _panel(axes, curves, lines, pair["large_cost"])
            if guaranteed:
                _mark_guarantees(axes, curves.filter(router=router), guaranteed)
            figure_style.panel_title(
                axes, letter, f"{models[pair['small']]}\nto {models[pair['large']]}"
            )
        for axes in panels[len(pairs) :]:
            axes.set_axis_off()
        keys = [figure_style.key(f" {label}", look, line) for label, look, line in lines.values()]
        if guaranteed:
            keys.append(figure_style.key(" Threshold of a guarantee", MARK, inside="white"))
        figure_style.legend(figure, keys)
        first = means.filter(**{name: pairs[name][0] for name in KEYS})
        names = {entry.id: entry.label for entry in entries}
        figure_style.message(figure, message(first, router, names.get(router, router)))
    return figure


def message(curves: pl.DataFrame, router: str, label: str) -> str:
    """The figure's message: what the router gains over random routing, with its interval."""
    area = curves.filter(router=router, metric="area").drop_nulls("over_random_low")
    if area.is_empty():
        return ""
    row = area.row(0, named=True)
    low, high = row["over_random_low"], row["over_random_high"]
    verdict = ": a tie" if low <= 0 <= high else ""
    text = (
        f"Routing by {label} gains {row['over_random']:+.3f} accuracy over random routing "
        f"({low:+.3f} to {high:+.3f}){verdict}"
    )
    return text.replace("-0.", "−0.")


def _lines(
    entries: Sequence[Entry], routers: Collection[str]
) -> dict[str, tuple[str, figure_style.Look, str]]:
    """Label, look and line style of the oracle, random routing and the `routers`."""
    shown = {
        entry.id: (entry.label, figure_style.style_of(entry)._replace(marker=""), "-")
        for entry in entries
        if entry.id in routers
    }
    return LOOKS | shown


def _panel(
    axes: Axes,
    curves: pl.DataFrame,
    lines: Mapping[str, tuple[str, figure_style.Look, str]],
    large_cost: float | None,
) -> None:
    for router, (_, look, line) in lines.items():
        accuracy = curves.filter(router=router, metric="accuracy").sort("share")
        x, y = accuracy["share"], accuracy["value"]
        axes.plot(x, y, ls=line, zorder=look.order, **figure_style.point(look))
    axes.grid(axis="y")
    axes.set_xticks(TICKS, [_tick(curves, share, large_cost) for share in TICKS])
    cost = "" if large_cost is None else "\nand cost of an answer"
    axes.set_xlabel(f"share escalated to the large model{cost}")
    axes.set_ylabel("accuracy")


def _mark_guarantees(axes: Axes, curve: pl.DataFrame, shares: Sequence[float]) -> None:
    """Mark the shares that guaranteed thresholds escalate on the router's curve."""
    rows = curve.filter(metric="accuracy").sort("share")
    heights = np.interp(shares, rows["share"].to_numpy(), rows["value"].to_numpy())
    axes.plot(shares, heights, ls="", zorder=9, mfc="white", **figure_style.point(MARK))


def _tick(curves: pl.DataFrame, share: float, large_cost: float | None) -> str:
    """A share escalated, with the cost of an answer under random routing, in multiples of the large
    model's, where costs are known.
    """
    is_share = (pl.col("share") - share).abs() < 1e-9
    cost = curves.filter(is_share, router=RANDOM, metric="cost")["value"]
    has_cost = large_cost is not None and len(cost) and cost[0] is not None
    return f"{share:.0%}" + (f"\n{cost[0] / large_cost:.2g}×" if has_cost else "")
