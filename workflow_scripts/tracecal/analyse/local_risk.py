"""Wrong answers whose risk is concentrated in few tokens, selected by a rule (paper, section 4.3).

An incorrect answer is eligible if it has at least TOKENS tokens (two windows, so that a window is a
part) and its local peak M_H^(4) is above the median peak of all answers: a region of high risk, not
a small fluctuation in a confident answer. The ANSWERS with the largest ratio of peak to mean are
selected. They show what dilution looks like, not how frequent it is.
"""

import polars as pl

from tracecal.analyse.pairs import KEYS, Pairs, Paths, read_labels, read_pairs, scope
from tracecal.decode.traces import read_traces
from tracecal.operate.operators import WINDOW, window_start

TOKENS = 2 * WINDOW
ANSWERS = 24
FEATURES = ("length", "mean_entropy", "window_entropy")


def analysis(traces: Paths, features: Paths, labels: Paths, pairs: Pairs) -> pl.DataFrame:
    """`local_risk` from the files of `pairs`, with their scope."""
    selected = local_risk(
        read_pairs(features, pairs, ["example_id", *FEATURES]),
        read_labels(labels, pairs),
        read_pairs(traces, pairs, ["example_id", "entropy"], read_traces),
    )
    return selected.with_columns(**scope(pairs))


def local_risk(
    features: pl.DataFrame, labels: pl.DataFrame, entropies: pl.DataFrame
) -> pl.DataFrame:
    """The selected answers, the largest ratio first; `entropies` holds KEYS and `entropy`.

    Columns KEYS, `mean_risk`, `local_peak` (nats), `peak_start` (the peak window's first token,
    from 0), `entropy` (list, nats); and, the same in each row, how many answers are `incorrect`
    and how many of these are `eligible`.
    """
    answers = features.join(labels, on=KEYS, validate="1:1")
    incorrect = answers.filter(~pl.col("correct"))
    eligible = incorrect.filter(
        pl.col("length") >= TOKENS, pl.col("window_entropy") > answers["window_entropy"].median()
    )
    chosen = (
        eligible.with_columns(ratio=pl.col("window_entropy") / pl.col("mean_entropy"))
        .sort("ratio", *KEYS, descending=[True, False, False, False])
        .head(ANSWERS)
    )
    return chosen.join(
        entropies, on=KEYS, how="left", validate="1:1", maintain_order="left"
    ).select(
        *KEYS,
        pl.col("mean_entropy").alias("mean_risk"),
        pl.col("window_entropy").alias("local_peak"),
        window_start(pl.col("entropy"), WINDOW).cast(pl.Int64).alias("peak_start"),
        "entropy",
        incorrect=pl.lit(incorrect.height),
        eligible=pl.lit(eligible.height),
    )
