"""Which of the explorer's answers a cascade's threshold would keep, and which it would escalate."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.analyse.gains import TRACE_PLUS
from tracecal.explore.answers import HELD_OUT, PROBABILITY


def cascaded(
    answers: pl.DataFrame, promises: pl.DataFrame | None, models: Mapping[str, str]
) -> dict[str, Any]:
    """`told`: by 'model/task' the `promises`, rows of `analyse.cascade_promises`, with the large
    model's label; `kept`: of each answer whether each of these keeps it.

    The latter is null where the answer calibrated the fit that the thresholds are for. An answer
    without a probability is not kept, nor any where no threshold is certified.
    """
    told: dict[str, list[dict[str, Any]]] = {}
    for row in promises.iter_rows(named=True) if promises is not None else ():
        words = "at most {:g} below" if row["promise"] == "below" else "at least {:g}"
        shown = {"large": models[row["large"]], "promise": words.format(row["promised"])}
        own = told.setdefault(f"{row['small']}/{row['task']}", [])
        own.append(shown | {"threshold": row["threshold"]})
    if not told:
        return {"told": {}, "kept": []}
    columns = ["model", "task", HELD_OUT + TRACE_PLUS, PROBABILITY + TRACE_PLUS]
    kept: list[list[bool] | None] = []
    for model, task, held_out, mean in answers.select(columns).iter_rows():
        thresholds = [one["threshold"] for one in told.get(f"{model}/{task}", ())]
        seen = held_out is None and mean is not None
        certified = [held_out is not None and t is not None and held_out >= t for t in thresholds]
        kept.append(None if seen else certified)
    return {"told": told, "kept": kept}
