"""Inputs of the estimators that need only an answer's trace, and their bounds.

Inputs are named as in the calibration protocol: `features.<name>` and `scores.<estimator>`.
`compute_inputs(answers, names)` computes them, and `compute_bounded_inputs` their bounds, too.
"""

from collections.abc import Iterable, Mapping

import polars as pl

from tracecal.answers.record import ALSO, own_column
from tracecal.errors import InputError
from tracecal.estimators import entropy, likelihood, trace, trajectory
from tracecal.features.features import ENTROPY_FEATURES, FEATURES, answer_features
from tracecal.features.statistics import STATISTICS

# Custom estimators by id: expressions over TRACE_COLUMNS and all features.
Custom = Mapping[str, pl.Expr]
NO_CUSTOM: Custom = {}
TRACE_COLUMNS = ("example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy")
# Scores of the estimators that need only a trace: over its lists, and over its features.
LIST_SCORES = likelihood.SCORES | entropy.SCORES | trajectory.SCORES
FEATURE_SCORES = trace.SCORES
TRACE_INPUTS = (
    *(f"features.{name}" for name in FEATURES),
    *(f"scores.{name}" for name in (*LIST_SCORES, *FEATURE_SCORES)),
)
# Inputs that depend on the entropies.
ENTROPY_INPUTS = {
    *(f"features.{name}" for name in ENTROPY_FEATURES),
    *(
        f"scores.{name}"
        for name, score in LIST_SCORES.items()
        if "entropy" in score.meta.root_names()
    ),
    *(
        f"scores.{name}"
        for name, score in FEATURE_SCORES.items()
        if ENTROPY_FEATURES.intersection(score.meta.root_names())
    ),
}
# Inputs linear in the entropies.
SLOPES = ("features.entropy_slope", "scores.entropy_slope")
# Inputs neither linear nor monotone in each entropy, and so without bounds here. All others rise or
# fall with each entropy, as a test checks, or do not depend on them.
UNBOUNDED = {*(f"features.{name}" for name in STATISTICS), "scores.entropy_variance"}

LOW, HIGH = pl.col("entropy_lower"), pl.col("entropy_upper")
HALF = pl.col("entropy").list.len() // 2
REST = pl.col("entropy").list.len() - HALF


def need_entropy(names: Iterable[str]) -> bool:
    """Whether some of the inputs depend on the entropies; custom ones count as if they did.

    >>> need_entropy(["scores.min_prob"]), need_entropy(["features.mean_entropy"])
    (False, True)
    """
    return any(
        name in ENTROPY_INPUTS or (name not in TRACE_INPUTS and not name.startswith(ALSO))
        for name in names
    )


def compute_inputs(
    answers: pl.DataFrame, names: Iterable[str] = TRACE_INPUTS, custom: Custom = NO_CUSTOM
) -> pl.DataFrame:
    """Compute `example_id` and the inputs `names`, Float64, of answers with their traces.

    Inputs of `custom` estimators are their scores, and inputs of own columns their values. A value
    is missing if it is undefined, or if a needed `surprisal` or `entropy` is missing.

    >>> answers = pl.DataFrame({"example_id": ["a"], "surprisal": [[0.0]], "entropy": [[0.5]]})
    >>> compute_inputs(answers, ["scores.min_prob"])["scores.min_prob"].item()
    1.0
    """
    names = list(names)
    frame = answers.select(
        "example_id",
        *(
            score.alias(f"scores.{name}")
            for name, score in LIST_SCORES.items()
            if f"scores.{name}" in names
        ),
        *(
            own_column(name.removeprefix(ALSO)).alias(name)
            for name in names
            if name.startswith(ALSO)
        ),
    )
    if any(name not in frame.columns for name in names):
        features = answer_features(answers).with_columns(
            **{f"scores.{name}": score for name, score in FEATURE_SCORES.items()}
        )
        requested = {name: score for name, score in custom.items() if f"scores.{name}" in names}
        rows = features
        if requested:
            rows = answers.select(TRACE_COLUMNS).hstack(features.select([*FEATURES]))
        scores = compute_custom_scores(rows, requested)
        scores = scores.rename({name: f"scores.{name}" for name in requested})
        frame = frame.hstack(scores.drop("example_id"))
        renamed = features.rename({name: f"features.{name}" for name in FEATURES})
        frame = frame.hstack(renamed.drop("example_id"))
    numbers = pl.col(names).cast(pl.Float64)
    return frame.select("example_id", pl.when(numbers.is_finite()).then(numbers))


def compute_custom_scores(rows: pl.DataFrame, custom: Custom) -> pl.DataFrame:
    """Compute `example_id` and the Float64 score of each custom estimator.

    `rows` have TRACE_COLUMNS and all features. Raises `InputError` where an expression does not
    work on these columns.
    """
    try:
        scores = {name: score.cast(pl.Float64) for name, score in custom.items()}
        return rows.select("example_id", **scores)
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise InputError(
            f"the scores of {', '.join(custom)} cannot be computed "
            f"({str(error).splitlines()[0]}); columns are {', '.join(rows.columns)}."
        ) from error


def compute_bounded_inputs(
    answers: pl.DataFrame, names: Iterable[str] = TRACE_INPUTS, custom: Custom = NO_CUSTOM
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Compute the inputs `names` and their lower and upper bounds.

    Each entropy lies between its bounds; without bounds it is exact. A bound is missing where none
    is known: for an input of UNBOUNDED or a custom one, or without upper bounds of the entropies.
    """
    names = list(names)
    bounded = answers.with_columns(
        entropy_lower=pl.coalesce("entropy_lower", "entropy"),
        entropy_upper=pl.coalesce("entropy_upper", "entropy"),
    )
    trace_names = [name for name in names if name in TRACE_INPUTS]
    # A slope is steepest where the entropies before the middle are at one bound and those after it
    # at the other; the middle one does not matter.
    entropies = {
        "low": LOW,
        "high": HIGH,
        "rising": LOW.list.head(HALF).list.concat(HIGH.list.tail(REST)),
        "falling": HIGH.list.head(HALF).list.concat(LOW.list.tail(REST)),
    }
    inputs = {
        shape: compute_inputs(bounded.with_columns(entropy=lists), trace_names)
        for shape, lists in entropies.items()
    }
    exact_entropy = pl.when(pl.col("entropy_upper").is_null()).then("entropy")
    exact = compute_inputs(answers.with_columns(entropy=exact_entropy), names, custom)
    lower, upper = {}, {}
    for name in trace_names:
        if name in UNBOUNDED:
            continue
        shapes = ("falling", "rising") if name in SLOPES else ("low", "high")
        pair = pl.DataFrame([inputs[shape][name].alias(shape) for shape in shapes])
        lower[name], upper[name] = pair.min_horizontal(), pair.max_horizontal()
    values = compute_inputs(answers, names, custom)
    return values, exact.with_columns(**lower), exact.with_columns(**upper)
