"""Does `tracecal plan` forecast how many labels a guarantee needs?

Each set of labelled answers, drawn from a population, gives a forecast. The truth is the share of
real draws of that many labels with a guarantee. A single set errs either way. On average over sets a
number forecast for 80 % of draws should do in at least 70 %, and one for half of them in at most 70 %.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from simulations.claims import Claim
from simulations.guarantees import CONFIDENCE, GroupPopulation, falling_risk
from tracecal.fits.regression import fit
from tracecal.guarantees.forecast import (
    POWER,
    BinormalPopulation,
    LabelledAnswers,
    LabelledPopulation,
    Population,
    doubling_sizes,
    normal_scores,
    questions_needed,
    simulate_draws,
    summarise_draws,
)

SIZES, LABELLED, FOLDS = doubling_sizes(50, 3200), 250, 5
SETS = 20  # runs for each set of labels, as a forecast takes long


@dataclass(frozen=True)
class ScoredPopulation:
    """A simulated population whose scores serve as probabilities."""

    advice: ClassVar[str] = "the true numbers are what is simulated"
    at_hand: ClassVar[int] = 0
    many: ClassVar[None] = None
    population: GroupPopulation

    @property
    def of_parts(self) -> bool:
        return max(self.population.sizes) > 1

    def draw(self, rng: np.random.Generator, n_groups: int) -> LabelledAnswers:
        answers = self.population.draw(rng, n_groups)
        return LabelledAnswers(answers.group, answers.score, ~answers.wrong)


# Each with its target error rate.
POPULATIONS: dict[str, tuple[Population, float]] = {
    "accuracy .75, AUROC .85": (BinormalPopulation(0.75, 0.85), 0.2),
    "accuracy .85, AUROC .75": (BinormalPopulation(0.85, 0.75), 0.1),
    "accuracy .60, AUROC .75": (BinormalPopulation(0.6, 0.75), 0.2),
    "one-token answers of a large model": (
        ScoredPopulation(
            GroupPopulation(0, (1,), lambda s, _: np.where(s > -0.2, 0.055, 0.35), 0.1),
        ),
        0.1,
    ),
    "parts of documents of 1 to 5, alike": (
        ScoredPopulation(GroupPopulation(0, (1, 2, 3, 4, 5), falling_risk, 0.3, 0.5)),
        0.3,
    ),
}


def forecast(population: Population, rate: float, draws: int, seed: int) -> pl.DataFrame:
    """The share of draws with a guarantee, by number of labels."""
    return summarise_draws(simulate_draws(population, SIZES, draws, [rate], CONFIDENCE, seed))


def imitate(answers: LabelledAnswers) -> LabelledPopulation:
    """Imitate labelled answers, by cross-fitting."""
    fold, x = answers.group % FOLDS, answers.probability[:, None]
    probability = np.empty(len(x))
    for number in range(FOLDS):
        held_out = fold == number
        calibrator = fit(x[~held_out], answers.correct[~held_out], "platt")
        probability[held_out] = calibrator.predict(x[held_out])
    score = normal_scores(probability, fold)
    of_parts = len(np.unique(answers.group)) < len(answers.group)
    return LabelledPopulation.from_labels(answers.group, score, answers.correct, of_parts)


def true_shares(name: str, shares: Iterable[float], sets: int, seed: int) -> list[np.ndarray]:
    """Return how often the numbers of labels forecast for each of the `shares` do, set by set.

    Sets whose forecast says no number are left out.
    """
    population, rate = POPULATIONS[name]
    truth = np.maximum.accumulate(forecast(population, rate, 250, seed)["guaranteed"].to_numpy())
    rng = np.random.default_rng(seed)
    forecasts = [
        forecast(imitate(population.draw(rng, LABELLED)), rate, 60, number)
        for number in range(sets)
    ]
    needed = [[questions_needed(share, table) for table in forecasts] for share in shares]
    return [
        np.interp(np.log([number for number in numbers if number]), np.log(SIZES), truth)
        for numbers in needed
    ]


def claims(runs: int, names: Iterable[str] = tuple(POPULATIONS)) -> Iterator[Claim]:
    sets = runs // SETS
    for seed, name in enumerate(names):
        enough, half = true_shares(name, (POWER, 0.5), sets, seed)
        claim = f"planned labels do: {name} ({len(enough)} of {sets} sets tell)"
        yield Claim(claim, len(enough), round((1 - enough).sum()), 0.3)
        yield Claim(f"half as certain do not: {name}", len(half), round(half.sum()), 0.7)
