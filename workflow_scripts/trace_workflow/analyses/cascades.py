"""Cascades: a small model answers, and questions that it is not sure of are put to a large one.

For two models that share tasks: accuracy and cost over the share escalated, when an estimator's
calibrated probability says which (`tracecal.calibration.cascade`). Everything is measured on the
evaluation part of each split and averaged over the splits; the mean over tasks escalates the same
share of each. TRACE+ is compared with the baseline named in the configuration, with the one
selected in each split and, as a point without an interval, with the best in hindsight.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from trace_workflow.analyses.study_files import Pairs, Paths, by_pair
from tracecal.calibration.cascade import KEYS, ROWS, cascade_table, task_curves
from tracecal.calibration.costs import BY_PARAMETERS, BY_PRICE, active_parameters, answer_costs
from tracecal.calibration.predictions import PREDICTIONS
from tracecal.io.evaluated import evaluation_ids
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_arrow

CASCADES = {**dict.fromkeys(KEYS, pl.String), **ROWS, "unit": pl.String}


def analysis(
    labels: Paths,
    traces: Paths,
    predictions: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    *,
    small: str,
    large: str,
    estimators: Sequence[str],
    baselines: Sequence[str],
    bootstrap: Sequence[float],
    prices: Mapping[str, Mapping[str, float]],
    models: Paths = (),
) -> pl.DataFrame:
    """`cascade` of a small and a large model, from the files of `pairs`.

    `estimators` of the small model are those that route, `baselines` those of them that are rivals.
    `prices` are by model; `models` the folders of those that have one. Without a task that both
    have answered there are no rows.
    """
    files = by_pair(
        pairs,
        labels=labels,
        traces=traces,
        predictions=predictions,
        splits=splits,
        task=questions,
    )
    parameters = {Path(folder).name: _parameters(folder) for folder in models}
    own_prices = [prices.get(model) for model in (small, large)]
    sizes = [parameters.get(model) for model in (small, large)]
    unit = BY_PARAMETERS if None in own_prices else BY_PRICE
    if None in own_prices and None in sizes:
        unit, sizes = None, [None, None]
    told = list(zip(own_prices if unit == BY_PRICE else [None, None], sizes, strict=True))
    by_task = {
        task: task_curves(
            _both(files[small, task], files[large, task], *told),
            read_parquet(files[small, task]["predictions"], list(PREDICTIONS)),
            read_parquet(files[small, task]["splits"], ["example_id", "split", "part"]),
            task,
            estimators,
            bootstrap,
        )
        for task in sorted(task for model, task in files if model == small)
        if (large, task) in files
    }
    if not by_task:
        return pl.DataFrame(schema=CASCADES)
    found = cascade_table(by_task, baselines, bootstrap[2])
    named = {"small": pl.lit(small), "large": pl.lit(large), "unit": pl.lit(unit, pl.String)}
    return found.with_columns(**named).select(*CASCADES)


def _parameters(folder: str | Path) -> int | None:
    return active_parameters(json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")))


def _both(
    small: Mapping[str, str],
    large: Mapping[str, str],
    small_told: tuple[Mapping[str, float] | None, int | None],
    large_told: tuple[Mapping[str, float] | None, int | None],
) -> pl.DataFrame:
    """`example_id`, `group_id` and COLUMNS of a task that both models answered."""
    frame = evaluation_ids(small["task"], ["group_id"])
    for model, own, (price, parameters) in (
        ("small", small, small_told),
        ("large", large, large_told),
    ):
        labelled = read_parquet(own["labels"], ["example_id", "correct"])
        tokens = read_arrow(own["traces"], ["example_id", "prompt_token_ids", "token_ids"]).select(
            "example_id", pl.col("prompt_token_ids", "token_ids").list.len()
        )
        # Answers from files may come without their prompts, whose costs are unknown then.
        tokens = tokens.with_columns(
            pl.col("prompt_token_ids").replace(0, None).cast(pl.Float64),
        )
        prompt, generated = (tokens[name].to_numpy() for name in tokens.columns[1:])
        paid = answer_costs(prompt, generated, price, parameters)
        costs = pl.DataFrame(
            {
                "example_id": tokens["example_id"],
                f"{model}_cost": np.full(len(prompt), np.nan) if paid is None else paid,
            }
        )
        told = labelled.select("example_id", pl.col("correct").alias(model)).join(
            costs, on="example_id", validate="1:1"
        )
        frame = frame.join(told, on="example_id", validate="1:1")
    return frame.sort("example_id")
