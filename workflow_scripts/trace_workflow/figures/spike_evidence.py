"""The spike evidence: error rates by mean risk and spike gap, and how scores rank spikes."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from trace_workflow.figures import figure_style as style

HEIGHT = 3.7
WIDTH = 0.36
# Of the bars in (a), by spike gap; in (b) each bar is a quintile of the gap.
FILLS = {"low": "white", "high": style.INK}
EDGE = {"ec": style.INK, "lw": 0.8}
TITLES = {"a": "All answers", "b": "Low mean risk", "c": "Low risk, by score"}
NOTHING = "No answer in the main study has the\nentropies that spikes are computed from."
SCORES = {
    "mean_token_entropy": ("Mean entropy", style.FAMILIES["entropy"]),
    "len_norm_logp": ("Mean surprisal", style.FAMILIES["likelihood"]),
    "windowed_entropy": ("Local peak", style.LOCAL_PEAK),
    "trace": ("TRACE", style.TRACE),
}


def draw(strata: pl.DataFrame, quintiles: pl.DataFrame) -> Figure:
    """Three panels, from the frames of `trace_workflow.analyses.spike_strata`."""
    with style.applied():
        if not strata["n"].sum():
            return style.sentence(NOTHING, style.COLUMN_WIDTH, HEIGHT)
        figure = Figure(figsize=(style.TEXT_WIDTH, HEIGHT))
        panels = figure.subplot_mosaic("abc")
        _draw_strata(panels["a"], strata)
        _draw_quintiles(panels["b"], panels["c"], quintiles)
        for letter, title in TITLES.items():
            style.panel_title(panels[letter], letter, title)
            panels[letter].set_ylim(0, 1)
            panels[letter].grid(axis="y")
        gaps = [Patch(fc=fill, **EDGE, label=f" {spike} gap") for spike, fill in FILLS.items()]
        lines = [style.key(f" {label}", look, look.line) for label, look in SCORES.values()]
        style.legend(figure, gaps + lines)
        style.message(figure, message(strata))
    return figure


def message(strata: pl.DataFrame) -> str:
    """The figure's message: how often answers of the lowest mean risk are wrong, by spike gap."""
    rows = strata.filter(pl.col("n") > 0, risk_stratum=strata["risk_stratum"][0])
    rates = dict(rows.select("spike_stratum", "incorrect_rate").iter_rows())
    if rates.keys() < {"low", "high"}:
        return ""
    return (
        f"At low mean risk {100 * rates['high']:.0f} % of answers with a high spike gap are wrong, "
        f"{100 * rates['low']:.0f} % with a low one"
    )


def _draw_strata(axes: Axes, strata: pl.DataFrame) -> None:
    names = strata["risk_stratum"].unique(maintain_order=True).to_list()
    for spike, side in (("low", -0.5), ("high", 0.5)):
        rows = strata.filter(pl.col("n") > 0, spike_stratum=spike)
        places = [names.index(name) + side * WIDTH for name in rows["risk_stratum"]]
        _draw_rates(axes, places, rows, FILLS[spike])
    axes.set_xticks(range(len(names)), [name.capitalize() for name in names])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xlabel(f"Mean risk (third)\n{_sizes(strata)}")
    axes.set_ylabel("Share wrong")


def _draw_quintiles(rates: Axes, percentiles: Axes, quintiles: pl.DataFrame) -> None:
    rows = quintiles.filter(pl.col("n") > 0)
    places = [quintile + 1 for quintile in rows["quintile"]]
    _draw_rates(rates, places, rows, style.FAINT, 2 * WIDTH)
    rates.tick_params(labelleft=False)
    for name, (_, look) in SCORES.items():
        values = rows[f"{name}_percentile"]
        percentiles.plot(places, values, ls=look.line, mew=0, **style.point(look))
    percentiles.set_ylabel("Percentile of risk")
    for axes in (rates, percentiles):
        axes.set_xticks(range(1, quintiles.height + 1))
        axes.set_xlim(0.4, quintiles.height + 0.6)
        axes.set_xlabel(f"Spike gap (fifth)\n{_sizes(quintiles)}")


def _sizes(strata: pl.DataFrame) -> str:
    """How many answers each stratum holds: a number, or the least and the most."""
    n = "–".join(str(size) for size in sorted({strata["n"].min(), strata["n"].max()}))
    return f"(n = {n} each)"


def _draw_rates(
    axes: Axes, places: Sequence[float], rows: pl.DataFrame, fill: str, width: float = WIDTH
) -> None:
    """Error rates with their intervals."""
    rate = rows["incorrect_rate"]
    bars = [rate - rows["incorrect_rate_low"], rows["incorrect_rate_high"] - rate]
    # A percentile interval need not contain the rate itself.
    bars = [bar.clip(lower_bound=0) for bar in bars]
    axes.bar(places, rate, width, fc=fill, **EDGE)
    axes.errorbar(places, rate, bars, fmt="none", ecolor=style.MUTED, elinewidth=1.2)
