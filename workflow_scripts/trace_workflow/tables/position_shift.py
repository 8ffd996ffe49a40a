"""TRACE's AUROC with the tokens of an answer in their order, and in random orders."""

from collections.abc import Mapping

import polars as pl

from trace_workflow.tables.marks import PARTLY, explain_partly_undefined, mark_where
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by, tasks_of
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import count

SIDES = {"original": "Original", "shifted": "Position-shifted"}
AVERAGE = "average"
SDS = 2
BOLD = f"Bold: the higher AUROC, where the two differ by more than {SDS} s.d. over draws."
ShiftAverages = Mapping[tuple[str | None, str, str], Mapping]  # by task, quantity and `over`


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per task, and their average."""
    analysis = study.frames["position_shift"]
    tasks, averages = tasks_of(analysis), rows_by(analysis, "task", "quantity", "over")
    originals = analysis.filter(quantity="original", over="split").with_columns(
        pl.lit("auroc").alias("metric"), splits="repetitions"
    )
    n_draws = averages[None, "shifted", "draw"]["repetitions"]
    scopes = tasks if len(tasks) == 1 else (*tasks, None)  # a single task is its average
    frame = frame_of([_row(task, averages, study) for task in scopes])
    return Table(
        frame=frame.with_columns(**study.scope(tasks)),
        columns=_columns(),
        section=(pl.col("task") == AVERAGE).cast(pl.String),
        emphasis=BOLD,
        footnotes=(
            *study.missing_tasks("main", tasks),
            *explain_partly_undefined({"": originals}, study.tasks, ["auroc"]),
        ),
        notes=(
            f"Position-shifted: the mean of {count(n_draws, 'random draw')}.",
            *refer_to_counts(study),
        ),
    )


def _row(task: str | None, averages: ShiftAverages, study: StudyResults) -> dict:
    by_split, by_draw = (averages[task, "difference", over] for over in ("split", "draw"))
    sides = {side: averages[task, side, "split"] for side in SIDES}
    return {
        "task": task or AVERAGE,
        "label": study.tasks[task] if task else "Average",
        **{side: average["mean"] for side, average in sides.items()},
        "difference": by_split["mean"],
        "difference_sd": by_split["sd"],
        "difference_draws_sd": by_draw["sd"],
        **{f"{side}_sd": average["sd"] for side, average in sides.items()},
        "undefined_splits": by_split["undefined"],
    }


def _columns() -> tuple[Column, ...]:
    difference = "Shifted minus original"
    undefined = mark_where((pl.col("undefined_splits") > 0, PARTLY))
    original, shifted = map(pl.col, SIDES)
    differ = (shifted - original).abs() > SDS * pl.col("difference_draws_sd")
    bold = {
        side: pl.when(differ & (pl.col(side) == pl.max_horizontal(*SIDES))).then(pl.lit("best"))
        for side in SIDES
    }
    return (
        Column(("label",), "Task", align="left"),
        *(
            Column((side,), label, better="higher", emphasis=bold[side], mark=undefined)
            for side, label in SIDES.items()
        ),
        Column(("difference",), "Mean", difference, signed=True, added=True),
        Column(("difference_sd",), "s.d., splits", difference, added=True),
        Column(("difference_draws_sd",), "s.d., draws", difference, added=True),
    )
