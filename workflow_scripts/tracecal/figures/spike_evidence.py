"""The spike evidence: error rates by mean risk and spike gap, and what scores make of spikes."""

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tracecal.figures import style

HEIGHT = 3.1
WIDTH = 0.36
# Bars are shares of wrong answers, by the spike gap; (b) shows all gaps, each in a bar of its own.
FILLS = {"low": "white", "high": style.INK}
EDGE = {"ec": style.INK, "lw": 0.8}
NOTHING = "No answer of the main study has\nentropies, of which spikes are made."
SCORES = {
    "mean_token_entropy": ("Mean entropy", style.FAMILIES["entropy"]),
    "len_norm_logp": ("Mean surprisal", style.FAMILIES["likelihood"]),
    "windowed_entropy": ("Local peak", style.LOCAL_PEAK),
    "trace": ("TRACE", style.TRACE),
}


def draw(strata: pl.DataFrame, quintiles: pl.DataFrame) -> Figure:
    """Three panels, from the frames of `tracecal.analyse.spike_strata`."""
    with style.applied():
        if not strata["n"].sum():
            return style.sentence(NOTHING, style.COLUMN_WIDTH, HEIGHT)
        figure = Figure(figsize=(style.COLUMN_WIDTH, HEIGHT))
        panels = figure.subplot_mosaic("ab;cc", height_ratios=[1, 1.1])
        _strata(panels["a"], strata)
        _quintiles(panels["b"], quintiles)
        _percentiles(panels["c"], quintiles)
        for letter, title in {
            "a": "All answers",
            "b": "Low mean risk",
            "c": "Low mean risk, as scores see it",
        }.items():
            style.panel_title(panels[letter], letter, title)
            panels[letter].set_ylim(0, 1)
            panels[letter].grid(axis="y")
        style.legend(figure, _keys())
    return figure


def _strata(axes: Axes, strata: pl.DataFrame) -> None:
    names = strata["risk_stratum"].unique(maintain_order=True).to_list()
    for spike, side in (("low", -0.5), ("high", 0.5)):
        drawn = strata.filter(pl.col("n") > 0, spike_stratum=spike)
        places = [names.index(name) + side * WIDTH for name in drawn["risk_stratum"]]
        _rates(axes, places, drawn, FILLS[spike])
    axes.set_xticks(range(len(names)), [name.capitalize() for name in names])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_xlabel("Mean risk (third)")
    axes.set_ylabel("Share wrong")


def _quintiles(axes: Axes, quintiles: pl.DataFrame) -> None:
    drawn = quintiles.filter(pl.col("n") > 0)
    _rates(axes, [place + 1 for place in drawn["quintile"]], drawn, style.FAINT, 2 * WIDTH)
    _fifths(axes, quintiles.height)
    axes.tick_params(labelleft=False)


def _percentiles(axes: Axes, quintiles: pl.DataFrame) -> None:
    drawn = quintiles.filter(pl.col("n") > 0)
    for name, (_, look) in SCORES.items():
        places = [place + 1 for place in drawn["quintile"]]
        axes.plot(places, drawn[f"{name}_percentile"], ls=look.line, mew=0, **style.point(look))
    _fifths(axes, quintiles.height)
    axes.set_ylabel("Percentile of risk")


def _fifths(axes: Axes, count: int) -> None:
    axes.set_xticks(range(1, count + 1))
    axes.set_xlim(0.4, count + 0.6)
    axes.set_xlabel("Spike gap (fifth)")


def _rates(
    axes: Axes, places: Sequence[float], rates: pl.DataFrame, fill: str, width: float = WIDTH
) -> None:
    """Error rates with their intervals."""
    middle = rates["incorrect_rate"]
    ends = [middle - rates["incorrect_rate_low"], rates["incorrect_rate_high"] - middle]
    # A percentile interval need not hold the rate itself.
    spread = [end.clip(lower_bound=0).to_list() for end in ends]
    axes.bar(places, middle.to_list(), width, fc=fill, **EDGE)
    axes.errorbar(places, middle.to_list(), spread, fmt="none", ecolor=style.MUTED, elinewidth=1.2)


def _keys() -> list:
    gaps = [Patch(fc=fill, **EDGE, label=f" {spike} gap") for spike, fill in FILLS.items()]
    lines = [style.key(f" {label}", look, look.line) for label, look in SCORES.values()]
    return gaps + lines
