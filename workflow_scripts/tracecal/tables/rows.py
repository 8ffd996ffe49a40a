"""The estimators that tables of averages show, by id, in groups of rows.

The rules import this at every start of the workflow, so it is kept apart from the tables.
"""

ABLATIONS = (
    "trace_plus",
    "trace_plus_with_likelihood",
    "trace_plus_without_local_entropy",
    "trace_plus_without_local_surprisal",
    "trace_plus_without_slope",
    "trace_plus_without_length",
)
ROWS = {
    "bridge": (("trace_uncalibrated", "trace", "learned_dml", "trace_plus"),),
    "ablation": (ABLATIONS, ("entropy_local_only", "likelihood_local_only")),
    "operator_ablation": (("operator_d", "operator_m", "operator_l"), ("trace", "learned_dml")),
    "semantic_fusion": (
        ("mars", "mars_with_trace", "token_sar", "token_sar_with_trace"),
        ("trace_plus", "trace_plus_with_mars", "trace_plus_with_token_sar"),
    ),
    "broader_uq": (
        ("mars", "token_sar", "lars", "p_true", "verbalized", "internal_probe"),
        ("semantic_entropy", "selfcheckgpt"),
        ("mean_token_entropy", "ces", "entropy_sentinel"),
        ("trace", "trace_plus"),
    ),
}
# Rows that the paper's table lacks.
ADDED = {
    "broader_uq": {*ROWS["broader_uq"][1], *ROWS["broader_uq"][2]},
    "protocol_comparison": {"p_true", "verbalized", "lars", "internal_probe", "entropy_sentinel"},
}
SHORT = {"seq_logp": "SeqLogP", "windowed_entropy": "WinEnt"}
LOCALIZED = SHORT | {"windowed_entropy": "WindowEnt"}
DOTTED = {"first_token_prob": "First-Token Prob."}
# The paper's names of estimators, by table, where they differ from the usual; \u2003 is an indent.
PRINTED = {
    "bridge": {"trace": "TRACE + scalar calib.", "learned_dml": "Learned (D,M,L)"},
    "operator_ablation": {"trace": "TRACE (D+M+L)", "learned_dml": "Learned (D,M,L)"},
    "ablation": {
        "trace_plus_with_likelihood": "\u2003+ seq. likelihood",
        "trace_plus_without_local_entropy": "\u2003w/o local entropy",
        "trace_plus_without_local_surprisal": "\u2003w/o local surprisal",
        "trace_plus_without_slope": "\u2003w/o trajectory slope",
        "trace_plus_without_length": "\u2003w/o length",
    },
    "calibration_size": SHORT,
    "reliability_selective": SHORT,
    "length_stratified": SHORT,
    "localized_global_errors": LOCALIZED,
    "localized_error_subtypes": LOCALIZED,
    "cross_model_best_estimators": DOTTED,
    "cross_model_task_details": DOTTED,
}


def shown(table: str) -> set[str]:
    """The estimators that a table shows where the run has them."""
    return {estimator for group in ROWS[table] for estimator in group}
