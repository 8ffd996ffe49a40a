"""The main study's averages at several calibration sizes, size by size."""

from collections.abc import Iterator, Sequence

import polars as pl

from tracecal.tables.phrases import BETTER, METRICS, NAMES, method, undefined
from tracecal.tables.settings import Frames, Settings, present_tasks
from tracecal.tables.words import listed
from tracecal.writers.table import Column, Table, ranked

SHARE = "calibration_share"


def table(frames: Frames, settings: Settings) -> Table:
    """From `calibration_size_averages`: a row per size and estimator."""
    chosen = settings.select(frames["calibration_size_averages"], "main")
    present, shares = present_tasks(chosen), sorted(set(chosen[SHARE]))
    columns = [Column((m, f"{m}_sd"), NAMES[m], better=BETTER[m], joint=" ± ") for m in METRICS]
    return Table(
        name="calibration_size",
        title=settings.title,
        caption=settings.caption,
        frame=_frame(chosen.filter(study="main"), present, settings),
        columns=(method(), *ranked(columns, within=SHARE)),
        section=pl.col(SHARE),
        titles={share: f"{percent(share)} for calibration" for share in shares},
        emphasis="Bold: best at that size; underlined: second best; values that print alike share "
        "the mark.",
        notes=(
            *settings.absent_tasks("main", present),
            *_undefined(chosen, shares, settings),
        ),
        wide=False,
    )


def _frame(means: pl.DataFrame, present: Sequence[str], settings: Settings) -> pl.DataFrame:
    entries = {entry.id: entry.label for entry in settings.estimators}
    keys, order = (SHARE, "estimator"), list(entries)
    frame = means.select(keys).unique()
    for metric in METRICS:
        own = means.filter(metric=metric)
        named = own.select(*keys, pl.col("mean").alias(metric), pl.col("sd").alias(f"{metric}_sd"))
        frame = frame.join(named, on=keys, how="left")
    estimator = pl.col("estimator")
    return frame.sort(SHARE, estimator.replace_strict(order, range(len(order)))).select(
        *keys,
        estimator.replace_strict(entries).alias("label"),
        *(name for metric in METRICS for name in (metric, f"{metric}_sd")),
        model=pl.lit(settings.studies["main"]["model"]),
        tasks=pl.lit(" ".join(present)),
    )


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _undefined(chosen: pl.DataFrame, shares: Sequence[float], settings: Settings) -> Iterator[str]:
    for share in shares:
        for metric in METRICS:
            if where := undefined(chosen.filter(pl.col(SHARE) == share), metric, settings.tasks):
                yield (
                    f"{NAMES[metric]} at {percent(share)} undefined and left out of the means: "
                    f"{listed(where)}."
                )
