"""Do the promises about cascades hold, from drawn splits over the fit to the threshold?

Each population says how a group comes about and how often either model is right by the small one's
score. A promise is broken where the true expectation of what it bounds is above the promised rate.
Most populations are unfavourable: it is just missed where much is kept, so that most guarantees that
reach so far are false ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr

from simulations.claims import Claim
from tracecal.calibration.fits import Calibrator, fit
from tracecal.calibration.guarantees import PairedPart, Promise, cascade_guarantee, error_level
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
    """`sizes` of groups, equally frequent; the chances that the models are right, by the score.

    `alike` in [0, 1] is how much of a score and of both models' luck all of a group share. `score`
    makes a score of a standard normal number.
    """

    groups: int
    sizes: tuple[int, ...]
    small: Chance
    large: Chance
    promise: Promise
    promised: float
    alike: float = 0.0
    score: Chance = lambda x: x

    def draw(self, rng: np.random.Generator, groups: int) -> Answers:
        group = np.repeat(np.arange(groups), rng.choice(self.sizes, groups))
        score = self.score(self._shared(rng, group))
        chances = self.small(score), self.large(score)
        right = [ndtr(self._shared(rng, group)) < chance for chance in chances]
        return Answers(group, score, *right, *chances)

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
}


def true_loss(reference: Answers, probability: np.ndarray, threshold: float, of: Promise) -> float:
    """What the promise bounds, for a random answer of a random group."""
    weight = 1 / np.bincount(reference.group)[reference.group]
    kept = probability >= threshold
    lost = (
        (reference.large_chance - reference.small_chance) * kept
        if of == "below"
        else 1 - np.where(kept, reference.small_chance, reference.large_chance)
    )
    return float((weight * lost).sum() / weight.sum())


def certified(drawn: Answers, seed: int, population: Population) -> tuple[Calibrator, float | None]:
    """The calibrator of a split of the drawn answers, and the certified threshold."""
    ids = [f"{place:05}" for place in range(len(drawn.group))]
    frame = pl.DataFrame({"example_id": ids, "group_id": drawn.group})
    split = make_splits(frame, "task", seed, 1, 0.35)
    ordered = frame.with_row_index("place").join(split, on="example_id").sort("rank", "example_id")
    parts = [ordered.filter(part=part) for part in ("calibration", "evaluation")]
    seen = parts[0]["place"].to_numpy()
    calibrator = fit(drawn.score[seen, None], drawn.small[seen], "platt")
    paired = [
        PairedPart(
            rows["rank"].to_numpy(),
            calibrator.predict(drawn.score[(place := rows["place"].to_numpy()), None]),
            drawn.small[place],
            drawn.large[place],
        )
        for rows in parts
    ]
    level = error_level(CONFIDENCE)
    found = cascade_guarantee(*paired, population.promise, population.promised, level)
    return calibrator, found.threshold


def broken(population: Population, runs: int, seed: int) -> tuple[int, int]:
    """In how many of the runs a promise is made, and in how many a false one."""
    rng = np.random.default_rng(seed)
    reference = population.draw(rng, REFERENCE)
    promise, promised = population.promise, population.promised
    rate = promised if promise == "below" else 1 - promised
    made = false = 0
    for run in range(runs):
        calibrator, threshold = certified(population.draw(rng, population.groups), run, population)
        if threshold is not None:
            made += 1
            probability = calibrator.predict(reference.score[:, None])
            false += true_loss(reference, probability, threshold, promise) > rate
    return made, false


def claims(runs: int, names: Sequence[str] = tuple(POPULATIONS)) -> Iterator[Claim]:
    for seed, name in enumerate(names):
        population = POPULATIONS[name]
        made, false = broken(population, runs, seed)
        bound = "large − {:g}" if population.promise == "below" else "≥ {:g}"
        claim = f"cascade {bound.format(population.promised)}: {name} ({made / runs:.0%} promised)"
        yield Claim(claim, runs, false, 1 - CONFIDENCE)
