"""What the thresholds of a cascade keep and escalate of the explorer's answers."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.estimators.estimator import TRACE_PLUS
from tracecal.explorer.columns import HELD_OUT, PROBABILITY


def apply_guarantees(
    answers: pl.DataFrame, guarantees: pl.DataFrame | None, models: Mapping[str, str]
) -> dict[str, Any]:
    """The cascades of the page's data.

    `told` holds by 'model/task' the guarantees of the analysis `cascade_promises`, with the large
    model's label; `kept` whether each of them keeps an answer. An answer that calibrated the fit of
    the thresholds has None in place of the list. A guarantee without a threshold keeps no answer,
    and none keeps an answer without a probability.
    """
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for row in guarantees.iter_rows(named=True) if guarantees is not None else ():
        words = "at most {:g} below" if row["promise"] == "below" else "at least {:g}"
        by_pair.setdefault(f"{row['small']}/{row['task']}", []).append(
            {
                "large": models[row["large"]],
                "promise": words.format(row["promised"]),
                "threshold": row["threshold"],
            }
        )
    if not by_pair:
        return {"told": {}, "kept": []}
    columns = ["model", "task", HELD_OUT + TRACE_PLUS, PROBABILITY + TRACE_PLUS]
    decisions: list[list[bool] | None] = []
    for model, task, held_out, mean in answers.select(columns).iter_rows():
        entries = by_pair.get(f"{model}/{task}", ())
        if held_out is None and mean is not None:
            decisions.append(None)
        else:
            decisions.append([_is_kept(held_out, entry["threshold"]) for entry in entries])
    return {"told": by_pair, "kept": decisions}


def _is_kept(probability: float | None, threshold: float | None) -> bool:
    return probability is not None and threshold is not None and probability >= threshold
