"""The main study's multilingual tasks, language by language beside all of them."""

import polars as pl

from tracecal.tables.improved import BEST, TRACE_PLUS
from tracecal.tables.phrases import BETTER, METRICS, NAMES, marked
from tracecal.tables.settings import Frames, Settings, present_tasks
from tracecal.writers.table import Column, Table

ALL = "all"
PARTLY = "†"
TRACED = ("trace", TRACE_PLUS)
LABELS = {BEST: "Best Non-TRACE", "trace": "TRACE", TRACE_PLUS: "TRACE+"}
SCOPE = ("task", "language")


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages` and `improvements`, and the same by language."""
    study = settings.studies["main"]
    wanted = (pl.col("model") == study["model"]) & pl.col("task").is_in(study["tasks"])
    averages, best = (
        _together(frames[name].filter(wanted), frames[f"language_{name}"].filter(wanted))
        for name in ("averages", "improvements")
    )
    present = present_tasks(averages)
    several = {task: settings.tasks[task] for task in present} if len(present) > 1 else {}
    return Table(
        name="languages",
        title=settings.title,
        caption=settings.caption,
        frame=_frame(averages, best),
        columns=(
            Column(("language",), "Language", align="left"),
            Column(("n",), "n", decimals=0),
            *(
                Column(
                    (f"{key}_{metric}",),
                    NAMES[metric],
                    label,
                    better=BETTER[metric],
                    mark=marked((pl.col(f"{metric}_undefined_splits") > 0, PARTLY)),
                )
                for key, label in LABELS.items()
                for metric in METRICS
            ),
        ),
        section=pl.col("task"),
        titles=several,
        notes=tuple(_notes(averages, present)),
    )


def _together(pooled: pl.DataFrame, divided: pl.DataFrame) -> pl.DataFrame:
    """The rows of each language, and of all in the tasks that have several."""
    tasks = divided["task"].unique().to_list()
    own = pooled.filter(pl.col("study").is_null(), pl.col("task").is_in(tasks))
    labelled = own.with_columns(language=pl.lit(ALL)).select(pl.col(divided.columns))
    return pl.concat([labelled, divided])


def _notes(averages: pl.DataFrame, present: list[str]) -> list[str]:
    if not present:
        return ["No task of this study has answers in several languages."]
    partly = averages.filter(pl.col("undefined") > 0, pl.col("metric").is_in(METRICS))
    worst = partly.group_by("metric", "language").agg(pl.col("undefined", "splits").max())
    named = [
        f"{NAMES[metric]} of {language} in {undefined} of {splits} splits"
        for metric, language, undefined, splits in worst.sort("metric", "language").iter_rows()
    ]
    few = f"{PARTLY} Undefined where all answers of a split are right or all are wrong, which the "
    return [f"{few}mean leaves out: {'; '.join(named)}."] if named else []


def _frame(averages: pl.DataFrame, best: pl.DataFrame) -> pl.DataFrame:
    """A row per task and language, the row of all languages first."""
    sizes = averages.filter(metric="brier").group_by(SCOPE).agg(pl.col("n").mean())
    frame = sizes.sort("task", pl.col("language") != ALL, "language")
    for metric in METRICS:
        own = best.filter(metric=metric).select(
            *SCOPE,
            pl.col("reference").alias(f"{BEST}_{metric}"),
            pl.col("baseline").alias(f"{BEST}_{metric}_id"),
        )
        parts = [own] + [
            averages.filter(metric=metric, estimator=key).select(
                *SCOPE,
                pl.col("mean").alias(f"{key}_{metric}"),
                pl.col("sd").alias(f"{key}_{metric}_sd"),
            )
            for key in TRACED
        ]
        undefined = pl.col("undefined").max().alias(f"{metric}_undefined_splits")
        parts.append(averages.filter(metric=metric).group_by(SCOPE).agg(undefined))
        for part in parts:
            frame = frame.join(part, on=SCOPE, how="left", maintain_order="left")
    return frame.select(
        *(*SCOPE, "n"),
        *(f"{key}_{metric}" for key in LABELS for metric in METRICS),
        *(
            name
            for metric in METRICS
            for name in (f"{BEST}_{metric}_id", *(f"{key}_{metric}_sd" for key in TRACED))
        ),
        *(f"{metric}_undefined_splits" for metric in METRICS),
    )
