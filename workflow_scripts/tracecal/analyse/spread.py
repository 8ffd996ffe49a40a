"""Means of repeated measurements, task by task and over tasks, with how they spread."""

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import polars as pl

Series = Mapping[int, float | None]


def summarised(measured: pl.DataFrame, keys: Sequence[str], over: str) -> pl.DataFrame:
    """The mean and s.d. of `value` over the repetitions `over`, for each task and over all.

    `measured` holds `task`, the `keys`, `over` (int) and `value`; null is undefined, left out
    and counted. Where `task` is null the mean is that of the tasks' means, and the s.d. that of
    their mean in each repetition; a task without any value does not count there. Columns `task`,
    the keys, `mean`, `sd`, `repetitions` and `undefined`, sorted.
    """
    rows = []
    for key, cells in measured.group_by(*keys):
        tasks: dict[str, dict[int, float | None]] = {}
        for task, repetition, value in cells.select("task", over, "value").iter_rows():
            tasks.setdefault(task, {})[repetition] = value
        rows += [(task, *key, *_spread(series)) for task, series in tasks.items()]
        rows.append((None, *key, *_over_tasks(list(tasks.values()))))
    schema = {name: measured.schema[name] for name in ("task", *keys)} | SUMMARY
    return pl.DataFrame(rows, schema=schema, orient="row").sort("task", *keys)


SUMMARY = {
    "mean": pl.Float64,
    "sd": pl.Float64,
    "repetitions": pl.Int64,
    "undefined": pl.Int64,
}


def _spread(series: Series) -> tuple[float | None, float | None, int, int]:
    defined = [value for value in series.values() if value is not None]
    return (
        fmean(defined) if defined else None,
        stdev(defined) if len(defined) > 1 else None,
        len(series),
        len(series) - len(defined),
    )


def _over_tasks(tasks: Sequence[Series]) -> tuple[float | None, float | None, int, int]:
    counted = [series for series in tasks if any(v is not None for v in series.values())]
    repetitions = sorted(set().union(*tasks))
    together = {one: [series.get(one) for series in counted] for one in repetitions}
    _, *spread = _spread(
        {one: fmean(each) if each and None not in each else None for one, each in together.items()}
    )
    means = [_spread(series)[0] for series in counted]
    return (fmean(means) if means else None, *spread)
