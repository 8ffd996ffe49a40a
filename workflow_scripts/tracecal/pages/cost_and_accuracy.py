"""Accuracy and cost of cascades by the share of answers sent to the large model: routing by TRACE+,
by baselines, at random, and by the oracle.
"""

from collections.abc import Mapping, Sequence

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
LOOKS = {
    ORACLE: ("Oracle", figure_style.OTHER._replace(color=figure_style.INK, marker=""), ":"),
    RANDOM: ("Random", figure_style.OTHER._replace(marker=""), "--"),
}


def draw(
    found: pl.DataFrame,
    entries: Sequence[Entry],
    models: Mapping[str, str],
    named_baseline: str,
    every: bool = False,
) -> Figure:
    """A panel per pair of models, those with the largest gain; the means over their tasks.

    Pairs that the table leaves out are pairs with `every` alone.
    """
    means = found.filter(pl.col("task").is_null()) if every else select_worthwhile(found)[0]
    facts = means.filter(pl.col("router").is_null()).pivot("metric", index=KEYS, values="value")
    with figure_style.applied():
        if means.is_empty():
            return figure_style.sentence(NOTHING, figure_style.TEXT_WIDTH, 1.5)
        gain = pl.col("large_right") - pl.col("small_right")
        pairs = facts.sort(gain, descending=True, maintain_order=True).head(MOST)
        rows = -(-len(pairs) // ACROSS)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, 0.6 + 2.7 * rows))
        columns = min(ACROSS, len(pairs))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, letter, pair in zip(panels, "abcd", pairs.iter_rows(named=True), strict=False):
            curves = means.filter(small=pair["small"], large=pair["large"])
            lines = _lines(curves, entries, named_baseline)
            _panel(axes, curves, lines, pair["large_cost"])
            figure_style.panel_title(
                axes, letter, f"{models[pair['small']]}\nto {models[pair['large']]}"
            )
        for axes in panels[len(pairs) :]:
            axes.set_axis_off()
        figure_style.legend(
            figure,
            [figure_style.key(f" {label}", look, line) for label, look, line in lines.values()],
        )
    return figure


def _lines(
    curves: pl.DataFrame, entries: Sequence[Entry], named_baseline: str
) -> dict[str, tuple[str, figure_style.Look, str]]:
    """Label, look and line style by router: TRACE+, the prespecified baseline, the best baseline by
    area, random and oracle.
    """
    area = curves.filter(metric="area")
    baselines = [entry.id for entry in entries if entry.role == "baseline"]
    best = area.filter(pl.col("router").is_in(baselines)).sort("value", descending=True)
    lines = {}
    if len(best):
        look = figure_style.BEST_BASELINE._replace(
            marker="", color=figure_style.FAMILIES["entropy"].color
        )
        lines[best["router"][0]] = ("Best baseline (oracle)", look, "-")
    for entry in entries:
        if entry.id == named_baseline and named_baseline not in lines:
            look = figure_style.style_of(entry)._replace(marker="")
            lines[named_baseline] = (entry.label, look, "-")
        if entry.id == TRACE_PLUS:
            lines[TRACE_PLUS] = (entry.label, figure_style.style_of(entry)._replace(marker=""), "-")
    return LOOKS | lines


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
        if router in (TRACE_PLUS, RANDOM):
            ends = (accuracy[end].cast(pl.Float64).to_numpy() for end in ("low", "high"))
            axes.fill_between(x.to_numpy(), *ends, color=look.color, alpha=0.12, lw=0)
    axes.grid(axis="y")
    axes.set_xticks(TICKS, [_tick(curves, share, large_cost) for share in TICKS])
    cost = "" if large_cost is None else "\nand cost of an answer"
    axes.set_xlabel(f"share escalated to the large model{cost}")
    axes.set_ylabel("accuracy")


def _tick(curves: pl.DataFrame, share: float, large_cost: float | None) -> str:
    """A share escalated, with the cost of an answer under random routing, in multiples of the large
    model's, where costs are known.
    """
    is_share = (pl.col("share") - share).abs() < 1e-9
    cost = curves.filter(is_share, router=RANDOM, metric="cost")["value"]
    has_cost = large_cost is not None and len(cost) and cost[0] is not None
    return f"{share:.0%}" + (f"\n{cost[0] / large_cost:.2g}×" if has_cost else "")
