"""The estimators of calibrators: their labels, the default ones, and their inputs."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from tracecal.answers.record import ALSO
from tracecal.errors import InputError
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES
from tracecal.estimators.trace_inputs import Custom
from tracecal.features.features import FEATURES
from tracecal.io.log import LOGGER

MIN_LABELS = 20  # complete answers that an estimator is fitted on
# The default fits: for few labels, for more labels, and for logs without alternatives.
LOG_RIDGE, MEAN_OF_THREE, SURPRISAL_RIDGE = "log_ridge", "mean_of_three", "surprisal_ridge"

FIXED_SCORE = "fixed_score"  # ranks answers where no fit does; it gives no probability


class _Labels(dict[str, str]):
    """Labels by id; a custom estimator's label is its id."""

    def __missing__(self, name: str) -> str:
        return name


LABELS = _Labels({entry.id: entry.label for entry in OF_FILES} | {FIXED_SCORE: "the fixed score"})
# The fits that may be recommended; other variants are ablations of TRACE, in tables apart.
FITS = {
    "trace_plus",
    "entropy_sentinel",
    "trace_profile",
    "likelihood_and_length",
    "log_trace_plus",
    "log_ridge",
    "stack_of_six",
    "mean_of_three",
    "surprisal_ridge",
    LOG_RIDGE_ALSO.id,
}
ABLATIONS = {entry.id for entry in OF_FILES if entry.role == "variant"} - FITS
INPUTS = {entry.id: entry.inputs for entry in OF_FILES}


def group_of(estimator: str) -> str:
    """Return the group that `calibrate` lists an estimator in; custom ones are scores."""
    if estimator in FITS:
        return "fits"
    return "ablations" if estimator in ABLATIONS else "scores"


def inputs_with_columns(trace_inputs: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return the inputs of a fit with own columns: the trace's inputs, then the columns."""
    return [*trace_inputs, *(f"{ALSO}{name}" for name in columns)]


def choose_inputs(
    frame: pl.DataFrame, lacks: pl.Series, own_columns: Mapping[str, str], custom: Custom
) -> dict[str, list[str]]:
    """Return the inputs of each estimator that enough answers allow to compute.

    Parameters
    ----------
    frame
        All inputs of the labelled answers.
    lacks
        Why some of their traces are incomplete, for messages.
    own_columns
        The paths of the user's own columns, by name; with any, the fit that takes them is added.
    custom
        The custom estimators.

    Raises
    ------
    InputError
        If no estimator can be computed, too few answers have the own columns, or a feature has the
        name of one.
    """
    columns = set(frame.columns)
    estimators = {
        entry.id: INPUTS[entry.id] for entry in ESTIMATORS if columns.issuperset(INPUTS[entry.id])
    }
    estimators |= {name: [f"scores.{name}"] for name in custom}
    counts = {name: _count_complete(frame, inputs) for name, inputs in estimators.items()}
    left_out = [name for name, count in counts.items() if count < MIN_LABELS]
    if left_out:
        reasons = lacks.drop_nulls().unique().sort().to_list() or ["undefined"]
        names = ", ".join(left_out) if len(left_out) <= 3 else f"{len(left_out)} estimators"
        LOGGER.warning("%s left out: %s", names, "; ".join(reasons[:3]))
    if len(left_out) == len(estimators):
        raise InputError("no answer has log-probabilities: there is nothing to calibrate.")
    computable = {name: inputs for name, inputs in estimators.items() if name not in left_out}
    if own_columns:
        computable[LOG_RIDGE_ALSO.id] = _with_columns(frame, own_columns)
    return computable


def _with_columns(frame: pl.DataFrame, own_columns: Iterable[str]) -> list[str]:
    """Return the inputs of the fit with own columns: log ridge's common inputs, then the columns.

    Raises `InputError` if too few answers have the columns, or a feature has a column's name.
    """
    names = [*own_columns]
    if clashing := [name for name in names if name in FEATURES]:
        raise InputError(
            f"--also {clashing[0]}: a feature of traces has this name; choose another."
        )
    of_trace = [name for name in INPUTS[LOG_RIDGE] if frame[name].count() >= MIN_LABELS]
    columns = inputs_with_columns(of_trace, names)
    if (count := _count_complete(frame, columns)) < MIN_LABELS:
        raise InputError(
            f"{count} of {frame.height} labelled answers have a trace and "
            f"{' and '.join(names)}; at least {MIN_LABELS} are needed. Give the path of each in a "
            f"row (--also {names[0]}=PATH)."
        )
    return columns


def _count_complete(frame: pl.DataFrame, columns: Sequence[str]) -> int:
    return frame.select(pl.all_horizontal(pl.col(columns).is_not_null()).sum()).item()


def describe_dependence(columns: Iterable[str]) -> str:
    """Name what probabilities and guarantees depend on if a fit takes own columns."""
    *first_columns, last = columns
    return (
        f"{', '.join(['the trace', *first_columns])} and {last}, made as for the labelled answers"
    )
