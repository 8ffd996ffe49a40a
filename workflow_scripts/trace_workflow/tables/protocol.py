"""Tables of the protocol (appendix C): what is compared, by definition and without a result.

`protocol_comparison` has the needs of each kind of method, and `trace_plus_features` the features
of TRACE+ by group, with those that it excludes.
"""

from typing import NamedTuple

import polars as pl

from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.features import LOW_PROBABILITY

ASSUMPTIONS = {
    "same": "Same",
    "single": "Single",
    "extra": "Extra",
    "semantic": "Sem.",
    "calibrator": "Calib.",
}
MARKS = {"yes": "✓", "partly": "△", "no": "✗"}
# The paper's methods in its order.
ORDER = ("likelihood_entropy", "beam", "token_sar", "mars", "selfcheckgpt", "semantic_entropy")


def protocol_comparison(study: StudyResults) -> Table:
    """From the option `methods`: `method`, `label`, `role`, and a mark for each assumption.

    A mark is 'yes', 'partly' or 'no'. TRACE's rows are last, under a rule.
    """
    # The paper's methods come in its order, before added ones.
    methods = sorted(
        study.options["methods"],
        key=lambda m: (m["role"] == "trace", [*ORDER, m["method"]].index(m["method"])),
    )
    trace = [method["method"] for method in methods if method["role"] == "trace"]
    return Table(
        frame=pl.DataFrame(methods).select("method", "label", *ASSUMPTIONS),
        columns=(
            Column(("label",), "Method", align="left"),
            *(
                Column((key,), label, printed=pl.col(key).replace_strict(MARKS))
                for key, label in ASSUMPTIONS.items()
            ),
        ),
        section=pl.col("method").is_in(trace).cast(pl.String),
        added=~pl.col("method").is_in([*ORDER, *trace]),
        footnotes=(f"{MARKS['yes']} yes, {MARKS['partly']} partly, {MARKS['no']} no.",),
    )


class FeatureDefinition(NamedTuple):
    """A feature's group, name and formula."""

    group: str
    label: str
    formula: str


def _decayed(signal: str, letter: str) -> FeatureDefinition:
    return FeatureDefinition(
        f"Local {signal}",
        f"Decayed {signal} confidence (λ=2,4)",
        f"exp(−weighted mean of {letter}), weight exp(−(t − 1)/λ) at token t",
    )


EXCLUDED = "Excluded likelihood"
DEFINITIONS = {
    "first3_entropy_conf": FeatureDefinition(
        "Early entropy", "First-3 entropy confidence", "exp(−mean of H over the first 3 tokens)"
    ),
    "mean_entropy_conf": FeatureDefinition(
        "Global entropy", "Mean entropy confidence", "exp(−mean of H over all tokens)"
    ),
    "log_length": FeatureDefinition("Length", "Log answer length", "ln T"),
    "entropy_slope": FeatureDefinition(
        "Trajectory", "Entropy slope", "least-squares slope of H on t; 0 where T = 1"
    ),
    "decayed_entropy_conf_2": _decayed("entropy", "H"),
    "decayed_entropy_conf_4": _decayed("entropy", "H"),
    "decayed_surprisal_conf_2": _decayed("surprisal", "s"),
    "decayed_surprisal_conf_4": _decayed("surprisal", "s"),
    "min_prob": FeatureDefinition(EXCLUDED, "Minimum token probability", "smallest p"),
    "len_norm_logp": FeatureDefinition(
        EXCLUDED, "Geometric mean token probability", "exp(−mean of s)"
    ),
    "low_prob_token_rate": FeatureDefinition(
        EXCLUDED, "Low-probability token rate", f"share of tokens with p < {LOW_PROBABILITY:g}"
    ),
}
SYMBOLS = (
    "T: tokens generated for the answer, the end token included; t = 1, …, T. p: probability of "
    "the selected token; s = −ln p: its surprisal; H: entropy of the distribution that it was "
    "selected from; s and H in nats. A mean over the first 3 tokens is one over all of a shorter "
    "answer."
)


def trace_plus_features(study: StudyResults) -> Table:
    """From the options: the ids of TRACE+'s `features`, then of those `excluded`, in order.

    As in the paper, features that differ in their decay alone share a row.
    """
    used_by = dict.fromkeys(study.options["features"], "trace_plus trace_plus_with_likelihood")
    used_by |= dict.fromkeys(study.options["excluded"], "trace_plus_with_likelihood")
    by_definition: dict[FeatureDefinition, list[str]] = {}
    for feature in used_by:
        by_definition.setdefault(DEFINITIONS[feature], []).append(feature)
    rows = [
        {"features": " ".join(features), **definition._asdict(), "used_by": used_by[features[0]]}
        for definition, features in by_definition.items()
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
