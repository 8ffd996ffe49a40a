"""The main study's averages at several calibration sizes, size by size."""

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.captions import PRINTED
from trace_workflow.tables.notes import (
    BETTER,
    METRICS,
    NAMES,
    frame_of,
    partly,
    partly_note,
    rows_by,
    summaries,
)
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table, better_of
from tracecal.estimators.entry import Entry

SHARE = "calibration_share"
NAME = "calibration_size"


def table(frames: Frames, settings: Settings) -> Table:
    """From `calibration_size_averages`: a row per size and metric, a column per estimator."""
    chosen = settings.select(frames["calibration_size_averages"], "main")
    present, shares = present_tasks(chosen), sorted(set(chosen[SHARE]))
    shown = [entry for entry in settings.estimators if entry.id in set(chosen["estimator"])]
    missing = notes.fewer(frames, settings)
    means = rows_by(chosen.filter(study="main"), SHARE, "metric", "estimator")
    rows = [
        {SHARE: share, "metric": metric}
        | summaries({entry.id: means.get((share, metric, entry.id), {}) for entry in shown})
        for share in shares
        for metric in METRICS
    ]
    direction = pl.col("metric").replace_strict(BETTER)
    size = pl.col(SHARE).map_elements(percent, return_dtype=pl.String)
    parts = {f" at {percent(share)}": chosen.filter(calibration_share=share) for share in shares}
    once = pl.when(pl.col(SHARE).is_first_distinct()).then(size).otherwise(pl.lit(""))
    return Table(
        frame=frame_of(rows).with_columns(**settings.scope(present)),
        columns=(
            Column((SHARE,), "Calib.", align="left", printed=once),
            Column(("metric",), "Metric", align="left", printed=pl.col("metric").replace(NAMES)),
            *better_of([_column(entry, missing) for entry in shown], direction),
        ),
        section=pl.col(SHARE),
        emphasis="Bold: best of the row; ties, as printed, share the mark.",
        footnotes=(
            *settings.absent_tasks("main", present),
            *partly_note(parts, settings.tasks),
            *notes.footnotes(missing, settings),
        ),
        notes=(
            "Brier: lower is better; AUROC: higher is better.",
            *notes.elsewhere(frames, settings, shares),
        ),
    )


def _column(entry: Entry, missing: notes.Fewer) -> Column:
    label = PRINTED[NAME].get(entry.id, entry.label)
    mark = notes.FEWER if any(entry.id == estimator for *_, estimator in missing) else ""
    return Column((entry.id,), label, heading_mark=mark, mark=partly(entry.id))


def percent(share: float) -> str:
    return f"{100 * share:.3g}%"
