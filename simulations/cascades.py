"""Do the guarantees of cascades hold, from drawn splits over the fit to the threshold, and do the
intervals of what a cascade is worth cover it?

Each population says how a group comes about and how often either model is right by the small one's
score. A guarantee is broken where the true expectation of what it bounds is above the guaranteed rate.
Most populations are unfavourable: it is just missed where much is kept, so that most guarantees that
reach so far are false ones.
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
REFERENCE = 20_000  # groups by which the truth is known

Chance = Callable[[np.ndarray], np.ndarray]


def always(chance: float) -> Chance:
    return lambda score: np.full(len(score), chance)


def rising(low: float, high: float) -> Chance:
    return lambda score: low + (high - low) * ndtr(2 * score)


@dataclass(frozen=True)
class Answers:
    """Answers in order of their groups: arrays [answers]; the chances are the truth."""

    group: np.ndarray
    score: np.ndarray
    small: np.ndarray
    large: np.ndarray
    small_chance: np.ndarray
    large_chance: np.ndarray


@dataclass(frozen=True)
class Population:
    """`sizes` of groups, equally frequent; the chances that the models are right, by the score,
    which answers of a lower one than `known_from` lack.

    `alike` in [0, 1] is how much of a score and of both models' luck all of a group share. `score`
    makes a score of a standard normal number.
    """

    groups: int
    sizes: tuple[int, ...]
    small: Chance
    large: Chance
    promise: Bound
    promised: float
    alike: float = 0.0
    score: Chance = lambda x: x
    known_from: float = -np.inf

    def draw(self, rng: np.random.Generator, groups: int) -> Answers:
        group = np.repeat(np.arange(groups), rng.choice(self.sizes, groups))
        score = self.score(self._shared(rng, group))
        chances = self.small(score), self.large(score)
        right = [ndtr(self._shared(rng, group)) < chance for chance in chances]
        known = np.where(score < self.known_from, np.nan, score)
        return Answers(group, known, *right, *chances)

    def _shared(self, rng: np.random.Generator, group: np.ndarray) -> np.ndarray:
        common = rng.normal(size=group[-1] + 1)[group]
        return np.sqrt(self.alike) * common + np.sqrt(1 - self.alike) * rng.normal(size=len(group))


JUST_MISSED = (always(0.7), always(0.76))
POPULATIONS = {
    "single questions, just missed where all is kept": Population(
        300, (1,), *JUST_MISSED, "below", 0.05
    ),
    "single questions, the small model knows": Population(
        400, (1,), rising(0.3, 0.95), always(0.9), "below", 0.05
    ),
    "few questions": Population(90, (1,), rising(0.4, 0.9), always(0.88), "below", 0.1),
    "the most confident mislead": Population(
        300,
        (1,),
        lambda s: np.where(s > 1, 0.5, np.where(s > 0, 0.9, 0.3)),
        always(0.9),
        "below",
        0.05,
    ),
    "groups of 4, alike": Population(120, (4,), *JUST_MISSED, "below", 0.05, alike=0.8),
    "groups of 1 and 7": Population(120, (1, 7), rising(0.4, 0.9), always(0.9), "below", 0.1, 0.5),
    "ties: three different scores": Population(
        300, (1,), *JUST_MISSED, "below", 0.05, score=lambda x: np.clip(np.round(x), -1, 1)
    ),
    "one constant score": Population(200, (1, 4), *JUST_MISSED, "below", 0.05, 0.5, np.zeros_like),
    "an accuracy, just missed": Population(
        400, (1,), rising(0.3, 0.9), always(0.79), "at_least", 0.8
    ),
    "an accuracy, groups of 4": Population(
        120, (4,), rising(0.3, 0.95), always(0.9), "at_least", 0.8, alike=0.5
    ),
    "groups of 1 to 20, alike, just missed": Population(
        200, (1, 2, 3, 20), *JUST_MISSED, "below", 0.05, alike=0.8
    ),
    "an accuracy, groups of 1 to 5": Population(
        200, (1, 2, 3, 4, 5), rising(0.3, 0.9), always(0.79), "at_least", 0.8, alike=0.5
    ),
    "the large model alone knows what has no score, just missed": Population(
        400,
        (1, 2),
        lambda s: np.where(s < -1, 0.0, 0.7),
        lambda s: np.where(s < -1, 1.0, 0.76),
        "below",
        0.05,
        known_from=-1.0,
    ),
    "an accuracy, the small model alone knows what has no score": Population(
        300,
        (1, 2),
        lambda s: np.where(s < -1, 0.98, 0.84),
        lambda s: np.where(s < -1, 0.1, 0.84),
        "at_least",
        0.8,
        known_from=-1.0,
    ),
}


def true_loss(
    reference: Answers, probability: np.ndarray, threshold: float, of: Bound, most: int
) -> float:
    """What the guarantee bounds, of groups that count with at most so many answers."""
    weight = 1 / np.maximum(np.bincount(reference.group)[reference.group], most)
    kept = probability >= threshold  # never where there is no score
    lost = (
        (reference.large_chance - reference.small_chance) * kept
        if of == "below"
        else 1 - np.where(kept, reference.small_chance, reference.large_chance)
    )
    return float((weight * lost).sum() / weight.sum())


def guaranteed(drawn: Answers, seed: int, population: Population) -> tuple[Fit, float | None, int]:
    """The calibrator of a split of the drawn answers, the threshold with its guarantee, and with how many
    answers a group counts at most.
    """
    ids = [f"{place:05}" for place in range(len(drawn.group))]
    columns = {"score": drawn.score, "small": drawn.small, "large": drawn.large}
    frame = pl.DataFrame({"example_id": ids, "group_id": drawn.group, **columns})
    split = make_splits(frame.select("example_id", "group_id"), "task", seed, 1, 0.35)
    ordered = frame.join(split, on="example_id")
    known = ordered.filter(~pl.col("score").is_nan(), part="calibration")
    calibrator = fit(known.select("score").to_numpy(), known["small"].to_numpy(), "platt")
    probability = pl.Series(calibrator.predict(ordered.select("score").to_numpy()))
    seen, tested = split_paired_answers(
        ordered.with_columns(probability=probability.fill_nan(None))
    )
    level = significance_level(CONFIDENCE)
    found = find_cascade_guarantee(seen, tested, population.promise, population.promised, level)
    return calibrator, found.threshold, seen.largest_group


def broken(population: Population, runs: int, seed: int) -> tuple[int, int]:
    """In how many of the runs there is a guarantee, and in how many a false one."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    promise, promised = population.promise, population.promised
    rate = promised if promise == "below" else 1 - promised
    made = false = 0
    for run in range(runs):
        drawn = population.draw(rng, population.groups)
        calibrator, threshold, most = guaranteed(drawn, run, population)
        if threshold is not None:
            made += 1
            probability = calibrator.predict(reference.score[:, None])
            false += true_loss(reference, probability, threshold, promise, most) > rate
    return made, false


def claims(runs: int, names: Sequence[str] = tuple(POPULATIONS)) -> Iterator[Claim]:
    for seed, name in enumerate(names):
        population = POPULATIONS[name]
        made, false = broken(population, runs, seed)
        bound = "large − {:g}" if population.promise == "below" else "≥ {:g}"
        claim = (
            f"cascade {bound.format(population.promised)}: {name} ({made / runs:.0%} guaranteed)"
        )
        yield Claim(claim, runs, false, 1 - CONFIDENCE)


WORTH = ("single questions, the small model knows", "few questions", "groups of 1 and 7")
METRICS = ("area", "gain_kept_at_20", "needed")
ENDS = ("over_random", "trace_plus_over")


def worth(drawn: Answers, seed: int, rng: np.random.Generator) -> pl.DataFrame:
    """`of`, `value`, `low` and `high` of TRACE+, which stands for the score, and over a baseline
    that sees it with noise; costs do not matter.
    """
    ids = [f"{place:05}" for place in range(len(drawn.group))]
    columns = {"correct": drawn.small, "small": drawn.small, "large": drawn.large}
    rivals = {"trace_plus": drawn.score, "b": drawn.score + rng.normal(size=len(ids))}
    costs = dict.fromkeys(("small_cost", "large_cost"), np.ones(len(ids)))
    frame = pl.DataFrame(
        {"example_id": ids, "group_id": drawn.group.astype(str), **columns, **rivals, **costs}
    )
    splits = make_splits(frame.select("example_id", "group_id"), "t", seed, 20, 0.35)
    inputs = {name: [name] for name in rivals}
    predictions, _ = calibrate_all(frame, splits, inputs, "platt")
    told = task_curves(frame, predictions, splits, "t", list(rivals), [seed, 200, 0.95])
    rows = cascade_table({"t": told}, ["b"], 0.95).filter(pl.col("metric").is_in(METRICS), task="t")
    own, rival = (rows.filter(router=name) for name in rivals)
    found = {"value": own.select("metric", "value", "low", "high")}
    for name, frame in zip(ENDS, (own, rival), strict=True):
        found[name] = frame.select("metric", value=name, low=f"{name}_low", high=f"{name}_high")
    return pl.concat(
        one.with_columns(of=pl.format(f"{name} of {{}}", "metric")) for name, one in found.items()
    )


def intervals(runs: int, names: Sequence[str] = WORTH) -> Iterator[Claim]:
    """A claim is broken where an interval leaves out the mean over the runs."""
    for seed, name in enumerate(names):
        rng, population = np.random.default_rng([seed, 1]), POPULATIONS[name]
        found = pl.concat(
            worth(population.draw(rng, population.groups), run, rng) for run in range(runs)
        )
        mean = pl.col("value").mean()
        outside = (mean < pl.col("low")) | (mean > pl.col("high"))
        for of, broken in found.group_by("of", maintain_order=True).agg(outside.sum()).iter_rows():
            yield Claim(f"interval, cascades, {of}: {name}", runs, broken, MISSED)
