"""The paper's names of estimators, table by table, where they differ from the usual labels."""

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
