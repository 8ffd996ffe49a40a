"""Bounds of inputs, from bounds of the entropies."""

from collections.abc import Iterable

import polars as pl

from tracecal.estimators.trace_inputs import KNOWN, NO_CUSTOM, Custom, inputs
from tracecal.features.statistics import STATISTICS

# Linear in the entropies.
SLOPES = ("features.entropy_slope", "scores.entropy_slope")
# Neither linear nor monotone in each entropy, so without bounds here. All others rise or fall with
# each entropy, as a test checks, or do not depend on them.
UNBOUNDED = {*(f"features.{name}" for name in STATISTICS), "scores.entropy_variance"}
LOW, HIGH = pl.col("entropy_lower"), pl.col("entropy_upper")
HALF = pl.col("entropy").list.len() // 2
REST = pl.col("entropy").list.len() - HALF


def input_bounds(
    answers: pl.DataFrame, names: Iterable[str] = KNOWN, custom: Custom = NO_CUSTOM
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The smallest and largest values of `inputs`, with each entropy between its bounds.

    An answer without bounds has exact entropies. Null where no bound is known: for an input of
    UNBOUNDED or a custom one, or without upper bounds of the entropies.
    """
    names = list(names)
    bounded = answers.with_columns(
        entropy_lower=pl.coalesce("entropy_lower", "entropy"),
        entropy_upper=pl.coalesce("entropy_upper", "entropy"),
    )
    known = [name for name in names if name in KNOWN]
    # A slope is steepest where the entropies before the middle are at one bound and those after it
    # at the other; the middle one does not matter.
    at = {
        "low": LOW,
        "high": HIGH,
        "rising": LOW.list.head(HALF).list.concat(HIGH.list.tail(REST)),
        "falling": HIGH.list.head(HALF).list.concat(LOW.list.tail(REST)),
    }
    bounds = {at: inputs(bounded.with_columns(entropy=lists), known) for at, lists in at.items()}
    without = pl.when(pl.col("entropy_upper").is_null()).then("entropy")
    exact = inputs(answers.with_columns(entropy=without), names, custom)
    least, most = {}, {}
    for name in known:
        if name in UNBOUNDED:
            continue
        ends = ("falling", "rising") if name in SLOPES else ("low", "high")
        pair = pl.DataFrame([bounds[end][name].alias(end) for end in ends])
        least[name], most[name] = pair.min_horizontal(), pair.max_horizontal()
    return exact.with_columns(**least), exact.with_columns(**most)
