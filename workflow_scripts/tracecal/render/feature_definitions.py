"""What TRACE+ learns from: its features by group, and those it does without."""

from collections.abc import Sequence
from typing import NamedTuple

from tracecal.operate.operators import LOW_PROBABILITY
from tracecal.render.table import Column, Row, RowGroup, Table, cell


class Definition(NamedTuple):
    """A feature: the group it belongs to, its name and how it is computed."""

    group: str
    label: str
    formula: str


def _decayed(signal: str, letter: str, decay: int) -> Definition:
    return Definition(
        f"Local {signal}",
        f"Decayed {signal} confidence (λ = {decay})",
        f"exp(−weighted mean of {letter}), weight exp(−(t − 1)/{decay}) at token t",
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
    "decayed_entropy_conf_2": _decayed("entropy", "H", 2),
    "decayed_entropy_conf_4": _decayed("entropy", "H", 4),
    "decayed_surprisal_conf_2": _decayed("surprisal", "s", 2),
    "decayed_surprisal_conf_4": _decayed("surprisal", "s", 4),
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


def feature_table(features: Sequence[str], excluded: Sequence[str]) -> Table:
    """TRACE+'s `features`, then those `excluded` from it, by id and in the order given."""

    def rows(ids: Sequence[str], used: str) -> RowGroup:
        return RowGroup(tuple(_row(one, used) for one in ids))

    return Table(
        name="trace_plus_features",
        title="TRACE+ features",
        caption="The features that TRACE+ is fitted on, each computed from the trace of the "
        "decoded answer alone. Those under the rule summarise the likelihood of the selected "
        "tokens; TRACE+ does without them, and only its ablation with sequence likelihood "
        "adds them.",
        columns=(
            Column(("feature",), shown=False),
            Column(("group",), "Group", align="left"),
            Column(("label",), "Feature", align="left"),
            Column(("formula",), "Definition", align="left"),
            Column(("used_by",), shown=False),
        ),
        groups=(
            rows(features, "trace_plus trace_plus_with_likelihood"),
            rows(excluded, "trace_plus_with_likelihood"),
        ),
        notes=(SYMBOLS,),
    )


def _row(feature: str, used: str) -> Row:
    return tuple(map(cell, (feature, *DEFINITIONS[feature], used)))
