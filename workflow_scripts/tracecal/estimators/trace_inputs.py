"""The inputs of the estimators that need the trace of an answer alone."""

from collections.abc import Iterable, Mapping

import polars as pl

from tracecal.answers.own_columns import ALSO, own_column
from tracecal.errors import InputError
from tracecal.estimators import entropy, likelihood, trace, trajectory
from tracecal.features.features import FEATURES, OF_ENTROPY, answer_features

# Estimators of a user's own by id: expressions over OF_TRACE and all features.
Custom = Mapping[str, pl.Expr]
NO_CUSTOM: Custom = {}
OF_TRACE = ("example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy")
# The estimators that need only a trace.
OF_TRACES = likelihood.SCORES | entropy.SCORES | trajectory.SCORES
OF_FEATURES = trace.SCORES
KNOWN = (
    *(f"features.{name}" for name in FEATURES),
    *(f"scores.{name}" for name in (*OF_TRACES, *OF_FEATURES)),
)
# Those whose values depend on the entropies.
NEED_ENTROPY = {
    *(f"features.{name}" for name in OF_ENTROPY),
    *(f"scores.{name}" for name, of in OF_TRACES.items() if "entropy" in of.meta.root_names()),
    *(
        f"scores.{name}"
        for name, of in OF_FEATURES.items()
        if OF_ENTROPY.intersection(of.meta.root_names())
    ),
}


def need_entropy(names: Iterable[str]) -> bool:
    """Whether some of these inputs depend on the entropies, as custom ones are taken to do."""
    return any(
        name in NEED_ENTROPY or (name not in KNOWN and not name.startswith(ALSO)) for name in names
    )


def inputs(
    answers: pl.DataFrame, names: Iterable[str] = KNOWN, custom: Custom = NO_CUSTOM
) -> pl.DataFrame:
    """`example_id` and the inputs `names`, Float64, of answers with `surprisal` and `entropy`; of
    `custom` estimators these are their scores, and of a user's own columns their values.

    Null where undefined or where `surprisal` or `entropy`, if needed, is null.
    """
    names = list(names)
    frame = answers.select(
        "example_id",
        *(
            OF_TRACES[name].alias(f"scores.{name}")
            for name in OF_TRACES
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
            **{f"scores.{name}": of for name, of in OF_FEATURES.items()}
        )
        own = {name: score for name, score in custom.items() if f"scores.{name}" in names}
        rows = answers.select(OF_TRACE).hstack(features.select([*FEATURES])) if own else features
        of_own = scored(rows, own).rename({name: f"scores.{name}" for name in own})
        frame = frame.hstack(of_own.drop("example_id"))
        renamed = features.rename({name: f"features.{name}" for name in FEATURES})
        frame = frame.hstack(renamed.drop("example_id"))
    numbers = pl.col(names).cast(pl.Float64)
    return frame.select("example_id", pl.when(numbers.is_finite()).then(numbers))


def scored(rows: pl.DataFrame, custom: Custom) -> pl.DataFrame:
    """`example_id` and a Float64 column for each estimator, of rows with OF_TRACE and features.

    Raises `InputError` where an expression does not work on these columns.
    """
    try:
        scores = {name: score.cast(pl.Float64) for name, score in custom.items()}
        return rows.select("example_id", **scores)
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise InputError(
            f"the scores of {', '.join(custom)} cannot be computed "
            f"({str(error).splitlines()[0]}); columns are {', '.join(rows.columns)}."
        ) from error
