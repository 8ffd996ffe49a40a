"""The worth of a cascade of two models, for the study of a run and for `tracecal cascade`.

1. `task_curves` measures the routers of one task: estimators, random routing and the oracle.
2. `cascade_table` turns the curves of a pair's tasks into rows, with intervals.
3. `select_worthwhile` selects the pairs whose large model gains and costs more.

An estimator routes: it escalates the small model's least confident answers to the large model.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.resampling import Resampling, draw_counts, draw_splits, interval
from tracecal.calibration.routing import (
    RANDOM,
    SHARES,
    RoutingCurve,
    add_reference_routers,
    average_over_splits,
    average_over_tasks,
    gain_kept,
    share_needed,
)
from tracecal.estimators.estimator import TRACE_PLUS

KEYS = ("small", "large")
# What `task_curves` needs of each answer: which model is right, and what each costs.
COLUMNS = ("small", "large", "small_cost", "large_cost")
# The metric 'needed': the share escalated with an accuracy at most BELOW under the large model's.
BELOW = 0.01
# The metrics 'gain_kept_at_...': the gain at these shares, where it is at least LEAST_GAIN. A share
# of a smaller gain would say little.
KEPT_AT, LEAST_GAIN = (0.1, 0.2, 0.3), 0.05
# Signs of metrics: 1 if larger is better, else -1.
SIGNS = {
    "area": 1.0,
    **{f"gain_kept_at_{100 * share:.0f}": 1.0 for share in KEPT_AT},
    "needed": -1.0,
}
# Rows without a router: the shares of answers that each model, or only one of them, gets right, and
# the mean costs of a question by one model alone.
FACTS = ("small_right", "large_right", "small_alone_right", "large_alone_right")
COSTS = ("small_cost", "large_cost")
# The router with the best baseline of each metric in hindsight.
BEST = "best_baseline"
ROWS = {
    **dict.fromkeys(("task", "router", "metric"), pl.String),
    **dict.fromkeys(("share", "value", "low", "high"), pl.Float64),
    **dict.fromkeys(("over_random", "over_random_low", "over_random_high"), pl.Float64),
    **dict.fromkeys(("trace_plus_over", "trace_plus_over_low", "trace_plus_over_high"), pl.Float64),
    "level": pl.Float64,
    "n": pl.Int64,
}
NOTHING = "No two models share a task on which the second costs more and is more often right."


class TaskCurves(NamedTuple):
    """Routers' curves, FACTS, COSTS and the number of answers, for a task or as a mean."""

    curves: Mapping[str, RoutingCurve]
    facts: Mapping[str, float]
    n: int


def task_curves(
    answers: pl.DataFrame,
    predictions: pl.DataFrame,
    splits: pl.DataFrame,
    task: str,
    estimators: Sequence[str],
    bootstrap: Sequence[float],
) -> TaskCurves:
    """Measure each router on one task, on the evaluation parts of its splits.

    Parameters
    ----------
    answers : polars.DataFrame
        `example_id`, `group_id` and COLUMNS.
    predictions : polars.DataFrame
        The small model's `estimator`, `split`, `example_id` and `probability`.
    splits : polars.DataFrame
        `example_id`, `split` and `part`.
    task : str
        Name of the task, which seeds the drawn splits.
    estimators : sequence of str
        The estimators that route.
    bootstrap : sequence of float
        The values of a `Resampling`.
    """
    seed, resamples, _ = Resampling(*bootstrap)
    answers = answers.sort("example_id")
    small, large, small_cost, large_cost = (
        answers[name].cast(pl.Float64).to_numpy() for name in COLUMNS
    )
    gain = large - small
    numbers = splits["split"].unique().sort()
    grid = answers.select("example_id").join(pl.DataFrame({"split": numbers}), how="cross")
    grid = grid.sort("split", "example_id")

    def pivot(frame: pl.DataFrame, column: str) -> np.ndarray:
        """A column of `frame` by split and answer, [splits, n]."""
        joined = grid.join(frame, on=["split", "example_id"], how="left", maintain_order="left")
        return joined[column].to_numpy().reshape(len(numbers), len(answers))

    evaluated = pivot(splits, "part") == "evaluation"
    probabilities = {
        name: pivot(predictions.filter(estimator=name), "probability").astype(float)
        for name in estimators
    }
    resampled_counts = draw_counts(answers["group_id"].to_list(), seed, resamples)
    counts = np.vstack([np.ones(len(answers)), resampled_counts])
    split_counts = draw_splits(len(numbers), task, seed, resamples)
    curves = {
        name: average_over_splits(
            by_split, evaluated, small, large, large_cost, counts, split_counts
        )
        for name, by_split in add_reference_routers(probabilities, gain, len(numbers)).items()
    }
    # Means over the evaluation parts, like the curves.
    values = (small, large, gain < 0, gain > 0, small_cost, large_cost)
    facts = {
        name: float(np.mean([column[part].mean() for part in evaluated]))
        for name, column in zip((*FACTS, *COSTS), values, strict=True)
    }
    return TaskCurves(curves, facts, len(answers))


def cascade_table(
    by_task: Mapping[str, TaskCurves], baselines: Sequence[str], level: float
) -> pl.DataFrame:
    """Return the rows (`ROWS`) of a pair of models: for each task, and without task for their mean.

    'accuracy' and 'cost' stand at each of SHARES, then SIGNS of each router with intervals:
    `over_random` is by how much it beats random routing, `trace_plus_over` by how much TRACE+ beats
    it. The router BEST has the value of the best of `baselines` for each metric, an oracle without
    intervals. FACTS and COSTS have no router.
    """
    tasks = list(by_task.values())
    mean = TaskCurves(
        {
            name: average_over_tasks([task.curves[name] for task in tasks])
            for name in tasks[0].curves
        },
        {fact: float(np.mean([task.facts[fact] for task in tasks])) for fact in tasks[0].facts},
        sum(task.n for task in tasks),
    )
    rows: list[dict[str, Any]] = []
    for name, measured in [*by_task.items(), (None, mean)]:
        common = {"task": name, "n": measured.n, "level": level}
        rows += [
            common | {"metric": fact, "value": value} for fact, value in measured.facts.items()
        ]
        for router, curve in measured.curves.items():
            shared = common | {"router": router}
            rows += _curve_rows(curve, measured.facts["small_cost"], level, shared)
        rows += _metric_rows(measured.curves, baselines, level, common)
    return pl.DataFrame(rows, schema=ROWS).with_columns(pl.col(pl.Float64).fill_nan(None))


def _curve_rows(
    curve: RoutingCurve, small_cost: float, level: float, common: Mapping[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for share, accuracy, cost in zip(SHARES.tolist(), curve.accuracy.T, curve.cost, strict=True):
        keys = {**common, "share": share}
        low, high, _ = interval(accuracy[1:], level)
        ends = {"low": low, "high": high}
        rows.append(keys | {"metric": "accuracy", "value": accuracy[0]} | ends)
        rows.append(keys | {"metric": "cost", "value": small_cost + cost})
    return rows


def curve_metrics(curve: RoutingCurve) -> dict[str, np.ndarray]:
    """The metrics of SIGNS, [1 + resamples]; a share of a gain below LEAST_GAIN is NaN."""
    gain = curve.accuracy[0, -1] - curve.accuracy[0, 0]
    defined = np.full_like(curve.area, 1.0 if gain > LEAST_GAIN - 1e-12 else np.nan)
    gains = {f"gain_kept_at_{100 * at:.0f}": defined * gain_kept(curve, at) for at in KEPT_AT}
    return {"area": curve.area, **gains, "needed": share_needed(curve, BELOW)}


def _metric_rows(
    curves: Mapping[str, RoutingCurve],
    baselines: Sequence[str],
    level: float,
    common: Mapping[str, Any],
) -> list[dict[str, Any]]:
    rows = []
    by_router = {router: curve_metrics(curve) for router, curve in curves.items()}
    undefined = np.full(1, np.nan)
    for metric, sign in SIGNS.items():
        values = {router: metrics[metric] for router, metrics in by_router.items()}
        trace_plus = values.get(TRACE_PLUS, undefined)
        rivals = [values[name] for name in baselines if not np.isnan(values[name][0])]
        if baselines:
            best = max(rivals, key=lambda rival, sign=sign: sign * rival[0], default=undefined)
            values[BEST] = best[:1]
        for router, resamples in values.items():
            n = min(len(resamples), len(trace_plus))
            over_random = sign * resamples - sign * values[RANDOM][: len(resamples)]
            trace_plus_over = sign * trace_plus[:n] - sign * resamples[:n]
            rows.append(
                {**common, "router": router, "metric": metric}
                | _with_interval("", resamples, level)
                | _with_interval("over_random", over_random, level)
                | _with_interval("trace_plus_over", trace_plus_over, level)
            )
    return rows


def _with_interval(column: str, values: np.ndarray, level: float) -> dict[str, float | None]:
    """The value of the sample and the interval of the resamples, from [1 + resamples]."""
    low, high, _ = interval(values[1:], level)
    prefix = f"{column}_" if column else ""
    return {column or "value": float(values[0]), f"{prefix}low": low, f"{prefix}high": high}


def select_worthwhile(cascades: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Return the mean rows of the pairs that are worth a cascade, and the facts of the others.

    In the other pairs the large model gains at most BELOW, or costs no more than the small one.
    """
    means = cascades.filter(pl.col("task").is_null())
    facts = means.filter(pl.col("router").is_null(), pl.col("metric").is_in([*FACTS, *COSTS]))
    pairs = facts.pivot("metric", index=KEYS, values="value", maintain_order=True)
    if pairs.is_empty():
        return means, []
    gains = pl.col("large_right") - pl.col("small_right") > BELOW
    costs_more = (pl.col("large_cost") > pl.col("small_cost")).fill_null(True)
    worthwhile = pairs.filter(gains & costs_more).select(KEYS)
    return (
        means.join(worthwhile, on=KEYS, how="semi", maintain_order="left"),
        pairs.filter(~(gains & costs_more)).to_dicts(),
    )
