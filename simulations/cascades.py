"""Do the guarantees of cascades hold, and do the intervals of a cascade's worth cover it?

A population generates groups of questions, and how often either model is right by the small one's
score. Each run draws a task and goes through splits, fit and threshold. A guarantee is broken if the
true expectation of what it bounds exceeds the guaranteed rate. Most populations are unfavourable:
they just miss the rate where much is kept, so that most guarantees that keep so much are false.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr

from simulations.claims import MISSED, Claim
from tracecal.calibration.bets import significance_level
from tracecal.calibration.cascade import cascade_table, task_curves
from tracecal.calibration.cascade_guarantee import find_cascade_guarantee
from tracecal.calibration.fits import Fit, fit
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.rated_answers import Bound, split_paired_answers
from tracecal.calibration.splits import make_splits

CONFIDENCE = 0.9
REFERENCE = 20_000  # groups that stand for the truth

Chance = Callable[[np.ndarray], np.ndarray]


def constant_chance(chance: float) -> Chance:
    return lambda score: np.full(len(score), chance)


def rising_chance(low: float, high: float) -> Chance:
    return lambda score: low + (high - low) * ndtr(2 * score)


@dataclass(frozen=True)
class CascadeAnswers:
    """Answers of two models in the order of their groups, with the true chances: arrays [answers]."""

    group: np.ndarray
    score: np.ndarray
    small: np.ndarray
    large: np.ndarray
    small_chance: np.ndarray
    large_chance: np.ndarray


@dataclass(frozen=True)
class CascadePopulation:
    """A population of groups of questions for two models.

    Attributes
    ----------
    groups : int
        Groups of a task.
    sizes : tuple of int
        Sizes of groups, equally frequent.
    small, large : callable
        The chance that each model is right, from the score.
    bound, target :
        What is guaranteed.
    correlation : float
        Share of a score and of both models' luck that a whole group has in common.
    score : callable
        Makes scores of standard normal numbers.
    lowest_score : float
        Answers with a lower score lack it.
    """

    groups: int
    sizes: tuple[int, ...]
    small: Chance
    large: Chance
    bound: Bound
    target: float
    correlation: float = 0.0
    score: Chance = lambda x: x
    lowest_score: float = -np.inf

    def draw(self, rng: np.random.Generator, groups: int) -> CascadeAnswers:
        group = np.repeat(np.arange(groups), rng.choice(self.sizes, groups))
        score = self.score(self._correlated(rng, group))
        chances = self.small(score), self.large(score)
        right = [ndtr(self._correlated(rng, group)) < chance for chance in chances]
        scores = np.where(score < self.lowest_score, np.nan, score)
        return CascadeAnswers(group, scores, *right, *chances)

    def _correlated(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        common = rng.normal(size=group[-1] + 1)[group]
        return np.sqrt(self.correlation) * common + np.sqrt(1 - self.correlation) * rng.normal(
            size=len(group)
        )


JUST_MISSED = (constant_chance(0.7), constant_chance(0.76))
POPULATIONS = {
    "single questions, just missed where all is kept": CascadePopulation(
        300, (1,), *JUST_MISSED, "below", 0.05
    ),
    "single questions, the small model knows": CascadePopulation(
        400, (1,), rising_chance(0.3, 0.95), constant_chance(0.9), "below", 0.05
    ),
    "few questions": CascadePopulation(
        90, (1,), rising_chance(0.4, 0.9), constant_chance(0.88), "below", 0.1
    ),
    "the most confident mislead": CascadePopulation(
        300,
        (1,),
        lambda s: np.where(s > 1, 0.5, np.where(s > 0, 0.9, 0.3)),
        constant_chance(0.9),
        "below",
        0.05,
    ),
    "groups of 4, alike": CascadePopulation(
        120, (4,), *JUST_MISSED, "below", 0.05, correlation=0.8
    ),
    "groups of 1 and 7": CascadePopulation(
        120, (1, 7), rising_chance(0.4, 0.9), constant_chance(0.9), "below", 0.1, 0.5
    ),
    "ties: three different scores": CascadePopulation(
        300, (1,), *JUST_MISSED, "below", 0.05, score=lambda x: np.clip(np.round(x), -1, 1)
    ),
    "one constant score": CascadePopulation(
        200, (1, 4), *JUST_MISSED, "below", 0.05, 0.5, np.zeros_like
    ),
    "an accuracy, just missed": CascadePopulation(
        400, (1,), rising_chance(0.3, 0.9), constant_chance(0.79), "at_least", 0.8
    ),
    "an accuracy, groups of 4": CascadePopulation(
        120, (4,), rising_chance(0.3, 0.95), constant_chance(0.9), "at_least", 0.8, correlation=0.5
    ),
    "groups of 1 to 20, alike, just missed": CascadePopulation(
        200, (1, 2, 3, 20), *JUST_MISSED, "below", 0.05, correlation=0.8
    ),
    "an accuracy, groups of 1 to 5": CascadePopulation(
        200,
        (1, 2, 3, 4, 5),
        rising_chance(0.3, 0.9),
        constant_chance(0.79),
        "at_least",
        0.8,
        correlation=0.5,
    ),
    "the large model alone knows what has no score, just missed": CascadePopulation(
        400,
        (1, 2),
        lambda s: np.where(s < -1, 0.0, 0.7),
        lambda s: np.where(s < -1, 1.0, 0.76),
        "below",
        0.05,
        lowest_score=-1.0,
    ),
    "an accuracy, the small model alone knows what has no score": CascadePopulation(
        300,
        (1, 2),
        lambda s: np.where(s < -1, 0.98, 0.84),
        lambda s: np.where(s < -1, 0.1, 0.84),
        "at_least",
        0.8,
        lowest_score=-1.0,
    ),
}


def true_loss(
    reference: CascadeAnswers,
    probability: np.ndarray,
    threshold: float,
    bound: Bound,
    largest_group: int = 1,
) -> float:
    """The true expectation of what the guarantee bounds, where groups count as in it."""
    weight = 1 / np.maximum(np.bincount(reference.group)[reference.group], largest_group)
    is_kept = probability >= threshold  # never without a score
    loss = (
        (reference.large_chance - reference.small_chance) * is_kept
        if bound == "below"
        else 1 - np.where(is_kept, reference.small_chance, reference.large_chance)
    )
    return float((weight * loss).sum() / weight.sum())


def find_threshold(
    answers: CascadeAnswers, seed: int, population: CascadePopulation
) -> tuple[Fit, float | None, int]:
    """Fit a calibrator and find the guaranteed threshold.

    The third value is how many answers of a group count at most.
    """
    ids = [f"{number:05}" for number in range(len(answers.group))]
    columns = {"score": answers.score, "small": answers.small, "large": answers.large}
    frame = pl.DataFrame({"example_id": ids, "group_id": answers.group, **columns})
    split = make_splits(frame.select("example_id", "group_id"), "task", seed, 1, 0.35)
    ordered = frame.join(split, on="example_id")
    scored = ordered.filter(~pl.col("score").is_nan(), part="calibration")
    calibrator = fit(scored.select("score").to_numpy(), scored["small"].to_numpy(), "platt")
    probability = pl.Series(calibrator.predict(ordered.select("score").to_numpy()))
    calibration, evaluation = split_paired_answers(
        ordered.with_columns(probability=probability.fill_nan(None))
    )
    level = significance_level(CONFIDENCE)
    guarantee = find_cascade_guarantee(
        calibration, evaluation, population.bound, population.target, level
    )
    return calibrator, guarantee.threshold, calibration.largest_group


def count_broken(population: CascadePopulation, runs: int, seed: int) -> tuple[int, int]:
    """Count the runs with a guarantee, and those with a broken one."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    bound, target = population.bound, population.target
    rate = target if bound == "below" else 1 - target
    n_guaranteed = n_broken = 0
    for run in range(runs):
        answers = population.draw(rng, population.groups)
        calibrator, threshold, largest_group = find_threshold(answers, run, population)
        if threshold is not None:
            n_guaranteed += 1
            probability = calibrator.predict(reference.score[:, None])
            loss = true_loss(reference, probability, threshold, bound, largest_group)
            n_broken += loss > rate
    return n_guaranteed, n_broken


def claims(runs: int, names: Sequence[str] = tuple(POPULATIONS)) -> Iterator[Claim]:
    for seed, name in enumerate(names):
        population = POPULATIONS[name]
        n_guaranteed, n_broken = count_broken(population, runs, seed)
        bound = "large − {:g}" if population.bound == "below" else "≥ {:g}"
        share = f"{n_guaranteed / runs:.0%} guaranteed"
        claim = f"cascade {bound.format(population.target)}: {name} ({share})"
        yield Claim(claim, runs, n_broken, 1 - CONFIDENCE)


WORTH = ("single questions, the small model knows", "few questions", "groups of 1 and 7")
METRICS = ("area", "gain_kept_at_20", "needed")
COMPARISONS = ("over_random", "trace_plus_over")


def measure_worth(answers: CascadeAnswers, seed: int, rng: np.random.Generator) -> pl.DataFrame:
    """Measure TRACE+ and its comparisons with intervals: `of`, `value`, `low` and `high`.

    TRACE+ stands for the score, and a baseline sees it with noise; costs do not matter.
    """
    ids = [f"{number:05}" for number in range(len(answers.group))]
    columns = {"correct": answers.small, "small": answers.small, "large": answers.large}
    rivals = {"trace_plus": answers.score, "b": answers.score + rng.normal(size=len(ids))}
    costs = dict.fromkeys(("small_cost", "large_cost"), np.ones(len(ids)))
    frame = pl.DataFrame(
        {"example_id": ids, "group_id": answers.group.astype(str), **columns, **rivals, **costs}
    )
    splits = make_splits(frame.select("example_id", "group_id"), "t", seed, 20, 0.35)
    inputs = {name: [name] for name in rivals}
    predictions, _ = calibrate_all(frame, splits, inputs, "platt")
    curves = task_curves(frame, predictions, splits, "t", list(rivals), [seed, 200, 0.95])
    table = cascade_table({"t": curves}, ["b"], 0.95)
    rows = table.filter(pl.col("metric").is_in(METRICS), task="t")
    trace_plus, baseline = (rows.filter(router=name) for name in rivals)
    values = {"value": trace_plus.select("metric", "value", "low", "high")}
    for name, rows in zip(COMPARISONS, (trace_plus, baseline), strict=True):
        values[name] = rows.select("metric", value=name, low=f"{name}_low", high=f"{name}_high")
    return pl.concat(
        rows.with_columns(of=pl.format(f"{name} of {{}}", "metric"))
        for name, rows in values.items()
    )


def intervals(runs: int, names: Sequence[str] = WORTH) -> Iterator[Claim]:
    """A claim is broken where an interval misses the mean over the runs."""
    for seed, name in enumerate(names):
        rng, population = np.random.default_rng([seed, 1]), POPULATIONS[name]
        measured = pl.concat(
            measure_worth(population.draw(rng, population.groups), run, rng) for run in range(runs)
        )
        mean = pl.col("value").mean()
        outside = (mean < pl.col("low")) | (mean > pl.col("high"))
        for of, broken in (
            measured.group_by("of", maintain_order=True).agg(outside.sum()).iter_rows()
        ):
            yield Claim(f"interval, cascades, {of}: {name}", runs, broken, MISSED)
