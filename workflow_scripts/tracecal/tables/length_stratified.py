"""The main study's averages on short, medium and long answers."""

from collections.abc import Iterator

import polars as pl

from tracecal.analyse.length_stratified import STRATA
from tracecal.tables.phrases import (
    BEST_OF_COLUMN,
    BETTER,
    METRICS,
    NAMES,
    by,
    frame_of,
    method,
    undefined,
)
from tracecal.tables.settings import Frames, Settings, present_tasks
from tracecal.tables.words import listed
from tracecal.writers.table import Column, Table, ranked

KEYS = tuple((stratum, metric) for stratum in STRATA for metric in METRICS)


def table(frames: Frames, settings: Settings) -> Table:
    """From `length_stratified_averages`: a row per estimator."""
    chosen = settings.select(frames["length_stratified_averages"], "main")
    present, found = present_tasks(chosen), set(chosen["estimator"])
    means = by(chosen.filter(study="main"), "estimator", "stratum", "metric")
    rows = []
    for entry in settings.estimators:
        own = {f"{s}_{m}": means.get((entry.id, s, m), {}) for s, m in KEYS}
        row = {"estimator": entry.id, "label": entry.label}
        row |= {name: one.get("mean") for name, one in own.items()}
        row |= {f"{name}_sd": one.get("sd") for name, one in own.items()}
        rows += [row] if entry.id in found else []
    frame = frame_of(rows)
    columns = [
        Column((f"{stratum}_{metric}",), NAMES[metric], stratum.capitalize(), BETTER[metric])
        for stratum, metric in KEYS
    ]
    return Table(
        name="length_stratified",
        title=settings.title,
        caption=settings.caption,
        frame=frame.with_columns(
            model=pl.lit(settings.studies["main"]["model"]), tasks=pl.lit(" ".join(present))
        ),
        columns=(method(), *ranked(columns)),
        emphasis=BEST_OF_COLUMN,
        notes=(*settings.absent_tasks("main", present), *_undefined(chosen, settings)),
        wide=False,
    )


def _undefined(chosen: pl.DataFrame, settings: Settings) -> Iterator[str]:
    for stratum, metric in KEYS:
        if where := undefined(chosen.filter(stratum=stratum), metric, settings.tasks):
            yield (
                f"{NAMES[metric]} of {stratum} answers undefined and left out of the means: "
                f"{listed(where)}."
            )
