"""Cascades: a small model answers, and the least confident answers go to a large one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.metrics import ratio
from tracecal.calibration.resampling import Bootstrap, draw_counts, draw_splits, interval
from tracecal.estimators.entry import TRACE_PLUS

SHARES = np.linspace(0, 1, 101)
RANDOM, ORACLE = "random", "oracle"


@dataclass(frozen=True)
class Curve:
    """Of the sample, then each resample: the `accuracy` at SHARES, [1 + resamples, shares], and its
    `area` over the shares, [1 + resamples]. `cost` is what the large model's answers add to the
    mean cost of a question at SHARES, of the sample; NaN where it is unknown.
    """

    accuracy: np.ndarray
    area: np.ndarray
    cost: np.ndarray


def routing_curve(
    probability: np.ndarray,
    small: np.ndarray,
    large: np.ndarray,
    cost: np.ndarray,
    weights: np.ndarray,
) -> Curve:
    """The curve of one set of answers, arrays [n], under each row of `weights` [B, n]: the first
    is the sample. `small` and `large` say who is right, `cost` is that of the large model's
    answers.

    >>> small, large = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    >>> curve = routed(np.array([0.1, 0.9]), small, large, np.ones(2), np.ones((1, 2)))
    >>> curve.accuracy[0, [0, 25, 50, 100]].tolist(), curve.area[0].item()
    ([0.5, 0.75, 1.0, 1.0], 0.875)
    """
    known = np.nan_to_num(probability, nan=-np.inf)
    order = np.argsort(known, kind="stable")
    tied = np.flatnonzero(np.append(True, np.diff(known[order].clip(min=-2)) != 0))
    ordered = weights[:, order]

    def shares(values: np.ndarray) -> np.ndarray:
        """Cumulative sums at the ends of ties, as shares of all weight, from 0 on."""
        sums = np.cumsum(np.add.reduceat(ordered * values[order], tied, axis=1), axis=1)
        return np.pad(sums / ordered.sum(axis=1, keepdims=True), ((0, 0), (1, 0)))

    escalated, paid = shares(np.ones(len(order))), shares(cost)
    start = weights @ small / weights.sum(axis=1)
    accuracy = start[:, None] + shares(large - small)
    middle = (accuracy[:, 1:] + accuracy[:, :-1]) / 2
    return Curve(
        np.array([np.interp(SHARES, *pair) for pair in zip(escalated, accuracy, strict=True)]),
        (np.diff(escalated) * middle).sum(axis=1),
        np.interp(SHARES, escalated[0], paid[0]),
    )


def over_splits(
    probabilities: Sequence[np.ndarray],
    evaluated: Sequence[np.ndarray],
    small: np.ndarray,
    large: np.ndarray,
    cost: np.ndarray,
    counts: np.ndarray,
    in_resample: np.ndarray,
) -> Curve:
    """The mean of the curves of the splits' evaluation parts.

    By split the `probabilities` [n] and a mask [n] of the `evaluated` answers. `counts`
    [1 + resamples, n] and `in_resample` [splits, 1 + resamples] are the bootstrap's.
    """
    rows = in_resample.shape[1]
    accuracy, area, weight = np.zeros((rows, len(SHARES))), np.zeros(rows), np.zeros(rows)
    costs = []
    for probability, part, drawn in zip(probabilities, evaluated, in_resample, strict=True):
        used = np.flatnonzero((drawn > 0) & (counts @ part > 0))
        own = (probability[part], small[part], large[part], cost[part])
        curve = routing_curve(*own, counts[np.ix_(used, part)])
        accuracy[used] += drawn[used, None] * curve.accuracy
        area[used] += drawn[used] * curve.area
        weight[used] += drawn[used]
        costs.append(curve.cost)
    means = np.array([ratio(column, weight) for column in accuracy.T]).T
    return Curve(means, ratio(area, weight), np.mean(costs, axis=0))


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of several tasks' curves, resample by resample."""
    parts = zip(*((one.accuracy, one.area, one.cost) for one in curves), strict=True)
    return Curve(*(np.mean(part, axis=0) for part in parts))


def gain_kept(curve: Curve, share: float) -> np.ndarray:
    """The gain at `share`, one of SHARES, as a share of that of the large model alone; NaN where
    that is none.
    """
    gain = curve.accuracy - curve.accuracy[:, :1]
    return ratio(gain[:, np.searchsorted(SHARES, share - 1e-9)], gain[:, -1])


def share_needed(curve: Curve, below: float) -> np.ndarray:
    """The smallest share whose accuracy is at most `below` under the large model's."""
    wanted = curve.accuracy[:, -1] - below
    # Rounding must not move an accuracy that is met exactly.
    reached = curve.accuracy >= wanted[:, None] - 1e-12
    first = reached.argmax(axis=1)
    before = np.maximum(first - 1, 0)
    rows = np.arange(len(first))
    low, high = curve.accuracy[rows, before], curve.accuracy[rows, first]
    # Between two of SHARES on the line that joins them.
    part = np.divide(wanted - low, high - low, out=np.ones_like(low), where=high > low)
    needed = SHARES[before] + part.clip(0, 1) * (SHARES[first] - SHARES[before])
    return np.where(np.isnan(wanted), np.nan, needed)


def with_limits(
    probabilities: Mapping[str, np.ndarray], better: np.ndarray, splits: int
) -> dict[str, np.ndarray]:
    """The `probabilities` [splits, n] of estimators, and what stands for RANDOM and ORACLE.

    `better` [n] is d.
    """
    limits = {RANDOM: np.zeros_like(better), ORACLE: -better}
    rows = {name: np.broadcast_to(one, (splits, len(better))) for name, one in limits.items()}
    return {**probabilities, **rows}


# What a cascade of two models is worth, from its routers' curves: the rows of `cascades`.


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


class Routed(NamedTuple):
    """A task, or the mean over several: its routers' curves, its FACTS and COSTS, and how many
    answers.
    """

    curves: Mapping[str, Curve]
    facts: Mapping[str, float]
    n: int


def cascade(by_task: Mapping[str, Routed], baselines: Sequence[str], level: float) -> pl.DataFrame:
    """ROWS of one pair of models: for each task, and without `task` for the mean over them.

    'accuracy' and 'cost' at each of SHARES, then SIGNS of each router with intervals, `over_random`
    by how much it is better than random routing, `trace_plus_over` by how much TRACE+ is better
    than it. The rows of the router BEST have of each metric the value of the best of `baselines`,
    an oracle without intervals. FACTS and COSTS have no router.
    """
    every = list(by_task.values())
    mean = Routed(
        {name: mean_curve([one.curves[name] for one in every]) for name in every[0].curves},
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
    curve: Curve, small_cost: float, level: float, common: Mapping[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for share, accuracy, cost in zip(SHARES.tolist(), curve.accuracy.T, curve.cost, strict=True):
        at = {**common, "share": share}
        low, high, _ = interval(accuracy[1:], level)
        ends = {"low": low, "high": high}
        rows.append(at | {"metric": "accuracy", "value": accuracy[0]} | ends)
        rows.append(at | {"metric": "cost", "value": small_cost + cost})
    return rows


def measures(curve: Curve) -> dict[str, np.ndarray]:
    """SIGNS of a curve, [1 + resamples]; the gain kept is NaN of less than LEAST_GAIN."""
    gain = curve.accuracy[0, -1] - curve.accuracy[0, 0]
    told = np.full_like(curve.area, 1.0 if gain > LEAST_GAIN - 1e-12 else np.nan)
    kept = {f"gain_kept_at_{100 * at:.0f}": told * gain_kept(curve, at) for at in KEPT_AT}
    return {"area": curve.area, **kept, "needed": share_needed(curve, BELOW)}


def _measures(
    curves: Mapping[str, Curve], baselines: Sequence[str], level: float, common: Mapping[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    found = {name: measures(curve) for name, curve in curves.items()}
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


# What an answer costs: prices of tokens where they are given, else parameters times tokens.


# Architectures whose layers are attention and a gated MLP, or experts of which a token uses some.
GATED = frozenset(
    "gemma gemma2 gemma3_text llama mistral mixtral olmo olmo2 phi3 qwen2 qwen2_moe qwen3 "
    "qwen3_moe smollm3".split()
)
BILLION, MILLION, THOUSAND = 1e9, 1e6, 1e3
# Units of a mean cost of a question.
BY_PRICE, BY_PARAMETERS = "price of 1000 questions", "billions of active parameters × tokens"


def active_parameters(config: Mapping[str, Any]) -> int | None:
    """The weights of matrices that one token is multiplied with, by a model's config.json.

    Attention, MLPs (of experts: those that a token uses, and the router) and the output matrix.
    Null for an architecture that is not in GATED, or whose layers differ.
    """
    config = config.get("text_config", config)
    needed = ("hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads")
    differing = config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1
    known = all(config.get(key) for key in (*needed, "intermediate_size"))
    if config.get("model_type") not in GATED or not known or differing:
        return None
    hidden, layers, vocabulary, heads = (config[key] for key in needed)
    shared_heads = config.get("num_key_value_heads") or heads
    head = config.get("head_dim") or hidden // heads
    attention = 2 * hidden * head * (heads + shared_heads)
    experts = config.get("num_local_experts") or config.get("num_experts") or 0
    used = config.get("num_experts_per_tok", 1) if experts else 1
    width = config.get("moe_intermediate_size") if experts else None
    mlp = 3 * hidden * (width or config["intermediate_size"]) * used + hidden * experts
    mlp += 3 * hidden * (config.get("shared_expert_intermediate_size") or 0) * bool(experts)
    return layers * (attention + mlp) + vocabulary * hidden


def answer_costs(
    prompt: np.ndarray,
    generated: np.ndarray,
    price: Mapping[str, float] | None,
    parameters: int | None,
) -> np.ndarray | None:
    """The cost of each answer [n] from its numbers of tokens, so that a mean has the unit above.

    `price` is per million `prompt` and `generated` tokens; without it, `parameters` count. Null
    where both are unknown.
    """
    if price is not None:
        paid = prompt * price["prompt"] + generated * price["generated"]
        return paid / MILLION * THOUSAND
    if parameters is not None:
        return (prompt + generated) * (parameters / BILLION)
    return None


KEYS = ("small", "large")
COLUMNS = ("small", "large", "small_cost", "large_cost")


def routed(
    answers: pl.DataFrame,
    predictions: pl.DataFrame,
    splits: pl.DataFrame,
    task: str,
    estimators: Sequence[str],
    bootstrap: Sequence[float],
) -> Routed:
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
        name: over_splits(own, evaluated, *told)
        for name, own in with_limits(probabilities, better, len(numbers)).items()
    }
    # Of the evaluation parts, as the curves are.
    every = (small, large, better < 0, better > 0, small_cost, large_cost)
    facts = {
        name: float(np.mean([values[part].mean() for part in evaluated]))
        for name, values in zip((*FACTS, *COSTS), every, strict=True)
    }
    return Routed(curves, facts, len(answers))


NOTHING = "No two models share a task on which the second costs more and is more often right."


def divided(found: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
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
