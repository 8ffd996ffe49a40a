"""The features that learned estimators are fitted on."""

TRACE_PLUS_FEATURES = (
    "first3_entropy_conf",
    "mean_entropy_conf",
    "log_length",
    "entropy_slope",
    "decayed_entropy_conf_2",
    "decayed_entropy_conf_4",
    "decayed_surprisal_conf_2",
    "decayed_surprisal_conf_4",
)
# The eleven statistics of Entropy Sentinel.
ENTROPY_STATISTICS = (
    "mean_entropy",
    "entropy_deviation",
    "max_entropy",
    "entropy_q10",
    "entropy_q25",
    "entropy_q50",
    "entropy_q75",
    "entropy_q90",
    "entropy_skewness",
    "entropy_kurtosis",
    "entropy_sum",
)
OPERATORS = ("decayed_entropy", "window_entropy", "length_normalised_surprisal")
LIKELIHOOD = ("min_prob", "len_norm_logp", "low_prob_token_rate")
LOCAL_ENTROPY = ("decayed_entropy_conf_2", "decayed_entropy_conf_4")
LOCAL_SURPRISAL = ("decayed_surprisal_conf_2", "decayed_surprisal_conf_4")


def without(*removed: str) -> tuple[str, ...]:
    """The features of TRACE+ without the `removed` ones.

    >>> len(without("log_length"))
    7
    """
    return tuple(name for name in TRACE_PLUS_FEATURES if name not in removed)


# The same quantities as -ln(x + 1e-9) instead of exp(-x).
TRACE_PLUS_ON_LOGARITHMS = (
    "first3_entropy_log_conf",
    "mean_entropy_log_conf",
    "log_length",
    "entropy_slope",
    "decayed_entropy_log_conf_2",
    "decayed_entropy_log_conf_4",
    "decayed_surprisal_log_conf_2",
    "decayed_surprisal_log_conf_4",
)
SURPRISAL_ON_LOGARITHMS = (
    "total_surprisal_log_conf",
    "mean_surprisal_log_conf",
    "max_surprisal_log_conf",
)
# What a log without alternatives, and so without entropies, gives.
SURPRISAL_ALONE = (
    "decayed_surprisal_log_conf_2",
    "decayed_surprisal_log_conf_4",
    *SURPRISAL_ON_LOGARITHMS,
    "log_length",
)
LOG_RIDGE = (*TRACE_PLUS_ON_LOGARITHMS, *SURPRISAL_ON_LOGARITHMS)
STACK_OF_SIX = (
    *dict.fromkeys((*TRACE_PLUS_FEATURES, *TRACE_PLUS_ON_LOGARITHMS)),
    "total_surprisal_log_conf",
    "log_likelihood",
    "scores.mean_token_entropy",
)
