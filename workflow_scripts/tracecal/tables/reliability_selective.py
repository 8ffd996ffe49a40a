"""Calibration and selective prediction on the main study's predictions, pooled over tasks."""

from tracecal.analyse.reliability_selective import COVERAGES
from tracecal.tables.phrases import BEST_OF_COLUMN, BETTER, NAMES, by, frame_of, method
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Column, Table, ranked

RISKS = {f"risk_at_{percent}": f"R@{percent}" for percent in COVERAGES}
METRICS = {metric: NAMES[metric] for metric in ("ece", "brier", "auroc")} | RISKS


def table(frames: Frames, settings: Settings) -> Table:
    """From `reliability_selective_averages`: a row per estimator."""
    averages = frames["reliability_selective_averages"]
    means, found = by(averages, "estimator", "metric"), set(averages["estimator"])
    model, tasks = averages.select("model", "tasks").row(0)
    rows = []
    for entry in settings.estimators:
        own = {metric: means.get((entry.id, metric), {}) for metric in METRICS}
        row = {"estimator": entry.id, "label": entry.label}
        row |= {metric: one.get("mean") for metric, one in own.items()}
        row |= {f"{metric}_sd": one.get("sd") for metric, one in own.items()}
        rows += [row | {"model": model, "tasks": tasks}] if entry.id in found else []
    columns = [Column((m,), label, better=BETTER.get(m, "lower")) for m, label in METRICS.items()]
    areas = averages.filter(metric="auroc")
    undefined, splits = areas["undefined"].max(), areas["splits"].max()
    partly = f"AUROC undefined and left out of the mean where there is one class ({undefined} of "
    return Table(
        name="reliability_selective",
        title=settings.title,
        caption=settings.caption,
        frame=frame_of(rows),
        columns=(method(), *ranked(columns)),
        emphasis=BEST_OF_COLUMN,
        notes=(
            *settings.absent_tasks("main", tasks.split()),
            *([f"{partly}{splits} splits)."] if undefined else []),
        ),
        wide=False,
    )
