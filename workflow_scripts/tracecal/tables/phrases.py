"""Sentences and columns that several tables share."""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.tables.settings import Entry, Labels
from tracecal.writers.table import Better, Column

BETTER: dict[str, Better] = {
    "brier": "lower",
    "ece": "lower",
    "nll": "lower",
    "aurc": "lower",
    "auroc": "higher",
    "auroc_calibrated": "higher",
}
NAMES = {
    "brier": "Brier",
    "ece": "ECE",
    "nll": "NLL",
    "aurc": "AURC",
    "auroc": "AUROC",
    "auroc_calibrated": "AUROC (cal.)",
}
METRICS = ("brier", "auroc")
# Where a win is claimed the AUROC of calibrated probabilities stands beside that of raw scores.
CLAIMED = (*METRICS, "auroc_calibrated")
DIRECTION = (
    "AUROC ranks by the raw score where an estimator has one, as the paper does: on a task where a "
    "score runs the wrong way it stays below 0.5, while TRACE+ is fitted and takes its direction "
    "from the calibration labels. AUROC (cal.) ranks by every estimator's calibrated probability, "
    "whose direction is fitted for all alike: only what also wins there is no matter of the sign."
)
BEST_OF_COLUMN = (
    "Bold: best of the column; underlined: second best; values that print alike share the mark."
)
RISK = (
    "A token's risk is its entropy (nats), mean risk its average over the answer; the spike gap is "
    "by how much the answer's most uncertain window of four tokens exceeds that average."
)


def method(entries: Sequence[Entry] = ()) -> Column:
    """The column of estimators' labels, cited where they have a source."""
    cited = {e.id: e.citation for e in entries if e.citation and e.role not in ("trace", "variant")}
    cite = pl.col("estimator").replace_strict(cited, default=None, return_dtype=pl.String)
    return Column(("label",), "Method", align="left", cite=cite if cited else None)


def marked(*marks: tuple[pl.Expr, str]) -> pl.Expr:
    """The marks whose conditions a row meets, one behind the other."""
    return pl.concat_str(
        pl.when(condition).then(pl.lit(mark)).otherwise(pl.lit("")) for condition, mark in marks
    )


def undefined(averages: pl.DataFrame, metric: str, tasks: Labels) -> list[str]:
    """The tasks on which `metric` is undefined in some splits, with how many at the worst."""
    counts = (
        averages.filter(metric=metric)
        .drop_nulls("task")
        .group_by("task")
        .agg(pl.col("undefined").max(), pl.col("splits").max())
        .filter(pl.col("undefined") > 0)
        .sort("task")
    ).select("task", "undefined", "splits")
    return [f"{tasks[task]} ({n} of {splits} splits)" for task, n, splits in counts.iter_rows()]


def by(frame: pl.DataFrame, *keys: str) -> Mapping[tuple, dict]:
    """The rows of a frame by their keys."""
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def frame_of(rows: Sequence[Mapping]) -> pl.DataFrame:
    """Rows with the same keys as a frame; a column without any value holds numbers."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.cast({pl.Null: pl.Float64})
