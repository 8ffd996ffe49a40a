"""Estimators of one's own; name this file in the configuration as `custom_estimators`.

Expressions may use the columns of traces (surprisal, entropy, tokens, ..., one list per answer)
and of features; larger means more confident.
"""

import polars as pl

from tracecal.estimators import operators as op

ESTIMATORS = {
    "late_entropy": {
        "label": "Late Entropy",
        "score": -op.last_mean(pl.col("entropy"), 5),
    },
    "early_minus_late": {
        "label": "Early minus Late",
        "score": op.last_mean(pl.col("surprisal"), 3) - op.first_mean(pl.col("surprisal"), 3),
    },
    "brevity": {"label": "Brevity", "score": -pl.col("log_length")},
}
