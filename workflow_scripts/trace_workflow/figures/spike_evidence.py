"""The spike evidence: error rates by mean risk and spike gap, and how scores rank spikes."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tracecal.pages import figure_style

HEIGHT = 3.3
WIDTH = 0.36
# Of the bars in (a), by spike gap; in (b) each bar is a quintile of the gap.
FILLS = {"low": "white", "high": figure_style.INK}
EDGE = {"ec": figure_style.INK, "lw": 0.8}
NOTHING = "No answer in the main study has the\nentropies that spikes are computed from."
SCORES = {
    "mean_token_entropy": ("Mean entropy", figure_style.FAMILIES["entropy"]),
    "len_norm_logp": ("Mean surprisal", figure_style.FAMILIES["likelihood"]),
    "windowed_entropy": ("Local peak", figure_style.LOCAL_PEAK),
    "trace": ("TRACE", figure_style.TRACE),
}


def draw(strata: pl.DataFrame, quintiles: pl.DataFrame) -> Figure:
    """Three panels, from the frames of `trace_workflow.analyses.spike_strata`."""
    with figure_style.applied():
        if not strata["n"].sum():
            return figure_style.sentence(NOTHING, figure_style.COLUMN_WIDTH, HEIGHT)
        figure = Figure(figsize=(figure_style.TEXT_WIDTH, HEIGHT))
        panels = figure.subplot_mosaic("abc")
        _strata(panels["a"], strata)
        _quintiles(panels["b"], panels["c"], quintiles)
        for letter, title in {
            "a": "All answers",
            "b": "Low mean risk",
            "c": "Low risk, by score",
        }.items():
            figure_style.panel_title(panels[letter], letter, title)
            panels[letter].set_ylim(0, 1)
            panels[letter].grid(axis="y")
        gaps = [Patch(fc=fill, **EDGE, label=f" {spike} gap") for spike, fill in FILLS.items()]
        lines = [figure_style.key(f" {label}", look, look.line) for label, look in SCORES.values()]
        figure_style.legend(figure, gaps + lines)
    return figure


def _strata(axes: Axes, strata: pl.DataFrame) -> None:
    names = strata["risk_stratum"].unique(maintain_order=True).to_list()
    for spike, side in (("low", -0.5), ("high", 0.5)):
        drawn = strata.filter(pl.col("n") > 0, spike_stratum=spike)
        places = [names.index(name) + side * WIDTH for name in drawn["risk_stratum"]]
        _rates(axes, places, drawn, FILLS[spike])
    axes.set_xticks(range(len(names)), [name.capitalize() for name in names])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xlabel(f"Mean risk (third)\n{_counted(strata)}")
    axes.set_ylabel("Share wrong")


def _quintiles(rates: Axes, percentiles: Axes, quintiles: pl.DataFrame) -> None:
    drawn = quintiles.filter(pl.col("n") > 0)
    places = [place + 1 for place in drawn["quintile"]]
    _rates(rates, places, drawn, figure_style.FAINT, 2 * WIDTH)
    rates.tick_params(labelleft=False)
    for name, (_, look) in SCORES.items():
        values = drawn[f"{name}_percentile"]
        percentiles.plot(places, values, ls=look.line, mew=0, **figure_style.point(look))
    percentiles.set_ylabel("Percentile of risk")
    for axes in (rates, percentiles):
        axes.set_xticks(range(1, quintiles.height + 1))
        axes.set_xlim(0.4, quintiles.height + 0.6)
        axes.set_xlabel(f"Spike gap (fifth)\n{_counted(quintiles)}")


def _counted(strata: pl.DataFrame) -> str:
    """How many answers each stratum holds: a number, or the least and the most."""
    n = "–".join(str(count) for count in sorted({strata["n"].min(), strata["n"].max()}))
    return f"(n = {n} each)"


def _rates(
    axes: Axes, places: Sequence[float], rates: pl.DataFrame, fill: str, width: float = WIDTH
) -> None:
    """Error rates with their intervals."""
    middle = rates["incorrect_rate"]
    ends = [middle - rates["incorrect_rate_low"], rates["incorrect_rate_high"] - middle]
    # A percentile interval need not contain the rate itself.
    bars = [end.clip(lower_bound=0) for end in ends]
    axes.bar(places, middle, width, fc=fill, **EDGE)
    axes.errorbar(places, middle, bars, fmt="none", ecolor=figure_style.MUTED, elinewidth=1.2)
