"""The operators over stored answers, beside the same formulas answer by answer in Polars."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from benchmarks.timing import Row, paired
from support import operators_one_by_one as one_by_one
from tracecal.estimators.features import (
    DECAY,
    LENGTH_EXPONENT,
    LOW_PROBABILITY,
    WINDOW,
    answer_features,
)

SIZES = (20_000, 200_000, 1_000_000)
# Lengths of the embedded models' answers: 2 to 40 tokens, 16 on average.
LENGTHS = (2, 3, 4, 5, 8, 10, 12, 15, 15, 16, 18, 20, 22, 24, 28, 32, 40)


def made_up(answers: int, seed: int = 0) -> pl.DataFrame:
    """Traces of made-up values: `example_id`, `surprisal` and `entropy`."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice(LENGTHS, answers)
    example = np.repeat(np.arange(answers), lengths)
    tokens = pl.DataFrame(
        {
            "example_id": example,
            "surprisal": rng.exponential(1.0, len(example)).astype(np.float32),
            "entropy": rng.exponential(1.0, len(example)).astype(np.float32),
        }
    )
    rows = tokens.group_by("example_id", maintain_order=True).all()
    return rows.with_columns(pl.col("example_id").cast(pl.String)).rechunk()


def answer_by_answer(traces: pl.DataFrame) -> pl.DataFrame:
    """The features that cost anything, by the formulas as they read."""
    S, H, op = pl.col("surprisal"), pl.col("entropy"), one_by_one
    return traces.select(
        op.decayed(H, DECAY).alias("decayed_entropy"),
        op.window_peak(H, WINDOW).alias("window_entropy"),
        op.length_normalised(S, LENGTH_EXPONENT).alias("length_normalised_surprisal"),
        op.mean(H).alias("mean_entropy"),
        op.first_mean(H, 3).alias("first3_entropy"),
        op.slope(H).alias("entropy_slope"),
        op.decayed(H, 4).alias("decayed_entropy_4"),
        op.decayed(S, 2).alias("decayed_surprisal_2"),
        op.decayed(S, 4).alias("decayed_surprisal_4"),
        op.mean(S).alias("mean_surprisal"),
        op.rate(op.probabilities(S), lambda p: p < LOW_PROBABILITY).alias("low_prob_token_rate"),
    )


def rows() -> Iterator[Row]:
    """All features of stored answers; the floor is one pass over their values."""
    for answers in SIZES:
        traces = made_up(answers)
        yield paired(
            f"features of {answers:,} stored answers",
            lambda traces=traces: answer_features(traces),
            lambda traces=traces: answer_by_answer(traces),
            "the formulas in list.agg",
            floor=lambda traces=traces: traces.select(pl.col("surprisal", "entropy").list.sum()),
            items=answers,
            unit="answers",
            repeats=5 if answers < 1_000_000 else 1,
        )
