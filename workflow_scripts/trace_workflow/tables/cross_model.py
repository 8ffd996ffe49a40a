"""The cross-model comparison: TRACE+ against baselines, model by model."""

from statistics import fmean

import polars as pl

from trace_workflow.tables import improved, notes
from trace_workflow.tables.captions import listed
from trace_workflow.tables.improved import BEST, COUNTS, IMPROVEMENT
from trace_workflow.tables.notes import CLAIMED, DIRECTION, METRICS, NAMES
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.entry import TRACE_PLUS


def table(frames: Frames, settings: Settings) -> Table:
    """From `improvements` and `accuracy`."""
    chosen = settings.select(frames["improvements"], "cross")
    present, models = present_tasks(chosen), sorted(set(chosen["model"].drop_nulls()))
    missing, counted = notes.fewer(frames, settings), notes.rows(frames, settings)
    averages = chosen.filter(study="cross")
    pairs = chosen.filter(pl.col("study").is_null())
    metrics = [metric for metric in CLAIMED if metric in set(chosen["metric"])]
    frame = _frame(averages, frames, metrics, present, models, settings)
    return Table(
        frame=frame,
        columns=_columns(metrics, missing, settings),
        section=pl.col("model").is_null().cast(pl.String),
        emphasis=improved.BOLD,
        first=_first(metrics),
        footnotes=(
            *settings.absent_tasks("cross", present),
            *(
                improved.nothing_to_compare(settings)
                or _footnotes(averages, pairs, metrics, settings)
            ),
            *improved.few_notes(missing, frame, settings, "model"),
        ),
        notes=(
            *improved.explained(averages.to_dicts(), settings),
            *([DIRECTION] if "auroc_calibrated" in metrics else []),
            *notes.incomplete(counted, settings),
            *notes.too_few(counted, settings),
        ),
    )


def _first(metrics: list[str]) -> tuple[str, ...]:
    """What a wide table prints: TRACE+ against what could have been chosen, the prespecified and
    the selected baseline; the best in hindsight, an oracle, is a point.
    """
    gains = [f"{m}_{kind}_{IMPROVEMENT}" for kind in ("named", "picked") for m in metrics]
    points = [f"{m}_{side}" for side in (TRACE_PLUS, BEST) for m in METRICS]
    return ("label", "accuracy", *gains, *points)


def _frame(
    averages: pl.DataFrame,
    frames: Frames,
    metrics: list[str],
    present: list[str],
    models: list[str],
    settings: Settings,
) -> pl.DataFrame:
    right = _accuracies(frames["accuracy"].filter(pl.col("task").is_in(present)), models)
    model = pl.col("model")
    compared = [pl.when(pl.col(f"{m}_tasks") > 0).then(f"{m}_{n}") for m in metrics for n in COUNTS]
    return (
        improved.wide(averages, frames, settings, "model", metrics=metrics)
        .with_columns(*compared)
        .with_columns(
            label=model.replace_strict(settings.models, default="Overall"),
            accuracy=model.replace_strict(right, default=None, return_dtype=pl.Float64),
            baselines=pl.lit(len(settings.of_role("baseline"))),
            models=pl.lit(" ".join(models)),
            tasks=pl.lit(" ".join(present)),
        )
        .select(
            *("model", "label", "accuracy", "right", "answers"),
            *improved.columns_of(BEST, TRACE_PLUS, IMPROVEMENT, metrics=metrics),
            *(f"{metric}_{name}" for metric in metrics for name in ("wins", "tasks")),
            *improved.further_columns(metrics),
            *("baselines", "models", "tasks"),
        )
    )


def _accuracies(accuracy: pl.DataFrame, models: list[str]) -> dict[str | None, float]:
    """The mean of each model's accuracies, and under null the mean over the models."""
    rows = accuracy.filter(pl.col("model").is_in(models)).group_by("model").agg("accuracy")
    accuracies = {model: fmean(values) for model, values in rows.iter_rows()}
    overall = [accuracies[model] for model in models if model in accuracies]
    return accuracies | ({None: fmean(overall)} if overall else {})


def _columns(metrics: list[str], missing: notes.Fewer, settings: Settings) -> tuple[Column, ...]:
    return (
        Column(("label",), "Model", align="left"),
        Column(("accuracy",), "Avg. Acc."),
        *improved.chosen_columns(settings, metrics, supported=True),
        *improved.sides(metrics, missing, "model"),
        *(improved.gain_column(m, f"Δ{NAMES[m]}", "Improvement") for m in metrics),
        *(
            Column((f"{m}_wins", f"{m}_tasks"), NAMES[m], "Task Wins", added=m not in METRICS)
            for m in metrics
        ),
        *improved.right_columns(accuracy=False),
    )


def _footnotes(
    averages: pl.DataFrame, pairs: pl.DataFrame, metrics: list[str], settings: Settings
) -> list[str]:
    notes = improved.partly_undefined(pairs, settings)
    for metric in metrics:
        rows = averages.filter(pl.col("difference").is_null(), metric=metric, against="oracle")
        rows = rows.drop_nulls("model")
        if names := [settings.models[model] for model in rows.sort(settings.in_order())["model"]]:
            notes.append(
                f"– No {NAMES[metric]} to compare for {listed(names)}; left out of Overall."
            )
    return notes
