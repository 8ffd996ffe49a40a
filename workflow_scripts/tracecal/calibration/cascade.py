"""What a cascade of two models is worth."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.resampling import Bootstrap, draw_counts, draw_splits, interval
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
from tracecal.estimators.entry import TRACE_PLUS

# Points of accuracy that a cascade may lack of the large model's in 'needed'.
BELOW = 0.01
# A share of a smaller gain in accuracy would say little.
LEAST_GAIN = 0.05
KEPT_AT = (0.1, 0.2, 0.3)
# By metric: 1 where larger is better.
SIGNS = {"area": 1.0, **{f"gain_kept_at_{100 * at:.0f}": 1.0 for at in KEPT_AT}, "needed": -1.0}
# Of a pair, without a router: shares of the answers that are right, that only the small or only the
# large model gets right, and mean costs of a question by one model alone.
FACTS = ("small_right", "large_right", "small_alone_right", "large_alone_right")
COSTS = ("small_cost", "large_cost")
# The best baseline in hindsight, of each metric.
BEST = "best_baseline"
ROWS = {
    **dict.fromkeys(("task", "router", "metric"), pl.String),
    **dict.fromkeys(("share", "value", "low", "high"), pl.Float64),
    **dict.fromkeys(("over_random", "over_random_low", "over_random_high"), pl.Float64),
    **dict.fromkeys(("trace_plus_over", "trace_plus_over_low", "trace_plus_over_high"), pl.Float64),
    "level": pl.Float64,
    "n": pl.Int64,
}


class TaskCurves(NamedTuple):
    """A task, or the mean over several: its routers' curves, its FACTS and COSTS, and how many
    answers.
    """

    curves: Mapping[str, RoutingCurve]
    facts: Mapping[str, float]
    n: int


def cascade_table(
    by_task: Mapping[str, TaskCurves], baselines: Sequence[str], level: float
) -> pl.DataFrame:
    """ROWS of one pair of models: for each task, and without `task` for the mean over them.

    'accuracy' and 'cost' at each of SHARES, then SIGNS of each router with intervals, `over_random`
    by how much it is better than random routing, `trace_plus_over` by how much TRACE+ is better
    than it. The rows of the router BEST have of each metric the value of the best of `baselines`,
    an oracle without intervals. FACTS and COSTS have no router.
    """
    every = list(by_task.values())
    mean = TaskCurves(
        {name: average_over_tasks([one.curves[name] for one in every]) for name in every[0].curves},
        {fact: float(np.mean([one.facts[fact] for one in every])) for fact in every[0].facts},
        sum(one.n for one in every),
    )
    rows: list[dict[str, Any]] = []
    for task, own in [*by_task.items(), (None, mean)]:
        common = {"task": task, "n": own.n, "level": level}
        rows += [common | {"metric": fact, "value": value} for fact, value in own.facts.items()]
        for name, curve in own.curves.items():
            rows += _of_curve(curve, own.facts["small_cost"], level, common | {"router": name})
        rows += _measures(own.curves, baselines, level, common)
    return pl.DataFrame(rows, schema=ROWS).with_columns(pl.col(pl.Float64).fill_nan(None))


def _of_curve(
    curve: RoutingCurve, small_cost: float, level: float, common: Mapping[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for share, accuracy, cost in zip(SHARES.tolist(), curve.accuracy.T, curve.cost, strict=True):
        at = {**common, "share": share}
        low, high, _ = interval(accuracy[1:], level)
        ends = {"low": low, "high": high}
        rows.append(at | {"metric": "accuracy", "value": accuracy[0]} | ends)
        rows.append(at | {"metric": "cost", "value": small_cost + cost})
    return rows


def curve_measures(curve: RoutingCurve) -> dict[str, np.ndarray]:
    """SIGNS of a curve, [1 + resamples]; the gain kept is NaN of less than LEAST_GAIN."""
    gain = curve.accuracy[0, -1] - curve.accuracy[0, 0]
    told = np.full_like(curve.area, 1.0 if gain > LEAST_GAIN - 1e-12 else np.nan)
    kept = {f"gain_kept_at_{100 * at:.0f}": told * gain_kept(curve, at) for at in KEPT_AT}
    return {"area": curve.area, **kept, "needed": share_needed(curve, BELOW)}


def _measures(
    curves: Mapping[str, RoutingCurve],
    baselines: Sequence[str],
    level: float,
    common: Mapping[str, Any],
) -> list[dict[str, Any]]:
    rows = []
    found = {name: curve_measures(curve) for name, curve in curves.items()}
    undefined = np.full(1, np.nan)
    for metric, sign in SIGNS.items():
        values = {name: measured[metric] for name, measured in found.items()}
        trace_plus = values.get(TRACE_PLUS, undefined)
        rivals = [values[name] for name in baselines if not np.isnan(values[name][0])]
        if baselines:
            best = max(rivals, key=lambda one, sign=sign: sign * one[0], default=undefined)
            values[BEST] = best[:1]
        for name, drawn in values.items():
            row = {**common, "router": name, "metric": metric} | _bounded("", drawn, level)
            random = values[RANDOM][: len(drawn)]
            row |= _bounded("over_random", sign * drawn - sign * random, level)
            n = min(len(drawn), len(trace_plus))
            rows.append(
                row | _bounded("trace_plus_over", sign * trace_plus[:n] - sign * drawn[:n], level)
            )
    return rows


def _bounded(column: str, values: np.ndarray, level: float) -> dict[str, float | None]:
    """The value of the sample and the interval of the resamples, [1 + resamples]."""
    low, high, _ = interval(values[1:], level)
    start = f"{column}_" if column else ""
    return {column or "value": float(values[0]), f"{start}low": low, f"{start}high": high}


KEYS = ("small", "large")
COLUMNS = ("small", "large", "small_cost", "large_cost")


def task_curves(
    answers: pl.DataFrame,
    predictions: pl.DataFrame,
    splits: pl.DataFrame,
    task: str,
    estimators: Sequence[str],
    bootstrap: Sequence[float],
) -> TaskCurves:
    """The curves of each router on one task.

    `answers` has `example_id`, `group_id` and COLUMNS; `predictions` has the
    small model's `estimator`, `split`, `example_id` and `probability`; `splits` has `part`.
    """
    seed, resamples, _ = Bootstrap(*bootstrap)
    answers = answers.sort("example_id")
    small, large, small_cost, large_cost = (
        answers[name].cast(pl.Float64).to_numpy() for name in COLUMNS
    )
    better = large - small
    numbers = splits["split"].unique().sort()
    grid = answers.select("example_id").join(pl.DataFrame({"split": numbers}), how="cross")
    grid = grid.sort("split", "example_id")

    def columns(frame: pl.DataFrame, name: str) -> np.ndarray:
        """A column of `frame` by split and answer, [splits, n]."""
        joined = grid.join(frame, on=["split", "example_id"], how="left", maintain_order="left")
        return joined[name].to_numpy().reshape(len(numbers), len(answers))

    evaluated = columns(splits, "part") == "evaluation"
    probabilities = {
        name: columns(predictions.filter(estimator=name), "probability").astype(float)
        for name in estimators
    }
    counts = np.vstack(
        [np.ones(len(answers)), draw_counts(answers["group_id"].to_list(), seed, resamples)]
    )
    in_resample = draw_splits(len(numbers), task, seed, resamples)
    told = (small, large, large_cost, counts, in_resample)
    curves = {
        name: average_over_splits(own, evaluated, *told)
        for name, own in add_reference_routers(probabilities, better, len(numbers)).items()
    }
    # Of the evaluation parts, as the curves are.
    every = (small, large, better < 0, better > 0, small_cost, large_cost)
    facts = {
        name: float(np.mean([values[part].mean() for part in evaluated]))
        for name, values in zip((*FACTS, *COSTS), every, strict=True)
    }
    return TaskCurves(curves, facts, len(answers))


NOTHING = "No two models share a task on which the second costs more and is more often right."


def select_worthwhile(found: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """The means over tasks of the pairs that are worth a cascade; the facts of the others.

    In the latter the large model gains no more than BELOW, or costs no more than the small one.
    """
    means = found.filter(pl.col("task").is_null())
    facts = means.filter(pl.col("router").is_null(), pl.col("metric").is_in([*FACTS, *COSTS]))
    pairs = facts.pivot("metric", index=KEYS, values="value", maintain_order=True)
    if pairs.is_empty():
        return means, []
    gains = pl.col("large_right") - pl.col("small_right") > BELOW
    costs = (pl.col("large_cost") > pl.col("small_cost")).fill_null(True)
    kept = pairs.filter(gains & costs).select(KEYS)
    return (
        means.join(kept, on=KEYS, how="semi", maintain_order="left"),
        pairs.filter(~(gains & costs)).to_dicts(),
    )
