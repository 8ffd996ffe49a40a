"""The features of TRACE+ by group, and those that it excludes."""

from typing import NamedTuple

import polars as pl

from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table
from tracecal.features.operators import LOW_PROBABILITY


class Definition(NamedTuple):
    """A feature: the group it belongs to, its name and how it is computed."""

    group: str
    label: str
    formula: str


def _decayed(signal: str, letter: str) -> Definition:
    return Definition(
        f"Local {signal}",
        f"Decayed {signal} confidence (λ=2,4)",
        f"exp(−weighted mean of {letter}), weight exp(−(t − 1)/λ) at token t",
    )


EXCLUDED = "Excluded likelihood"
DEFINITIONS = {
    "first3_entropy_conf": Definition(
        "Early entropy", "First-3 entropy confidence", "exp(−mean of H over the first 3 tokens)"
    ),
    "mean_entropy_conf": Definition(
        "Global entropy", "Mean entropy confidence", "exp(−mean of H over all tokens)"
    ),
    "log_length": Definition("Length", "Log answer length", "ln T"),
    "entropy_slope": Definition(
        "Trajectory", "Entropy slope", "least-squares slope of H on t; 0 where T = 1"
    ),
    "decayed_entropy_conf_2": _decayed("entropy", "H"),
    "decayed_entropy_conf_4": _decayed("entropy", "H"),
    "decayed_surprisal_conf_2": _decayed("surprisal", "s"),
    "decayed_surprisal_conf_4": _decayed("surprisal", "s"),
    "min_prob": Definition(EXCLUDED, "Minimum token probability", "smallest p"),
    "len_norm_logp": Definition(EXCLUDED, "Geometric mean token probability", "exp(−mean of s)"),
    "low_prob_token_rate": Definition(
        EXCLUDED, "Low-probability token rate", f"share of tokens with p < {LOW_PROBABILITY:g}"
    ),
}
SYMBOLS = (
    "T: tokens generated for the answer, the end token included; t = 1, …, T. p: probability of "
    "the selected token; s = −ln p: its surprisal; H: entropy of the distribution that it was "
    "selected from; s and H in nats. A mean over the first 3 tokens is one over all of a shorter "
    "answer."
)


def table(frames: Frames, settings: Settings) -> Table:
    """From `settings.more`: the ids of TRACE+'s `features`, then of those `excluded`, in order.

    Features that differ in their decay alone share a row, as in the paper.
    """
    used = dict.fromkeys(settings.more["features"], "trace_plus trace_plus_with_likelihood")
    used |= dict.fromkeys(settings.more["excluded"], "trace_plus_with_likelihood")
    together: dict[Definition, list[str]] = {}
    for feature in used:
        together.setdefault(DEFINITIONS[feature], []).append(feature)
    rows = [
        {"features": " ".join(features), **definition._asdict(), "used_by": used[features[0]]}
        for definition, features in together.items()
    ]
    return Table(
        frame=pl.DataFrame(rows),
        columns=(
            Column(("group",), "Group", align="left"),
            Column(("label",), "Features", align="left"),
            Column(("formula",), "Definition", align="left", wrap=185, added=True),
        ),
        section=pl.col("used_by"),
        notes=(SYMBOLS,),
    )
