"""Does `tracecal plan` say how many labels it takes?

Sets of labelled answers are drawn from a population, and of each set it is said how many labels are
needed. The truth is how often something is guaranteed with that many labels that are really drawn.
A single set errs either way; on average over sets a number that is to do in 80 % of draws should do
in at least 70 %, and one that is to do in half of them in at most 70 %.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from simulations.claims import Claim
from simulations.guarantees import CONFIDENCE, Population, falling
from tracecal.calibration.fits import fit
from tracecal.calibration.forecast import (
    POWER,
    doubling_sizes,
    questions_needed,
    simulate_draws,
    summarise_draws,
)
from tracecal.calibration.populations import BinormalPopulation, LabelledPopulation, normal_scores
from tracecal.calibration.populations import Population as Source
from tracecal.calibration.rated_answers import LabelledAnswers

SHARE, SIZES, LABELLED, FOLDS = 0.35, doubling_sizes(50, 3200), 250, 5
SETS = 20  # runs for each set of labels, as a forecast takes long


@dataclass(frozen=True)
class Scored:
    """Answers of a simulated population with their scores."""

    advice: ClassVar[str] = "the true numbers are what is simulated"
    population: Population

    @property
    def largest_group(self) -> int | None:
        return self.population.largest

    def draw(self, rng: np.random.Generator, groups: int) -> LabelledAnswers:
        drawn = self.population.draw(rng, groups)
        return LabelledAnswers(drawn.group, drawn.score, ~drawn.wrong)


# Each with the error rate to be guaranteed.
POPULATIONS: dict[str, tuple[Source, float]] = {
    "accuracy .75, AUROC .85": (BinormalPopulation(0.75, 0.85), 0.2),
    "accuracy .85, AUROC .75": (BinormalPopulation(0.85, 0.75), 0.1),
    "accuracy .60, AUROC .75": (BinormalPopulation(0.6, 0.75), 0.2),
    "one-token answers of a large model": (
        Scored(
            Population(0, (1,), lambda s, _: np.where(s > -0.2, 0.055, 0.35), 0.1),
        ),
        0.1,
    ),
    "groups of 1 to 5, alike": (Scored(Population(0, (1, 2, 3, 4, 5), falling, 0.3, 0.5)), 0.3),
}


def table(source: Source, rate: float, draws: int, seed: int) -> pl.DataFrame:
    """How often something is guaranteed, by number of labels."""
    return summarise_draws(
        simulate_draws(source, SIZES, draws, rate, CONFIDENCE, SHARE, seed, first_only=True)
    )


def at_hand(part: LabelledAnswers) -> LabelledPopulation:
    """What is known of labelled answers, by fits that had not seen them."""
    fold, x = part.group % FOLDS, part.probability[:, None]
    probability = np.empty(len(x))
    for one in range(FOLDS):
        known = fit(x[fold != one], part.correct[fold != one], "platt")
        probability[fold == one] = known.predict(x[fold == one])
    return LabelledPopulation.from_labels(
        part.group, normal_scores(probability, fold), part.correct
    )


def true_shares(name: str, shares: Iterable[float], sets: int, seed: int) -> list[np.ndarray]:
    """Of each of the `shares` how often the number of labels that is to do in so many draws does,
    for each set that says a number.
    """
    source, rate = POPULATIONS[name]
    truth = np.maximum.accumulate(table(source, rate, 250, seed)["guaranteed"].to_numpy())
    rng = np.random.default_rng(seed)
    forecasts = [table(at_hand(source.draw(rng, LABELLED)), rate, 60, k) for k in range(sets)]
    numbers = [[questions_needed(share, one) for one in forecasts] for share in shares]
    return [
        np.interp(np.log([one for one in said if one]), np.log(SIZES), truth) for said in numbers
    ]


def claims(runs: int, names: Iterable[str] = tuple(POPULATIONS)) -> Iterator[Claim]:
    sets = runs // SETS
    for seed, name in enumerate(names):
        enough, half = true_shares(name, (POWER, 0.5), sets, seed)
        claim = f"planned labels do: {name} ({len(enough)} of {sets} sets tell)"
        yield Claim(claim, len(enough), round((1 - enough).sum()), 0.3)
        yield Claim(f"half as certain do not: {name}", len(half), round(half.sum()), 0.7)
