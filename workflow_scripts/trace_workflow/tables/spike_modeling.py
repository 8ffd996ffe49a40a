"""How well mean risk, the largest token risk and spikes predict correctness."""

from trace_workflow.tables.marks import LEFT_OUT, mark_partly_undefined
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, RISK_NOTE
from trace_workflow.tables.ranking import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by, summary_columns
from trace_workflow.tables.table import Column, Table

METRICS = ("auroc", "brier")
FEATURE_SETS = {
    "mean_risk": "Mean risk",
    "max_token_risk": "Max token risk",
    "spike_gap": "Spike gap",
    "mean_risk_and_spike_gap": "Mean risk + spike gap",
    "trace_local": "TRACE local features",
}


def table(study: StudyResults) -> Table:
    """From `spike_modeling_averages`: a row per set of features, mean ± s.d. over splits."""
    averages = study.frames["spike_modeling_averages"]
    means = rows_by(averages, "features", "metric")
    model, tasks = averages.select("model", "tasks").row(0)
    rows = []
    for features in sorted({features for features, _ in means}, key=list(FEATURE_SETS).index):
        row = {"features": features, "label": FEATURE_SETS[features]}
        for metric in METRICS:
            row |= summary_columns({metric: means[features, metric]})
        rows.append(row | {"n": means[features, "brier"]["n"], "model": model, "tasks": tasks})
    columns = [
        Column(
            (metric, f"{metric}_sd"),
            METRIC_NAMES[metric],
            better=BETTER[metric],
            joint=" ± ",
            mark=mark_partly_undefined(metric),
        )
        for metric in METRICS
    ]
    undefined = averages["undefined"].max() > 0
    return Table(
        frame=frame_of(rows),
        columns=(Column(("label",), "Feature set", align="left"), *rank_columns(columns)),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *study.missing_tasks("main", tasks.split()),
            *([f"{LEFT_OUT}."] * undefined),
        ),
        notes=(RISK_NOTE, *refer_to_counts(study, pooled=True)),
    )
