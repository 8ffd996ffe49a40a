"""TRACE's ranking with the tokens of an answer in their order, and in random orders."""

from collections.abc import Mapping, Sequence

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.captions import count, note
from trace_workflow.tables.notes import LEFT_OUT, PARTLY, frame_of, marked, rows_by
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table

SIDES = ("original", "shifted")
AVERAGE = "average"
SDS = 2
BOLD = f"Bold: the higher AUROC, where the two differ by more than {SDS} s.d. over draws."
Averages = Mapping[tuple[str | None, str, str], Mapping]


def table(frames: Frames, settings: Settings) -> Table:
    """From `position_shift`: a row per task, and their average."""
    analysis = frames["position_shift"]
    present, averages = present_tasks(analysis), rows_by(analysis, "task", "quantity", "over")
    drawn = averages[None, "shifted", "draw"]["repetitions"]
    frame = frame_of([_row(task, averages, settings) for task in (*present, None)])
    return Table(
        frame=frame.with_columns(**settings.scope(present)),
        columns=_columns(),
        section=(pl.col("task") == AVERAGE).cast(pl.String),
        emphasis=BOLD,
        footnotes=(
            *settings.absent_tasks("main", present),
            *_undefined(averages, present, settings),
        ),
        notes=(
            f"Position-shifted: the mean of {count(drawn, 'random draw')}.",
            *notes.elsewhere(frames, settings),
        ),
    )


def _row(task: str | None, averages: Averages, settings: Settings) -> dict:
    difference, drawn = averages[task, "difference", "split"], averages[task, "difference", "draw"]
    sides = {side: averages[task, side, "split"] for side in SIDES}
    return {
        "task": task or AVERAGE,
        "label": settings.tasks[task] if task else "Average",
        **{side: average["mean"] for side, average in sides.items()},
        "difference": difference["mean"],
        "difference_sd": difference["sd"],
        "difference_draws_sd": drawn["sd"],
        **{f"{side}_sd": average["sd"] for side, average in sides.items()},
        "undefined_splits": difference["undefined"],
    }


def _columns() -> tuple[Column, ...]:
    between = "Shifted minus original"
    undefined = marked((pl.col("undefined_splits") > 0, PARTLY))
    return (
        Column(("label",), "Task", align="left"),
        *(
            Column((side,), label, better="higher", emphasis=_bold(side), mark=undefined)
            for side, label in zip(SIDES, ("Original", "Position-shifted"), strict=True)
        ),
        Column(("difference",), "Mean", between, signed=True, added=True),
        Column(("difference_sd",), "s.d., splits", between, added=True),
        Column(("difference_draws_sd",), "s.d., draws", between, added=True),
    )


def _bold(side: str) -> pl.Expr:
    """Marks the higher AUROC, where the two differ by more than random orders do."""
    original, shifted = map(pl.col, SIDES)
    apart = (shifted - original).abs() > SDS * pl.col("difference_draws_sd")
    return pl.when(apart & (pl.col(side) == pl.max_horizontal(SIDES))).then(pl.lit("best"))


def _undefined(averages: Averages, present: Sequence[str], settings: Settings) -> list[str]:
    """A note on the splits in which a task has no AUROC."""
    named = [
        f"{settings.tasks[task]} "
        f"({average['undefined']} of {count(average['repetitions'], 'split')})"
        for task in present
        if (average := averages[task, "original", "split"])["undefined"]
    ]
    return note(LEFT_OUT, named)
