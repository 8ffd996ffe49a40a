"""The main study's multilingual tasks, language by language beside all of them."""

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.captions import note
from trace_workflow.tables.improved import BEST
from trace_workflow.tables.notes import BETTER, LEFT_OUT, METRICS, NAMES, partly, unscored
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import Column, Table
from tracecal.estimators.entry import PICKED, TRACE_PLUS

ALL = "all"
# Right and wrong answers that an AUROC needs at least to be informative.
FEW = 10
TRACED = (PICKED, "trace", TRACE_PLUS)
LABELS = {
    PICKED: "Selected baseline",
    BEST: "Best Non-TRACE",
    "trace": "TRACE",
    TRACE_PLUS: "TRACE+",
}
SCOPE = ("task", "language")


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`, `improvements` and `accuracy`, and the same by language."""
    study = settings.studies["main"]
    wanted = (pl.col("model") == study["model"]) & pl.col("task").is_in(study["tasks"])
    averages, best = (
        _together(frames[name].filter(wanted), frames[f"language_{name}"].filter(wanted))
        for name in ("averages", "improvements")
    )
    present = present_tasks(averages)
    right = _together(frames["accuracy"].filter(wanted), frames["language_accuracy"].filter(wanted))
    frame = _frame(averages, best, right)
    missing = notes.fewer(frames, settings)
    titles = {task: settings.tasks[task] for task in present}
    return Table(
        frame=frame,
        columns=(
            Column(("language",), "Language", align="left"),
            Column(("n",), "n", decimals=0),
            Column(("accuracy",), "Acc."),
            Column(("right", "answers"), "Correct"),
            *(
                Column(
                    (f"{key}_{metric}",),
                    NAMES[metric],
                    label,
                    better=BETTER[metric],
                    mark=_mark(key, metric, missing),
                )
                for key, label in LABELS.items()
                for metric in METRICS
            ),
        ),
        section=pl.col("task"),
        titles=titles,
        footnotes=(
            *_footnotes(averages, present),
            *notes.footnotes({k: v for k, v in missing.items() if k[1] in present}, settings),
        ),
        notes=tuple(_few_right(right)),
    )


def _mark(key: str, metric: str, missing: notes.Fewer) -> pl.Expr:
    best = unscored(missing, f"{BEST}_{metric}_id", "task")
    return partly(metric) + best if key == BEST else partly(metric)


def _few_right(right: pl.DataFrame) -> list[str]:
    """The languages with so few right or wrong answers that an AUROC depends on single ones."""
    rarer = pl.min_horizontal("correct", pl.col("n") - pl.col("correct")).alias("rarer")
    few = right.select(*SCOPE, rarer).filter(pl.col("rarer") < FEW).sort(SCOPE)
    named = [f"{language} ({rarer})" for _, language, rarer in few.iter_rows()]
    return [
        f"Sample too small: fewer than {FEW} answers of the rarer class, correct or incorrect, so "
        f"that an AUROC depends on single answers: {', '.join(named)}."
    ] * bool(named)


def _together(pooled: pl.DataFrame, divided: pl.DataFrame) -> pl.DataFrame:
    """The rows of each language, and of all in the tasks that have several."""
    tasks = divided["task"].unique().to_list()
    own = pooled.filter(pl.col("task").is_in(tasks))
    own = own.filter(pl.col("study").is_null()) if "study" in own.columns else own
    labelled = own.with_columns(language=pl.lit(ALL)).select(pl.col(divided.columns))
    return pl.concat([labelled, divided])


def _footnotes(averages: pl.DataFrame, present: list[str]) -> list[str]:
    if not present:
        return ["No task of this study has answers in several languages."]
    partly = averages.filter(pl.col("undefined") > 0, pl.col("metric").is_in(METRICS))
    worst = partly.group_by("metric", "language").agg(pl.col("undefined", "splits").max())
    named = [
        f"{NAMES[metric]} of {language} in {undefined} of {splits} splits"
        for metric, language, undefined, splits in worst.sort("metric", "language").iter_rows()
    ]
    return note(LEFT_OUT, named)


def _frame(averages: pl.DataFrame, best: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """A row per task and language, the row of all languages first."""
    sizes = averages.filter(metric="brier").group_by(SCOPE).agg(pl.col("n").mean())
    counts = right.select(*SCOPE, "accuracy", right="correct", answers="n")
    frame = sizes.join(counts, on=SCOPE, how="left")
    frame = frame.sort("task", pl.col("language") != ALL, "language")
    for metric in METRICS:
        own = best.filter(metric=metric, against="oracle").select(
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
        *(*SCOPE, "n", "accuracy", "right", "answers"),
        *(f"{key}_{metric}" for key in LABELS for metric in METRICS),
        *(
            name
            for metric in METRICS
            for name in (f"{BEST}_{metric}_id", *(f"{key}_{metric}_sd" for key in TRACED))
        ),
        *(f"{metric}_undefined_splits" for metric in METRICS),
    )
