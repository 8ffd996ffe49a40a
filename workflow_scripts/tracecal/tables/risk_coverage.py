"""Thresholds on TRACE+ that promise an error rate among the answers kept, for each pair."""

import polars as pl

from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import ABSENT, Column, Table, number

NONE = "none"
FOUND = ("threshold", "coverage", "error", "kept", "enough")


def table(frames: Frames, settings: Settings) -> Table:
    """From `risk_coverage`: a row per model and task, FOUND of each wished error rate."""
    found = frames["risk_coverage"]
    rates = sorted(set(found["error_rate"]))
    frame = found.select("model", "task", "groups", "n").unique().sort("model", "task")
    for rate in rates:
        own = found.filter(pl.col("error_rate") == rate)
        named = [pl.col(name).alias(f"{name}_{rate:g}") for name in FOUND]
        frame = frame.join(own.select("model", "task", *named), on=["model", "task"])
    frame = frame.with_columns(task_label=pl.col("task").replace_strict(settings.tasks))
    return Table(
        name="risk_coverage",
        title=settings.title,
        caption=settings.caption,
        frame=frame.sort("model", "task").select(
            *("model", "task", "task_label", "groups", "n"),
            *(f"{name}_{rate:g}" for rate in rates for name in FOUND),
        ),
        columns=(
            Column(("task_label",), "Task", align="left"),
            Column(("groups",), "Groups"),
            Column(("n",), "n"),
            *(column for rate in rates for column in _columns(rate)),
        ),
        section=pl.col("model"),
        titles=settings.models,
        notes=_notes(found),
    )


def _columns(rate: float) -> tuple[Column, ...]:
    group, names = f"Error rate ≤ {rate:g}", {name: f"{name}_{rate:g}" for name in FOUND}
    enough = pl.format(f"{NONE} ({{}})", names["enough"]).fill_null(pl.lit(NONE))
    threshold = pl.col(names["threshold"])
    printed = pl.when(threshold.is_null()).then(enough).otherwise(_text(threshold))
    return (
        Column((names["threshold"],), "Threshold", group, printed=printed),
        Column((names["coverage"],), "Coverage", group),
        Column((names["error"],), "Error", group),
    )


def _text(values: pl.Expr) -> pl.Expr:
    return values.map_elements(lambda value: number(value, 3), return_dtype=pl.String)


def _notes(found: pl.DataFrame) -> tuple[str, ...]:
    none = (
        f"{NONE} (m): no threshold can promise this rate with these answers; about m groups like "
        f"them would have been enough (no m: not even 14 times as many). {ABSENT}: nothing kept."
    )
    return (none,) * (found["threshold"].null_count() > 0)
