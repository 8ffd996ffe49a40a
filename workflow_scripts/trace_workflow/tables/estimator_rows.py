"""The estimators of each table, and their names in the paper's tables."""

# The estimators of the tables of averages, in groups of rows.
ABLATIONS = (
    "trace_plus",
    "trace_plus_with_likelihood",
    "trace_plus_without_local_entropy",
    "trace_plus_without_local_surprisal",
    "trace_plus_without_slope",
    "trace_plus_without_length",
)
ESTIMATOR_ROWS = {
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
        ("mean_token_entropy", "ces", "entropy_sentinel", "trace_profile", "length_alone"),
        ("trace", "trace_plus"),
    ),
}
# Rows that the paper's table lacks.
ADDED_ROWS = {"broader_uq": {*ESTIMATOR_ROWS["broader_uq"][1], *ESTIMATOR_ROWS["broader_uq"][2]}}
# The paper's names, table by table, where they differ from the usual labels.
SHORT = {"seq_logp": "SeqLogP", "windowed_entropy": "WinEnt"}
LOCALIZED = SHORT | {"windowed_entropy": "WindowEnt"}
DOTTED = {"first_token_prob": "First-Token Prob."}
INDENT = "\u2003"
PAPER_NAMES = {
    "bridge": {"trace": "TRACE + scalar calib.", "learned_dml": "Learned (D,M,L)"},
    "operator_ablation": {"trace": "TRACE (D+M+L)", "learned_dml": "Learned (D,M,L)"},
    "ablation": {
        "trace_plus_with_likelihood": f"{INDENT}+ seq. likelihood",
        "trace_plus_without_local_entropy": f"{INDENT}w/o local entropy",
        "trace_plus_without_local_surprisal": f"{INDENT}w/o local surprisal",
        "trace_plus_without_slope": f"{INDENT}w/o trajectory slope",
        "trace_plus_without_length": f"{INDENT}w/o length",
    },
    "calibration_size": SHORT,
    "reliability_selective": SHORT,
    "length_stratified": SHORT,
    "localized_global_errors": LOCALIZED,
    "localized_error_subtypes": LOCALIZED,
    "cross_model_best_estimators": DOTTED,
    "cross_model_task_details": DOTTED,
}


def estimators_of(table: str) -> set[str]:
    """The estimators of a table, if the run has them."""
    return {estimator for group in ESTIMATOR_ROWS[table] for estimator in group}
