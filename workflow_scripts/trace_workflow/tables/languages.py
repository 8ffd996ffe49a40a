"""The main study's multilingual tasks: each language beside all languages."""

from itertools import product

import polars as pl

from trace_workflow.tables import marks
from trace_workflow.tables.improvement_columns import BEST
from trace_workflow.tables.metric_names import BETTER, METRIC_NAMES, METRICS
from trace_workflow.tables.study_results import StudyResults, tasks_of
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
    for metric in METRICS:
        measured = averages.filter(pl.col("estimator").is_in(baselines), metric=metric)
        # Of equal ones the first in the registry.
        ranked = measured.drop_nulls("mean").sort(
            pl.col("mean") if BETTER[metric] == "lower" else -pl.col("mean"),
            pl.col("estimator").cast(pl.Enum(baselines)),
        )
        best = ranked.unique(KEYS, keep="first", maintain_order=True).select(
            *KEYS,
            pl.col("mean").alias(f"{BEST}_{metric}"),
            pl.col("estimator").alias(f"{BEST}_{metric}_id"),
        )
        means = [
            averages.filter(metric=metric, estimator=estimator).select(
                *KEYS,
                pl.col("mean").alias(f"{estimator}_{metric}"),
                pl.col("sd").alias(f"{estimator}_{metric}_sd"),
            )
            for estimator in ESTIMATORS
        ]
        undefined = pl.col("undefined").max().alias(f"{metric}_undefined_splits")
        undefined_splits = averages.filter(metric=metric).group_by(KEYS).agg(undefined)
        for part in (best, *means, undefined_splits):
            frame = frame.join(part, on=KEYS, how="left", maintain_order="left")
    return frame.select(
        *(*KEYS, "n", "accuracy", "right", "answers"),
        *(f"{estimator}_{metric}" for estimator in LABELS for metric in METRICS),
        *(
            name
            for metric in METRICS
            for name in (f"{BEST}_{metric}_id", *(f"{id}_{metric}_sd" for id in ESTIMATORS))
        ),
        *(f"{metric}_undefined_splits" for metric in METRICS),
    )


def _warn_of_few_answers(accuracies: pl.DataFrame) -> list[str]:
    """A warning on languages whose AUROC depends on single answers."""
    rarer = pl.min_horizontal("correct", pl.col("n") - pl.col("correct")).alias("rarer")
    few = accuracies.select(*KEYS, rarer).filter(pl.col("rarer") < FEWEST).sort(KEYS)
    names = [f"{language} ({rarer})" for _, language, rarer in few.iter_rows()]
    return [
        f"Sample too small: fewer than {FEWEST} answers of the rarer class, correct or incorrect, "
        f"so that an AUROC depends on single answers: {', '.join(names)}."
    ] * bool(names)
