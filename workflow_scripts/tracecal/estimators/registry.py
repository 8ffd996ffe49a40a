"""The registry of estimators: their names, citations and needs.

Their formulas are in the module that `module_of` names. Rules pass a script the entries that it
needs as parameters, so a new line reruns only its family. `column_estimators` are those of the
user's own columns, which answers of files may have.
"""

from collections.abc import Sequence
from dataclasses import replace

from tracecal.errors import InputError
from tracecal.estimators.estimator import Estimator, variant
from tracecal.estimators.feature_sets import (
    ENTROPY_STATISTICS,
    LIKELIHOOD,
    LOCAL_ENTROPY,
    LOCAL_SURPRISAL,
    LOG_RIDGE,
    OPERATORS,
    STACK_OF_SIX,
    SURPRISAL_ALONE,
    TRACE_PLUS_FEATURES,
    TRACE_PLUS_ON_LOGARITHMS,
    without,
)

ESTIMATORS = (
    Estimator("first_token_prob", "First-Token Prob", "likelihood", "baseline", "chen2026firsttoken"),
    Estimator("mean_prob", "MeanProb", "likelihood", "baseline", "flores2025improving"),
    Estimator("len_norm_logp", "Len-Norm LogP", "likelihood", "baseline", "bakman2024mars"),
    Estimator("seq_logp", "SeqLogP / Total NLL", "likelihood", "baseline", "aichberger2024rethinking"),
    Estimator("min_prob", "MinProb", "likelihood", "baseline", "manakul2023selfcheckgpt"),
    Estimator("mean_token_entropy", "Mean Token Entropy", "entropy", "baseline", "flores2025improving"),
    Estimator("max_token_entropy", "Max Token Entropy", "entropy", "baseline", "manakul2023selfcheckgpt"),
    Estimator("high_prob_token_rate", "High-Prob Token Rate", "likelihood", "baseline", "szymczyk2026monitoring"),
    Estimator("first_k_entropy", "First-k Entropy", "entropy", "baseline", "chen2026firsttoken"),
    Estimator("last_k_entropy", "Last-k Entropy", "entropy", "baseline", "li2026semantic"),
    Estimator("windowed_entropy", "Windowed Entropy", "trajectory", "baseline", "sriramanan2024llm"),
    Estimator("entropy_variance", "Entropy Variance", "trajectory", "baseline", "zhu2026edis"),
    Estimator("entropy_slope", "Entropy Slope", "trajectory", "baseline", "zhu2026edis"),
    Estimator("token_prob_slope", "Token-Prob Slope", "trajectory", "baseline", "shapiro2026halt"),
    Estimator("beam_ratio", "Beam-Ratio", "beam", "baseline", "flores2025improving", ("beams",)),
    Estimator("beam_tail_thinness", "Beam-TailThinness", "beam", "baseline", "flores2025improving", ("beams",)),
    Estimator("beam_entropy", "Beam Entropy", "beam", "baseline", "flores2025improving", ("beams",)),
    Estimator("token_sar", "TokenSAR", "token_sar", "baseline", "duan2024shifting", ("traces", "similarity"), shown_as="semantic"),
    Estimator("mars", "MARS", "mars", "baseline", "bakman2024mars", ("traces", "importance"), shown_as="semantic"),
    Estimator("trace", "TRACE", "trace", "trace", "xu2026trace", ("features",)),
    Estimator(
        "trace_plus", "TRACE+", "trace", "trace", "xu2026trace", ("traces", "labels"), TRACE_PLUS_FEATURES
    ),
    Estimator("semantic_entropy", "Semantic Entropy", "semantic_entropy", "broader", "kuhn2023semantic", ("samples", "meanings"), assumes={"same": "no", "semantic": "yes"}, shown_as="sampling"),
    Estimator("selfcheckgpt", "SelfCheckGPT", "selfcheckgpt", "broader", "manakul2023selfcheckgpt", ("traces", "samples"), assumes={"semantic": "partly"}, shown_as="sampling"),
    Estimator("lars", "LARS", "lars", "broader", "yaldiz2025", ("traces", "labels"), assumes={"semantic": "yes"}, shown_as="supervised"),
    Estimator("internal_probe", "Internal-state probe", "internal_probe", "broader", "ji2024", ("hidden", "labels"), shown_as="supervised"),
    Estimator("p_true", "P(True)", "p_true", "broader", "kadavath2022language", ("asked",), shown_as="self-evaluation"),
    Estimator("verbalized", "Verbalized conf.", "verbalized", "broader", "tian2023just", ("asked",), assumes={"extra": "yes"}, shown_as="self-evaluation"),
    # Newer than the paper, on the same traces.
    Estimator("ces", "CES", "ces", "broader", "villani2026entropy", shown_as="entropy"),
    Estimator("entropy_sentinel", "Entropy Sentinel", "entropy", "broader", "buffa2026sentinel", ("traces", "labels"), ENTROPY_STATISTICS),
    Estimator("trace_profile", "Trace profile, after Grünefeld et al.", "trajectory", "broader", "gruenefeld2026tracing", ("traces", "labels"), ("surprisal_slope", "surprisal_r_squared")),
    Estimator("length_alone", "Length alone, after Devic et al.", "trajectory", "broader", "devic2025length"),
    # Paper, tables 3 and 4 and appendix E.4: ablations of TRACE.
    Estimator("operator_d", "Position-decayed entropy D", "trace", "variant", "xu2026trace", ("features",)),
    Estimator("operator_m", "Local-window entropy M", "trace", "variant", "xu2026trace", ("features",)),
    Estimator("operator_l", "Length-normalized surprisal L", "trace", "variant", "xu2026trace", ("features",)),
    variant("trace_uncalibrated", "TRACE (raw)", "scores.trace", fit="identity"),
    variant("learned_dml", "Learned (D, M, L)", *OPERATORS),
    variant("trace_plus_with_likelihood", "TRACE+ + seq. likelihood", *TRACE_PLUS_FEATURES, *LIKELIHOOD),
    variant("trace_plus_without_local_entropy", "TRACE+ w/o local entropy", *without(*LOCAL_ENTROPY)),
    variant("trace_plus_without_local_surprisal", "TRACE+ w/o local surprisal", *without(*LOCAL_SURPRISAL)),
    variant("trace_plus_without_slope", "TRACE+ w/o trajectory slope", *without("entropy_slope")),
    variant("trace_plus_without_length", "TRACE+ w/o length", *without("log_length")),
    # Paper, table 5: semantic estimators with TRACE's operators, and TRACE+ with them.
    variant("mars_with_trace", "MARS + TRACE", "scores.mars", *OPERATORS),
    variant("token_sar_with_trace", "TokenSAR + TRACE", "scores.token_sar", *OPERATORS),
    variant("trace_plus_with_mars", "TRACE+ + MARS", *TRACE_PLUS_FEATURES, "scores.mars"),
    variant("trace_plus_with_token_sar", "TRACE+ + TokenSAR", *TRACE_PLUS_FEATURES, "scores.token_sar"),
    variant("likelihood_and_length", "Log-likelihood and length", "log_likelihood", "log_length"),
    variant("entropy_local_only", "Entropy-local only", *LOCAL_ENTROPY),
    variant("likelihood_local_only", "Likelihood-local only", *LOCAL_SURPRISAL),
    # Beyond the paper, on logarithms; `tracecal.fits` has `ridge` and `mixture` of their own.
    variant("log_trace_plus", "Log TRACE+", *TRACE_PLUS_ON_LOGARITHMS),
    variant("log_ridge", "Log ridge", *LOG_RIDGE, fit="ridge"),
    variant("stack_of_six", "Stack of six", *STACK_OF_SIX, fit="mixture"),
    variant("mean_of_three", "Mean of three", *dict.fromkeys((*LOG_RIDGE, *STACK_OF_SIX)), fit="log_odds_mean"),
    variant("surprisal_ridge", "Surprisal ridge", *SURPRISAL_ALONE, fit="prior_ridge"),
)  # fmt: skip
# Log ridge with the user's own columns, which answers of files may have: its inputs are those of Log
# ridge, then the columns.
LOG_RIDGE_ALSO = variant("log_ridge_also", "Log ridge + own columns", fit="ridge")
OF_FILES = (*ESTIMATORS, LOG_RIDGE_ALSO)
IDS = tuple(estimator.id for estimator in ESTIMATORS)
INPUTS = {estimator.id: estimator.inputs for estimator in OF_FILES}
# The estimators in the analyses of the paper: one of each kind, then TRACE.
REPRESENTATIVE = ("seq_logp", "windowed_entropy", "mars", "trace", "trace_plus")
# The fits beyond the paper that are compared with TRACE+.
ON_LOGARITHMS = ("log_trace_plus", "log_ridge", "stack_of_six")
COLUMNS = "columns"  # the family, and the need that names them
# Families whose module has another name.
SHARED = {
    **dict.fromkeys(("likelihood", "entropy", "trajectory", "ces"), "trace_scores"),
    **dict.fromkeys(
        ("trace", "beam", "p_true", "verbalized", "internal_probe", "lars", COLUMNS), "families"
    ),
}
CUSTOM = "custom_"  # begins the family of each custom estimator
OWN = "own"  # the family under which tables and figures show the user's own estimators


def module_of(family: str) -> str:
    """The module with the formulas of a family.

    >>> module_of("p_true")
    'tracecal.estimators.families'
    """
    name = "custom_scores" if family.startswith(CUSTOM) else SHARED.get(family, family)
    return f"tracecal.estimators.{name}"


def column_estimators(names: Sequence[str]) -> list[Estimator]:
    """The estimators of the own columns `names`, the fit last; empty without names.

    Raises `InputError` where a name is an estimator's or a feature's.
    """
    if not names:
        return []
    from tracecal.estimators.features import FEATURES  # slow to load, and seldom needed

    built_in = {*FEATURES, *(estimator.id for estimator in OF_FILES)}
    if clashes := [name for name in names if name in built_in]:
        raise InputError(
            f"study.columns: {clashes[0]!r} is the name of a built-in estimator or feature; choose "
            "another."
        )
    columns = [
        Estimator(name, name, COLUMNS, "own", "", (COLUMNS,), shown_as=OWN) for name in names
    ]
    ridge = next(estimator for estimator in ESTIMATORS if estimator.id == "log_ridge")
    inputs = (*ridge.features, *(f"scores.{name}" for name in names))
    needs = (*LOG_RIDGE_ALSO.needs, COLUMNS)
    fit = replace(LOG_RIDGE_ALSO, needs=needs, features=inputs)
    return [*columns, fit]
