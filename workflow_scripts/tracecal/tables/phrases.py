"""Sentences and columns that several tables share."""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.tables.answered import FEWER, Fewer, fewer_in
from tracecal.tables.rows import PRINTED
from tracecal.tables.settings import Entry, Labels, Settings
from tracecal.tables.words import listed, note
from tracecal.writers.table import Better, Column

DEBIASED = "ece_debiased"
NAMES = {
    "brier": "Brier",
    "ece": "ECE",
    DEBIASED: "ECE (debiased)",
    "auroc": "AUROC",
    "auroc_calibrated": "AUROC (cal.)",
}
BETTER: dict[str, Better] = {
    "brier": "lower",
    "ece": "lower",
    "auroc": "higher",
    "auroc_calibrated": "higher",
}
METRICS = ("brier", "auroc")
# Where a win is claimed, the AUROC of calibrated probabilities is given beside that of raw scores.
CLAIMED = (*METRICS, "auroc_calibrated")
DIRECTION = (
    "AUROC ranks by the raw score where an estimator has one, as the paper does; the direction of "
    "TRACE+ is fitted. AUROC (cal.) ranks by every estimator's calibrated probability, whose "
    "direction is fitted for all alike: only a win there too cannot be due to the direction."
)
DEBIASED_IS = (
    "ECE (debiased): less what exact probabilities would have on as many answers in the same bins."
)
PARTLY = "†"
LEFT_OUT = (
    f"{PARTLY} Undefined in splits whose answers are all correct, all wrong or all without a "
    "score, which the mean leaves out"
)
BEAMS = "Beam scores read all beams of a search from the same prompt, K = {} beams"
# Flores et al. 2025: of two beams all three are functions of the difference of their scores.
ALIKE = ", of which Beam-Ratio, Beam-TailThinness and Beam Entropy order answers alike"
BEST_OF_COLUMN = (
    "Bold: best of the column; underlined: second best; ties, as printed, share the mark."
)
RISK = (
    "A token's risk is its entropy (nats), mean risk its average over the answer; the spike gap is "
    "how far the mean of its most uncertain window of four tokens exceeds that average."
)


def beam_notes(entries: Sequence[Entry], settings: Settings) -> list[str]:
    """How many beams the scores of beams among `entries` read; from `settings.more`, 'beams'."""
    if not any(entry.family == "beam" for entry in entries):
        return []
    beams = settings.more["beams"]
    return [f"{BEAMS.format(beams)}{ALIKE if beams == 2 else ''}."]


def method(
    table: str, entries: Sequence[Entry] = (), missing: Fewer | None = None, heading: str = "Method"
) -> Column:
    """The column of estimators' labels, as `table` prints them.

    Estimators in `entries` are cited where they have a source, those `missing` answers marked.
    """
    cited = {e.id: e.citation for e in entries if e.citation and e.role not in ("trace", "variant")}
    cite = pl.col("estimator").replace_strict(cited, default=None, return_dtype=pl.String)
    return Column(
        ("label",),
        heading,
        align="left",
        printed=named(table),
        cite=cite if cited else None,
        mark=unscored(missing, "estimator"),
    )


def named(table: str, estimator: str = "estimator", label: str = "label") -> pl.Expr:
    """The labels of the column `label`, or what `table` calls those estimators."""
    words = PRINTED.get(table, {})
    own = pl.col(estimator).replace_strict(words, default=None, return_dtype=pl.String)
    return pl.coalesce(own, label)


def unscored(missing: Fewer | None, estimator: str, *scope: str) -> pl.Expr:
    """Marks rows whose estimator is `missing` answers; columns as in `fewer_in`."""
    return marked((fewer_in(missing or {}, estimator, *scope), FEWER))


def partly(key: str) -> pl.Expr:
    """Marks values that are undefined in some splits, which their mean leaves out."""
    return marked((pl.col(f"{key}_undefined_splits") > 0, PARTLY))


def partly_note(
    parts: Mapping[str, pl.DataFrame], tasks: Labels, metrics: Sequence[str] = METRICS
) -> list[str]:
    """Explains that mark, from averages of single tasks; `parts` names what each frame is about."""
    named = [
        f"{NAMES[metric]}{part} on {listed(where)}"
        for part, averages in parts.items()
        for metric in metrics
        if (where := undefined(averages, metric, tasks))
    ]
    return note(LEFT_OUT, named)


def marked(*marks: tuple[pl.Expr, str]) -> pl.Expr:
    """The marks whose conditions a row meets, joined."""
    return pl.concat_str(
        pl.when(condition).then(pl.lit(mark)).otherwise(pl.lit("")) for condition, mark in marks
    )


def undefined(averages: pl.DataFrame, metric: str, tasks: Labels) -> list[str]:
    """The tasks on which `metric` is undefined in some splits, with the largest number of them."""
    counts = (
        averages.filter(metric=metric)
        .drop_nulls("task")
        .group_by("task")
        .agg(pl.col("undefined", "splits").max())
        .filter(pl.col("undefined") > 0)
        .sort("task")
    )
    return [f"{tasks[task]} ({n} of {splits} splits)" for task, n, splits in counts.iter_rows()]


def by(frame: pl.DataFrame, *keys: str) -> Mapping[tuple, dict]:
    """The rows of a frame by their keys."""
    return {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}


def summaries(averages: Mapping[str, Mapping]) -> dict[str, object]:
    """Columns of a row: the means by their name, then their `_sd` and `_undefined_splits`.

    The average of an estimator that has none is an empty mapping.
    """
    ends = {"": ("mean", None), "_sd": ("sd", None), "_undefined_splits": ("undefined", 0)}
    return {
        f"{name}{end}": average.get(key, default)
        for end, (key, default) in ends.items()
        for name, average in averages.items()
    }


def frame_of(rows: Sequence[Mapping]) -> pl.DataFrame:
    """A frame of rows with the same keys; a column without any value is numeric."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.cast({pl.Null: pl.Float64})
