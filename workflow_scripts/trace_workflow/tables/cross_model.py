"""The cross-model comparison: TRACE+ against baselines, model by model."""

from statistics import fmean

import polars as pl

from trace_workflow.tables import improvement_columns as improved
from trace_workflow.tables.improvement_columns import BEST, IMPROVEMENT
from trace_workflow.tables.metric_names import CLAIMED, DIRECTION_NOTE, METRIC_NAMES, METRICS
from trace_workflow.tables.standing_notes import missing_answers, warn_of_few_answers
from trace_workflow.tables.study_results import StudyResults, tasks_of
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import TRACE_PLUS


def table(study: StudyResults) -> Table:
    """From `improvements` and `accuracy`: a row per model, and their mean."""
    improvements = study.select("improvements", "cross")
    tasks, models = tasks_of(improvements), sorted(set(improvements["model"].drop_nulls()))
    averages = improvements.filter(study="cross")
    pairs = improvements.filter(pl.col("study").is_null())
    metrics = [metric for metric in CLAIMED if metric in set(improvements["metric"])]
    frame = _frame(averages, study, metrics, tasks, models)
    # A wide table prints TRACE+ against both baselines that one could choose, and own scores; the
    # best in hindsight, an oracle, is a point.
    gains = [f"{m}_{kind}_{IMPROVEMENT}" for kind in ("named", "picked") for m in metrics]
    points = [f"{m}_{side}" for side in (TRACE_PLUS, BEST) for m in METRICS]
    own_keys = [column.keys[0] for column in improved.own_columns(study)]
    return Table(
        frame=frame,
        columns=_columns(study, metrics),
        section=pl.col("model").is_null().cast(pl.String),
        emphasis=improved.BEST_BOLD,
        first=("label", "accuracy", *gains, *points, *own_keys),
        footnotes=(
            *study.missing_tasks("cross", tasks),
            *(improved.nothing_to_compare(study) or improved.explain_undefined(pairs, study)),
            *improved.explain_unscored_best(frame, study, "model"),
        ),
        notes=(
            *improved.explain_improvements(averages.to_dicts(), study),
            *([DIRECTION_NOTE] if "auroc_calibrated" in metrics else []),
            *missing_answers(study.accuracies, study),
            *warn_of_few_answers(study.accuracies, study),
        ),
    )


def _frame(
    averages: pl.DataFrame,
    study: StudyResults,
    metrics: list[str],
    tasks: list[str],
    models: list[str],
) -> pl.DataFrame:
    model = pl.col("model")
    accuracies = _mean_accuracies(study.frames["accuracy"], tasks, models)
    counts = [
        pl.when(pl.col(f"{m}_tasks") > 0).then(f"{m}_{name}")
        for m in metrics
        for name in improved.WIN_COUNTS
    ]
    return (
        improved.improvement_frame(averages, study, "model", metrics=metrics)
        .with_columns(*counts)
        .with_columns(
            label=model.replace_strict(study.models, default="Overall"),
            accuracy=model.replace_strict(accuracies, default=None, return_dtype=pl.Float64),
            baselines=pl.lit(len(study.with_role("baseline"))),
            models=pl.lit(" ".join(models)),
            tasks=pl.lit(" ".join(tasks)),
        )
        .select(
            *("model", "label", "accuracy", "right", "answers"),
            *improved.metric_columns(BEST, TRACE_PLUS, IMPROVEMENT, metrics=metrics),
            *(f"{metric}_{name}" for metric in metrics for name in ("wins", "tasks")),
            *improved.detail_columns(metrics),
            *improved.own_names(study, metrics),
            *("baselines", "models", "tasks"),
        )
    )


def _mean_accuracies(
    accuracy: pl.DataFrame, tasks: list[str], models: list[str]
) -> dict[str | None, float]:
    """Each model's mean accuracy over the tasks, and under None the mean over the models."""
    rows = accuracy.filter(pl.col("task").is_in(tasks), pl.col("model").is_in(models))
    by_model = rows.group_by("model").agg("accuracy")
    means = {model: fmean(values) for model, values in by_model.iter_rows()}
    overall = [means[model] for model in models if model in means]
    return means | ({None: fmean(overall)} if overall else {})


def _columns(study: StudyResults, metrics: list[str]) -> tuple[Column, ...]:
    return (
        Column(("label",), "Model", align="left"),
        Column(("accuracy",), "Avg. Acc." if len(study.studies["cross"]["tasks"]) > 1 else "Acc."),
        *improved.chosen_columns(study, metrics, supported=True),
        *improved.own_columns(study, metrics),
        *improved.all_side_columns(metrics, study, "model"),
        *(improved.gain_column(m, f"Δ{METRIC_NAMES[m]}", "Improvement") for m in metrics),
        *(
            Column(
                (f"{m}_wins", f"{m}_tasks"), METRIC_NAMES[m], "Task Wins", added=m not in METRICS
            )
            for m in metrics
        ),
        *improved.count_columns(accuracy=False),
    )
