"""Answers whose risk is concentrated in few tokens, selected by a rule (paper, section 4.3).

An answer is eligible if it has at least MIN_TOKENS tokens (two windows, so that a window is a
part) and its local peak M_H^(4) is above the median peak of all answers: a region of high risk, not
a small fluctuation in a confident answer. The N_ANSWERS with the largest ratio of peak to mean are
selected, of the wrong ones as in the paper, and by the same rule of the correct ones. They show
what dilution looks like, not how frequent it is.
"""

import polars as pl

from trace_workflow.analyses.study_files import KEYS, StudyFiles
from tracecal.estimators.features import WINDOW
from tracecal.estimators.operators import window_start
from tracecal.io.traces import read_traces

MIN_TOKENS = 2 * WINDOW
N_ANSWERS = 24
FEATURES = ("length", "mean_entropy", "window_entropy")


def analysis(files: StudyFiles) -> pl.DataFrame:
    """`local_risk` of the pairs, with their scope."""
    answers = local_risk(
        files.read("features", ["example_id", *FEATURES]),
        files.labels(),
        files.read("traces", ["example_id", "entropy"], read_traces),
    )
    return answers.with_columns(**files.scope)


def local_risk(
    features: pl.DataFrame, labels: pl.DataFrame, entropies: pl.DataFrame
) -> pl.DataFrame:
    """The selected wrong and then correct answers, of each the largest ratio first.

    `entropies` holds KEYS and `entropy`. Columns KEYS, `correct`, `mean_risk`, `local_peak` (nats),
    `peak_start` (the peak window's first token, from 0), `entropy` (list, nats), and how many
    answers of a row's kind there are (`answers`) and how many of them are `eligible`.
    """
    answers = features.join(labels, on=KEYS, validate="1:1").with_columns(
        answers=pl.len().over("correct").cast(pl.Int64)
    )
    eligible = answers.filter(
        pl.col("length") >= MIN_TOKENS,
        pl.col("window_entropy") > answers["window_entropy"].median(),
    ).with_columns(
        eligible=pl.len().over("correct").cast(pl.Int64),
        ratio=pl.col("window_entropy") / pl.col("mean_entropy"),
    )
    ordered = eligible.sort("correct", -pl.col("ratio"), *KEYS)
    selected = ordered.filter(pl.int_range(pl.len()).over("correct") < N_ANSWERS)
    return selected.join(
        entropies, on=KEYS, how="left", validate="1:1", maintain_order="left"
    ).select(
        *KEYS,
        "correct",
        pl.col("mean_entropy").alias("mean_risk"),
        pl.col("window_entropy").alias("local_peak"),
        window_start(pl.col("entropy"), WINDOW).cast(pl.Int64).alias("peak_start"),
        "entropy",
        "answers",
        "eligible",
    )
