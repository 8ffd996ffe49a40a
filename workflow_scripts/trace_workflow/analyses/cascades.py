"""Cascades: a small model answers, and a large one takes over its least confident questions.

For two models that share tasks: accuracy and cost over the share escalated, where an estimator's
calibrated probability routes (`tracecal.calibration.cascade`). Everything is measured on the
evaluation part of each split and averaged over the splits; the mean over tasks escalates the same
share of each. TRACE+ is compared with the prespecified baseline, with the baseline selected in each
split and, as a point without an interval, with the best in hindsight.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from trace_workflow.analyses.study_files import StudyFiles
from tracecal.calibration.cascade import KEYS, ROWS, cascade_table, task_curves
from tracecal.calibration.costs import BY_PARAMETERS, BY_PRICE, active_parameters, answer_costs
from tracecal.calibration.predictions import PREDICTIONS
from tracecal.io.evaluated import evaluation_ids
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_arrow

CASCADES = {**dict.fromkeys(KEYS, pl.String), **ROWS, "unit": pl.String}


class TokenCost(NamedTuple):
    """The cost of a model's token: its price, or its number of active parameters."""

    price: Mapping[str, float] | None = None
    parameters: int | None = None


def analysis(
    files: StudyFiles,
    *,
    small: str,
    large: str,
    estimators: Sequence[str],
    baselines: Sequence[str],
    bootstrap: Sequence[float],
    prices: Mapping[str, Mapping[str, float]],
) -> pl.DataFrame:
    """Compute the `cascade_table` of a small and a large model, from the files of the pairs.

    The small model's `estimators` route; TRACE+ is compared with the `baselines` among them.
    `prices` holds each model's prices, and the files `models` are the folders of local models. The
    table is empty if both models share no task.
    """
    kinds = ("labels", "traces", "predictions", "splits", "questions")
    by_pair = {(model, task): paths for model, task, paths in files.by_pair(*kinds)}
    folders = files.paths.get("models", ())
    parameters = {Path(folder).name: _count_parameters(folder) for folder in folders}
    unit, costs = _token_costs(
        [prices.get(model) for model in (small, large)],
        [parameters.get(model) for model in (small, large)],
    )
    by_task = {
        task: task_curves(
            _pair_answers(by_pair[small, task], by_pair[large, task], costs),
            read_parquet(by_pair[small, task]["predictions"], list(PREDICTIONS)),
            read_parquet(by_pair[small, task]["splits"], ["example_id", "split", "part"]),
            task,
            estimators,
            bootstrap,
        )
        for task in sorted(task for model, task in by_pair if model == small)
        if (large, task) in by_pair
    }
    if not by_task:
        return pl.DataFrame(schema=CASCADES)
    table = cascade_table(by_task, baselines, bootstrap[2])
    keys = {"small": pl.lit(small), "large": pl.lit(large), "unit": pl.lit(unit, pl.String)}
    return table.with_columns(**keys).select(*CASCADES)


def join_pairs(files: StudyFiles) -> pl.DataFrame:
    """Concatenate all `parts`, the analyses of a run's pairs of models, in their order."""
    return pl.concat(map(read_parquet, files["parts"]))


def _token_costs(
    prices: Sequence[Mapping[str, float] | None], parameters: Sequence[int | None]
) -> tuple[str | None, list[TokenCost]]:
    """The unit of costs, and each model's: prices if both have one, else parameters."""
    if None not in prices:
        return BY_PRICE, [TokenCost(price=price) for price in prices]
    if None not in parameters:
        return BY_PARAMETERS, [TokenCost(parameters=count) for count in parameters]
    return None, [TokenCost(), TokenCost()]


def _count_parameters(folder: str | Path) -> int | None:
    return active_parameters(json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")))


def _pair_answers(
    small: Mapping[str, str], large: Mapping[str, str], costs: Sequence[TokenCost]
) -> pl.DataFrame:
    """The answers of both models to a task for `task_curves`, from each model's files."""
    pairs = evaluation_ids(small["questions"], ["group_id"])
    for model, files, cost in zip(("small", "large"), (small, large), costs, strict=True):
        labels = read_parquet(files["labels"], ["example_id", "correct"])
        tokens = read_arrow(files["traces"], ["example_id", "prompt_token_ids", "token_ids"])
        counts = tokens.select("example_id", pl.col("prompt_token_ids", "token_ids").list.len())
        # Answers from files may come without their prompts, whose costs are unknown then.
        counts = counts.with_columns(pl.col("prompt_token_ids").replace(0, None).cast(pl.Float64))
        n_prompt, n_generated = (counts[name].to_numpy() for name in counts.columns[1:])
        paid = answer_costs(n_prompt, n_generated, cost.price, cost.parameters)
        paid = np.full(len(n_prompt), np.nan) if paid is None else paid
        columns = labels.select("example_id", pl.col("correct").alias(model)).join(
            counts.select("example_id", pl.Series(f"{model}_cost", paid)),
            on="example_id",
            validate="1:1",
        )
        pairs = pairs.join(columns, on="example_id", validate="1:1")
    return pairs.sort("example_id")
