"""The spike evidence: error rates by mean risk and spike gap, and what scores make of spikes."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tracecal.figures import style
from tracecal.storage.files import read_parquet
from tracecal.tables.settings import Entry

HEIGHT = 2.2
OFFSET = 0.12
# Error rates are drawn in ink, hollow where the spike gap is low; scores in their own colours.
INK = {"color": style.INK, "marker": "D", "mec": style.INK, "mew": 0.8}
FILLS = {"low": "white", "high": style.INK}
# Percentiles that are drawn, and how: solid where the score looks at a part of the answer.
SCORES = {
    "mean_token_entropy": ("Mean entropy", "entropy", "baseline", "--"),
    "len_norm_logp": ("Mean surprisal", "likelihood", "baseline", "--"),
    "windowed_entropy": ("Local peak", "trajectory", "baseline", "-"),
    "trace": ("TRACE", "trace", "trace", "-"),
}


def draw(strata: str, quintiles: str) -> Figure:
    """The figure, from the two files of the analysis `spike_strata`."""
    return spike_evidence(*(read_parquet(path, ["incorrect_rate"]) for path in (strata, quintiles)))


def spike_evidence(strata: pl.DataFrame, quintiles: pl.DataFrame) -> Figure:
    """Two panels, from the frames of `tracecal.analyse.spike_strata`."""
    with style.applied():
        figure = Figure(figsize=(style.COLUMN_WIDTH, HEIGHT))
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        _strata(left, strata)
        _quintiles(right, quintiles)
        style.panel_title(left, "a", "All answers")
        style.panel_title(right, "b", "Low mean risk")
        style.legend(figure, _keys())
    return figure


def _strata(axes: Axes, strata: pl.DataFrame) -> None:
    names = strata["risk_stratum"].unique(maintain_order=True).to_list()
    for spike, offset in (("low", -OFFSET), ("high", OFFSET)):
        drawn = strata.filter(pl.col("n") > 0, spike_stratum=spike)
        places = [names.index(name) + offset for name in drawn["risk_stratum"]]
        _rates(axes, places, drawn, ls="", mfc=FILLS[spike])
    axes.set_xticks(range(len(names)), [name.capitalize() for name in names])
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xlabel("Mean risk (tercile)")
    axes.set_ylabel("Share wrong")
    _unit(axes)


def _quintiles(axes: Axes, quintiles: pl.DataFrame) -> None:
    drawn = quintiles.filter(pl.col("n") > 0)
    places = [place + 1 for place in drawn["quintile"]]
    for name, (_, family, role, line) in SCORES.items():
        look = style.look(Entry(name, "", family, role, ""))
        values = drawn[f"{name}_percentile"].to_list()
        axes.plot(places, values, line, color=look.color, marker=look.marker, ms=2.8, mew=0)
    _rates(axes, places, drawn, ls="-", mfc=style.INK)
    axes.set_xticks(range(1, quintiles.height + 1))
    axes.set_xlim(0.6, quintiles.height + 0.4)
    axes.set_xlabel("Spike gap (fifth)")
    axes.set_ylabel("Share wrong, percentile")
    _unit(axes)


def _rates(axes: Axes, places: list[float], rates: pl.DataFrame, **drawn: object) -> None:
    """Error rates with their intervals."""
    middle = rates["incorrect_rate"]
    ends = [middle - rates["incorrect_rate_low"], rates["incorrect_rate_high"] - middle]
    axes.errorbar(
        places,
        middle.to_list(),
        # A percentile interval need not hold the rate itself.
        yerr=[end.clip(lower_bound=0).to_list() for end in ends],
        elinewidth=0.8,
        zorder=6,
        **INK,
        **drawn,
    )


def _unit(axes: Axes) -> None:
    axes.set_ylim(0, 1)
    axes.grid(axis="y")


def _keys() -> list[Line2D]:
    keys = [
        Line2D([], [], ls="", mfc=fill, label=f"Wrong, {spike} gap", **INK)
        for spike, fill in FILLS.items()
    ]
    keys.append(Line2D([], [], mfc=style.INK, label=" Wrong", **INK))
    for name, (label, family, role, line) in SCORES.items():
        look = style.look(Entry(name, "", family, role, ""))
        drawn = {"color": look.color, "marker": look.marker, "ms": 2.8, "mew": 0}
        keys.append(Line2D([], [], ls=line, label=f" {label}", **drawn))
    return keys
