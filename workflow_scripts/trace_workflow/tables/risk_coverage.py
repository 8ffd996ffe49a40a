"""Thresholds on TRACE+ that guarantee the error rate of what they keep, for each pair."""

from collections.abc import Sequence

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.captions import listed
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import ABSENT, Column, Table, number

NONE = "none"
QUANTITIES = ("threshold", "coverage", "error", "kept", "enough", "reason")


def table(frames: Frames, settings: Settings) -> Table:
    """From `risk_coverage` and `accuracy`: a row per model and task, QUANTITIES for each rate.

    Rates that no threshold guarantees are in the CSV and in a note alone, unless all are such.
    """
    thresholds = frames["risk_coverage"]
    rates = sorted(set(thresholds["error_rate"]))
    certified = set(thresholds.drop_nulls("threshold")["error_rate"])
    kept = sorted(certified) or rates
    error = (1 - pl.col("accuracy")).alias("error_of_all")
    all_answers = frames["accuracy"].select("model", "task", error)
    frame = thresholds.select("model", "task", "groups", "n").unique()
    frame = frame.join(all_answers, on=["model", "task"], how="left")
    for rate in rates:
        named = [pl.col(name).alias(f"{name}_{rate:g}") for name in QUANTITIES]
        own = thresholds.filter(error_rate=rate).select("model", "task", *named)
        frame = frame.join(own, on=["model", "task"])
    frame = frame.with_columns(task_label=pl.col("task").replace_strict(settings.tasks))
    return Table(
        frame=frame.sort(settings.in_order(), "task").select(
            *("model", "task", "task_label", "groups", "n", "error_of_all"),
            *(f"{name}_{rate:g}" for rate in rates for name in QUANTITIES),
        ),
        columns=(
            Column(("task_label",), "Task", align="left"),
            Column(("groups",), "Groups"),
            Column(("n",), "n"),
            Column(("error_of_all",), "Error of all"),
            *(column for rate in kept for column in _columns(rate)),
        ),
        section=pl.col("model"),
        titles=settings.models,
        footnotes=_footnotes(thresholds, rates, kept),
        notes=tuple(notes.incomplete(notes.rows(frames, settings), settings)),
    )


def _columns(rate: float) -> tuple[Column, ...]:
    group, names = (
        f"Error rate ≤ {rate:g}",
        {name: f"{name}_{rate:g}" for name in QUANTITIES},
    )
    enough = pl.format(f"{NONE} ({{}})", names["enough"]).fill_null(pl.lit(NONE))
    threshold = pl.col(names["threshold"])
    text = threshold.map_elements(lambda value: number(value, 3), return_dtype=pl.String)
    printed = pl.when(threshold.is_null()).then(enough).otherwise(text)
    return (
        Column((names["threshold"],), "Threshold", group, printed=printed),
        Column((names["coverage"],), "Coverage", group),
        Column((names["error"],), "Error", group, added=True),
    )


def _footnotes(
    thresholds: pl.DataFrame, rates: Sequence[float], kept: Sequence[float]
) -> tuple[str, ...]:
    notes = []
    if left := [f"{rate:g}" for rate in rates if rate not in kept]:
        notes.append(f"No threshold guarantees an error rate of {listed(left)} anywhere.")
    if thresholds.filter(pl.col("error_rate").is_in(kept))["threshold"].null_count():
        notes.append(
            f"{NONE} (m): no threshold guarantees this rate with these answers; if more groups "
            "are like them, m will do (no m: not even 14 times as many). The CSV says why. "
            f"{ABSENT}: nothing kept."
        )
    return tuple(notes)
