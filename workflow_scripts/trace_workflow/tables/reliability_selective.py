"""Calibration and selective prediction on the main study's predictions, pooled over tasks."""

from trace_workflow.analyses.reliability_selective import COVERAGES
from trace_workflow.tables import notes
from trace_workflow.tables.captions import note
from trace_workflow.tables.notes import (
    BEST_OF_COLUMN,
    BETTER,
    LEFT_OUT,
    NAMES,
    frame_of,
    method,
    partly,
    rows_by,
)
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table, ranked

RISKS = {f"risk_at_{percent}": f"R@{percent}" for percent in COVERAGES}
METRICS = {metric: NAMES[metric] for metric in ("ece", "brier", "auroc")} | RISKS


def table(frames: Frames, settings: Settings) -> Table:
    """From `reliability_selective_averages`: a row per estimator."""
    averages = frames["reliability_selective_averages"]
    means = rows_by(averages, "estimator", "metric")
    present = [counted["task"] for counted in notes.rows(frames, settings)]
    rows = []
    for entry in settings.estimators:
        own = {metric: means.get((entry.id, metric), {}) for metric in METRICS}
        row = {"estimator": entry.id, "label": entry.label}
        row |= {metric: average.get("mean") for metric, average in own.items()}
        row |= {f"{metric}_sd": average.get("sd") for metric, average in own.items()}
        rows.append(row | {"auroc_undefined_splits": own["auroc"].get("undefined", 0)})
    columns = [
        Column((m,), label, better=BETTER.get(m, "lower"), mark=partly(m) if m == "auroc" else None)
        for m, label in METRICS.items()
    ]
    areas = averages.filter(metric="auroc")
    undefined, splits = areas["undefined"].max(), areas["splits"].max()
    missing = notes.fewer(frames, settings)
    return Table(
        frame=frame_of(rows).with_columns(**settings.scope(present)),
        columns=(method("reliability_selective", missing=missing), *ranked(columns)),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *settings.absent_tasks("main", present),
            *note(LEFT_OUT, [f"{undefined} of {splits} splits"] if undefined else []),
            *notes.footnotes(missing, settings),
        ),
        notes=tuple(notes.elsewhere(frames, settings)),
    )
