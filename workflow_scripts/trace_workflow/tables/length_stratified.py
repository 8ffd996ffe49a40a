"""The main study's averages on short, medium and long answers."""

from trace_workflow.analyses.length_stratified import STRATA
from trace_workflow.tables import notes
from trace_workflow.tables.notes import (
    METRICS,
    frame_of,
    method,
    partly,
    partly_note,
    rows_by,
    summaries,
)
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table

KEYS = tuple((stratum, metric) for stratum in STRATA for metric in METRICS)


def table(frames: Frames, settings: Settings) -> Table:
    """From `length_stratified_averages`: a row per estimator."""
    chosen = settings.select(frames["length_stratified_averages"], "main")
    present, ids = present_tasks(chosen), set(chosen["estimator"])
    means = rows_by(chosen.filter(study="main"), "estimator", "stratum", "metric")
    rows = [
        {"estimator": entry.id, "label": entry.label}
        | summaries({f"{s}_{m}": means.get((entry.id, s, m), {}) for s, m in KEYS})
        for entry in settings.estimators
        if entry.id in ids
    ]
    parts = {f" of {stratum} answers": chosen.filter(stratum=stratum) for stratum in STRATA}
    missing = notes.fewer(frames, settings)
    return Table(
        frame=frame_of(rows).with_columns(**settings.scope(present)),
        columns=(
            method("length_stratified", missing=missing),
            *(
                Column(
                    tuple(f"{stratum}_{metric}" for metric in METRICS),
                    stratum.capitalize(),
                    mark=partly(f"{stratum}_auroc"),
                )
                for stratum in STRATA
            ),
        ),
        footnotes=(
            *settings.absent_tasks("main", present),
            *partly_note(parts, settings.tasks),
            *notes.footnotes(missing, settings),
        ),
        notes=tuple(notes.elsewhere(frames, settings)),
    )
