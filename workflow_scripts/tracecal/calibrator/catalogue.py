"""The estimators of calibrators: their labels, the default ones, and their inputs."""

from collections.abc import Iterable

from tracecal.answers.record import ALSO
from tracecal.estimators.registry import LOG_RIDGE_ALSO, OF_FILES

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


def group_of(estimator: str) -> str:
    """Return the group that `calibrate` lists an estimator in; custom ones are scores."""
    if estimator in FITS:
        return "fits"
    return "ablations" if estimator in ABLATIONS else "scores"


def inputs_with_columns(trace_inputs: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Return the inputs of a fit with own columns: the trace's inputs, then the columns."""
    return [*trace_inputs, *(f"{ALSO}{name}" for name in columns)]


def describe_dependence(columns: Iterable[str]) -> str:
    """Name what probabilities and guarantees depend on if a fit takes own columns."""
    *first_columns, last = columns
    return (
        f"{', '.join(['the trace', *first_columns])} and {last}, made as for the labelled answers"
    )
