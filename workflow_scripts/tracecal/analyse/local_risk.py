"""Wrong answers whose risk is concentrated in few tokens, selected by a rule (paper, section 4.3).

Among the incorrect answers of at least TOKENS tokens (two windows, so that a window is a part)
those count whose local peak M_H^(4) is above the median peak of all answers: a region of high risk,
not a small fluctuation in a confident answer. Of these the ANSWERS with the largest ratio of peak
to mean are taken. They show what dilution looks like, not how frequent it is.
"""

from collections.abc import Mapping

import polars as pl

from tracecal.analyse.pairs import KEYS, Pairs, Paths, read_labels, read_pairs, scope
from tracecal.decode.traces import read_traces
from tracecal.operate.operators import WINDOW, window_start

TOKENS = 2 * WINDOW
ANSWERS = 24
FEATURES = ("length", "mean_entropy", "window_entropy")


def analysis(traces: Paths, features: Paths, labels: Paths, pairs: Pairs) -> pl.DataFrame:
    """As `local_risk`, from the files of `pairs`, with their scope."""
    entropies = {
        tuple(pair): read_traces(path, ["example_id", "entropy"])
        for path, pair in zip(traces, pairs, strict=True)
    }
    measured = read_pairs(features, pairs, ["example_id", *FEATURES])
    found = local_risk(measured, read_labels(labels, pairs), entropies)
    return found.with_columns(**scope(pairs))


def local_risk(
    features: pl.DataFrame, labels: pl.DataFrame, traces: Mapping[tuple[str, str], pl.DataFrame]
) -> pl.DataFrame:
    """The answers, the largest ratio first; `traces` holds entropies by (model, task).

    Columns KEYS, `mean_risk`, `local_peak` (nats), `peak_start` (the peak window's first token,
    from 0), `entropy` (list, nats); and, the same in each row, how many answers are `incorrect`
    and how many of those are `eligible` before the largest are taken.
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
    entropies = pl.concat(
        trace.select(pl.lit(model).alias("model"), pl.lit(task).alias("task"), *trace.columns)
        for (model, task), trace in traces.items()
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
