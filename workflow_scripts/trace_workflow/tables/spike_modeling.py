"""How well mean risk, the largest token risk and spikes predict correctness."""

from trace_workflow.tables import notes
from trace_workflow.tables.notes import (
    BEST_OF_COLUMN,
    BETTER,
    LEFT_OUT,
    NAMES,
    RISK,
    frame_of,
    partly,
    rows_by,
    summaries,
)
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table, ranked

METRICS = ("auroc", "brier")
FEATURE_SETS = {
    "mean_risk": "Mean risk",
    "max_token_risk": "Max token risk",
    "spike_gap": "Spike gap",
    "mean_risk_and_spike_gap": "Mean risk + spike gap",
    "trace_local": "TRACE local features",
}


def table(frames: Frames, settings: Settings) -> Table:
    """From `spike_modeling_averages`: a row per set of features, mean ± s.d. over splits."""
    averages = frames["spike_modeling_averages"]
    means = rows_by(averages, "features", "metric")
    model, tasks = averages.select("model", "tasks").row(0)
    rows = []
    for features in sorted({features for features, _ in means}, key=list(FEATURE_SETS).index):
        row = {"features": features, "label": FEATURE_SETS[features]}
        for metric in METRICS:
            row |= summaries({metric: means[features, metric]})
        rows.append(row | {"n": means[features, "brier"]["n"], "model": model, "tasks": tasks})
    columns = [
        Column((m, f"{m}_sd"), NAMES[m], better=BETTER[m], joint=" ± ", mark=partly(m))
        for m in METRICS
    ]
    undefined = averages["undefined"].max() > 0
    return Table(
        frame=frame_of(rows),
        columns=(Column(("label",), "Feature set", align="left"), *ranked(columns)),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *settings.absent_tasks("main", tasks.split()),
            *([f"{LEFT_OUT}."] * undefined),
        ),
        notes=(RISK, *notes.elsewhere(frames, settings, pooled=True)),
    )
