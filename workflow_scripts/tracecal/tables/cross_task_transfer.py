"""TRACE+ against the best baseline where both are calibrated on the other tasks only."""

import polars as pl

from tracecal.tables import improved
from tracecal.tables.improved import BEST, IMPROVEMENT, TRACE_PLUS
from tracecal.tables.phrases import METRICS, NAMES, undefined
from tracecal.tables.settings import Frames, Settings, present_tasks
from tracecal.tables.words import listed
from tracecal.writers.table import Column, Table

ALONE = "The main study has results on fewer than two tasks, so no task has others to learn from."


def table(frames: Frames, settings: Settings) -> Table:
    """From `cross_task_transfer_improvements`; without a row where there is one task."""
    found = frames["cross_task_transfer_improvements"].filter(pl.col("study").is_null())
    model, present = settings.studies["main"]["model"], present_tasks(found)
    compared = improved.nothing_to_compare(settings)
    if present and not compared:
        compared = improved.explained(found.to_dicts())
    frame = improved.wide(found, "task").with_columns(
        label=pl.col("task").replace_strict(settings.tasks, return_dtype=pl.String),
        model=pl.lit(model),
        tasks=pl.lit(" ".join(present)),
    )
    return Table(
        name="cross_task_transfer",
        title=settings.title,
        caption=settings.caption,
        frame=frame.select(
            *("task", "label"),
            *improved.columns_of(BEST, TRACE_PLUS, IMPROVEMENT),
            *improved.further_columns(),
            *("model", "tasks"),
        ),
        columns=_columns(),
        emphasis=improved.BOLD,
        notes=(
            *([*settings.absent_tasks("main", present), *compared] if present else [ALONE]),
            *(
                f"{NAMES[metric]} undefined and left out: {listed(where)}."
                for metric in METRICS
                if (where := undefined(found, metric, settings.tasks))
            ),
        ),
        wide=False,
    )


def _columns() -> tuple[Column, ...]:
    sides = {
        metric: improved.side_columns(
            metric, [(NAMES[metric], "Best Non-TRACE"), (NAMES[metric], "TRACE+")]
        )
        for metric in METRICS
    }
    return (
        Column(("label",), "Target", align="left"),
        *(sides[metric][place] for place in (0, 1) for metric in METRICS),
        *(improved.gain_column(metric, f"Δ{NAMES[metric]}", "Gain") for metric in METRICS),
    )
