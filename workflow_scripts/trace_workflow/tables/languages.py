"""The main study's multilingual tasks: each language beside all languages."""

from itertools import product

import polars as pl

from trace_workflow.tables import marks
from trace_workflow.tables.improvement_columns import BEST
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, METRICS
from trace_workflow.tables.study_results import StudyResults, rows_by, tasks_of
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.estimator import PICKED, TRACE_PLUS

ALL_LANGUAGES = "all"
ALONE = "No task of this study has answers in several languages."
# The fewest correct and wrong answers with which an AUROC is informative.
FEWEST = 10
ESTIMATORS = (PICKED, "trace", TRACE_PLUS)
LABELS = {
    PICKED: "Selected baseline",
    BEST: "Best Non-TRACE",
    "trace": "TRACE",
    TRACE_PLUS: "TRACE+",
}
KEYS = ("task", "language")


def table(study: StudyResults) -> Table:
    """From `averages` and `accuracy`, and the same by language."""
    averages, accuracies = (_with_pooled(study, name) for name in ("averages", "accuracy"))
    tasks = tasks_of(averages)
    parts = {
        f" of {language}": averages.filter(language=language)
        for language in averages["language"].unique().sort()
    }
    shares = {pair: share for pair, share in study.scored_shares.items() if pair[1] in tasks}
    columns = []
    for (estimator, label), metric in product(LABELS.items(), METRICS):
        key, mark = f"{estimator}_{metric}", marks.mark_partly_undefined(metric)
        if estimator == BEST:
            mark += marks.mark_unscored(study.scored_shares, f"{key}_id", "task")
        columns.append(Column((key,), METRIC_NAMES[metric], label, BETTER[metric], mark=mark))
    return Table(
        frame=_frame(averages, accuracies, [entry.id for entry in study.with_role("baseline")]),
        columns=(
            Column(("language",), "Language", align="left"),
            Column(("n",), "n", decimals=0),
            Column(("accuracy",), "Acc."),
            Column(("right", "answers"), "Correct"),
            *columns,
        ),
        section=pl.col("task"),
        titles={task: study.tasks[task] for task in tasks},
        footnotes=(
            *([] if tasks else [ALONE]),
            *marks.explain_partly_undefined(parts, study.tasks),
            *marks.explain_unscored(study, shares),
        ),
        notes=tuple(_warn_of_few_answers(accuracies)),
    )


def _with_pooled(study: StudyResults, analysis: str) -> pl.DataFrame:
    """The main study's rows of each language, and of all where a task has several."""
    main = study.studies["main"]
    in_main = (pl.col("model") == main["model"]) & pl.col("task").is_in(main["tasks"])
    by_language = study.frames[f"language_{analysis}"].filter(in_main)
    tasks = by_language["task"].unique().to_list()
    pooled = study.frames[analysis].filter(in_main, pl.col("task").is_in(tasks))
    if "study" in pooled.columns:
        pooled = pooled.filter(pl.col("study").is_null())
    pooled = pooled.with_columns(language=pl.lit(ALL_LANGUAGES))
    return pl.concat([pooled.select(pl.col(by_language.columns)), by_language])


def _frame(averages: pl.DataFrame, accuracies: pl.DataFrame, baselines: list[str]) -> pl.DataFrame:
    """A row per task and language; all languages together come first."""
    sizes = averages.filter(metric="brier").group_by(KEYS).agg(pl.col("n").mean())
    counts = accuracies.select(*KEYS, "accuracy", right="correct", answers="n")
    frame = sizes.join(counts, on=KEYS, how="left")
    frame = frame.sort("task", pl.col("language") != ALL_LANGUAGES, "language")
    values = rows_by(averages, *KEYS, "metric", "estimator")
    rows = []
    for row in frame.to_dicts():
        rows.append(row)
        for metric in METRICS:
            key = (row["task"], row["language"], metric)
            means = {id: values.get((*key, id), {}).get("mean") for id in (*baselines, *ESTIMATORS)}
            measured = [id for id in baselines if means[id] is not None]
            # Of equal ones the first in the registry.
            best_of = min if BETTER[metric] == "lower" else max
            best = best_of(measured, key=means.__getitem__, default=None)
            row |= {f"{BEST}_{metric}": means.get(best), f"{BEST}_{metric}_id": best}
            row |= {f"{id}_{metric}": means[id] for id in ESTIMATORS}
            row |= {f"{id}_{metric}_sd": values.get((*key, id), {}).get("sd") for id in ESTIMATORS}
            undefined = [v["undefined"] for k, v in values.items() if k[:3] == key]
            row |= {f"{metric}_undefined_splits": max(undefined, default=None)}
    columns = [*KEYS, "n", "accuracy", "right", "answers"]
    columns += [f"{estimator}_{metric}" for estimator in LABELS for metric in METRICS]
    for metric in METRICS:
        columns += [f"{BEST}_{metric}_id", *(f"{id}_{metric}_sd" for id in ESTIMATORS)]
    columns += [f"{metric}_undefined_splits" for metric in METRICS]
    return pl.DataFrame(rows, columns, infer_schema_length=None)


def _warn_of_few_answers(accuracies: pl.DataFrame) -> list[str]:
    """A warning on languages whose AUROC depends on single answers."""
    rarer = pl.min_horizontal("correct", pl.col("n") - pl.col("correct")).alias("rarer")
    few = accuracies.select(*KEYS, rarer).filter(pl.col("rarer") < FEWEST).sort(KEYS)
    names = [f"{language} ({rarer})" for _, language, rarer in few.iter_rows()]
    return [
        f"Sample too small: fewer than {FEWEST} answers of the rarer class, correct or incorrect, "
        f"so that an AUROC depends on single answers: {', '.join(names)}."
    ] * bool(names)
