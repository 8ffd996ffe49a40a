"""The inputs of estimators for answers read from files, by the workflow's own code.

Columns are named as in the calibration protocol, `features.<name>` and `scores.<estimator>`.
"""

import polars as pl

from tracecal.estimate import entropy, likelihood, trace, trajectory
from tracecal.operate.features import answer_features
from tracecal.registry import LIKELIHOOD, OPERATORS, TRACE_PLUS_FEATURES

# The estimators that need only a trace.
OF_TRACES = likelihood.SCORES | entropy.SCORES | trajectory.SCORES
OF_FEATURES = trace.SCORES
# Linear in the entropies. Inputs in `MONOTONE` rise or fall with each entropy, or do not depend on
# them. Others have no bounds here.
SLOPES = ("features.entropy_slope", "scores.entropy_slope")
MONOTONE = {
    *(f"features.{name}" for name in (*TRACE_PLUS_FEATURES, *OPERATORS, *LIKELIHOOD)),
    *(f"scores.{name}" for name in (*likelihood.SCORES, *trace.SCORES, "token_prob_slope")),
    *(f"scores.{name}_entropy" for name in ("mean_token", "max_token", "first_k", "last_k")),
    "scores.windowed_entropy",
} - {*SLOPES}

LOW, HIGH = pl.col("entropy_lower"), pl.col("entropy_upper")
HALF = pl.col("entropy").list.len() // 2
REST = pl.col("entropy").list.len() - HALF


def inputs(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and all inputs, Float64, of answers with `surprisal` and `entropy`.

    Null where undefined or where `surprisal` or `entropy`, if needed, is null.
    """
    features = answer_features(answers)
    scored = answers.select("example_id", **OF_TRACES)
    of_features = features.select("example_id", **OF_FEATURES)
    parts = (("features", features), ("scores", scored), ("scores", of_features))
    frame = answers.select("example_id")
    for folder, part in parts:
        columns = part.select("example_id", pl.exclude("example_id").name.prefix(f"{folder}."))
        frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    numbers = pl.exclude("example_id").cast(pl.Float64)
    return frame.with_columns(pl.when(numbers.is_finite()).then(numbers))


def input_bounds(answers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The smallest and largest values of `inputs`, with each entropy between its bounds.

    An answer without bounds has exact entropies. Null where no bound is known: for an input that
    is not monotone in the entropies, or without upper bounds of the entropies.
    """
    bounded = answers.with_columns(
        entropy_lower=pl.coalesce("entropy_lower", "entropy"),
        entropy_upper=pl.coalesce("entropy_upper", "entropy"),
    )
    # A slope is steepest where the entropies before the middle are at one bound and those after it
    # at the other; the middle one does not matter.
    at = {
        "low": LOW,
        "high": HIGH,
        "rising": LOW.list.head(HALF).list.concat(HIGH.list.tail(REST)),
        "falling": HIGH.list.head(HALF).list.concat(LOW.list.tail(REST)),
    }
    bounds = {name: inputs(bounded.with_columns(entropy=lists)) for name, lists in at.items()}
    without = pl.when(pl.col("entropy_upper").is_null()).then("entropy")
    exact = inputs(answers.with_columns(entropy=without))
    least, most = {}, {}
    for name in (*SLOPES, *MONOTONE):
        ends = ("falling", "rising") if name in SLOPES else ("low", "high")
        pair = pl.DataFrame([bounds[end][name].alias(end) for end in ends])
        least[name], most[name] = pair.min_horizontal(), pair.max_horizontal()
    return exact.with_columns(**least), exact.with_columns(**most)
