"""How much can be promised with how many labels: simulated with the code that certifies.

Labelled questions are drawn many times from a population like the one at hand, divided as for
`risk_control`, and certified. The population is the questions at hand, each draw with another
resample of them, so that the spread includes what so few questions leave open; or a guess, of which
only the accuracy and the AUROC are stated.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
from scipy.special import expit, logit, ndtri

from tracecal.calibrate.evidence import Part, error_level
from tracecal.calibrate.risk_control import guarantee
from tracecal.errors import InputError
from tracecal.jobs.randomness import seeded

# The share of the draws in which something has to be promised for a number of labels to be enough.
POWER = 0.8
DRAWN = {"questions": pl.Int64, "draw": pl.Int64, "coverage": pl.Float64}


class Population(Protocol):
    """Where labelled questions come from."""

    def draw(self, rng: np.random.Generator, groups: int) -> Part:
        """That many new groups, numbered from 0 in random order."""
        ...


@dataclass(frozen=True)
class AtHand:
    """Groups like those of labelled answers, with probabilities of fits that had not seen them."""

    part: Part

    def draw(self, rng: np.random.Generator, groups: int) -> Part:
        numbers, starts, sizes = self._places
        like_these = rng.integers(len(numbers), size=len(numbers))
        chosen = rng.choice(like_these, groups)
        size = sizes[chosen]
        new = np.repeat(np.arange(groups), size)
        within = np.arange(len(new)) - np.repeat(np.cumsum(size) - size, size)
        places = np.argsort(self.part.group, kind="stable")[
            np.repeat(starts[chosen], size) + within
        ]
        return Part(new, self.part.probability[places], self.part.correct[places])

    @property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        group = np.sort(self.part.group)
        return np.unique(group, return_index=True, return_counts=True)


@dataclass(frozen=True)
class Guessed:
    """Single answers of an `accuracy`, with a score that ranks them with an AUROC of `auroc`.

    The score is normal with variance 1 among the right and among the wrong answers (the binormal
    model), and the probability is exact.
    """

    accuracy: float
    auroc: float

    def __post_init__(self) -> None:
        for name, value, least in (("accuracy", self.accuracy, 0), ("AUROC", self.auroc, 0.5)):
            if not least < value < 1:
                raise InputError(f"an {name} of {value:g} is not between {least:g} and 1.")

    def draw(self, rng: np.random.Generator, groups: int) -> Part:
        apart = math.sqrt(2) * ndtri(self.auroc)
        correct = rng.random(groups) < self.accuracy
        score = rng.normal(size=groups) + apart * correct
        probability = expit(logit(self.accuracy) + apart * (score - apart / 2))
        return Part(np.arange(groups), probability, correct)


def simulated(
    population: Population,
    sizes: Iterable[int],
    draws: int,
    error_rate: float,
    confidence: float,
    share: float,
    seed: int,
) -> pl.DataFrame:
    """Columns of `DRAWN`, a row per number of labelled questions and draw.

    `coverage` is the share of the answers that is kept at the promised error rate, 0 where nothing
    could be promised; `share` of the questions calibrates.
    """
    level = error_level(confidence)
    rows = []
    for size in sizes:
        for draw in range(draws):
            part = population.draw(seeded(seed, "promised", size, draw), size)
            seen, tested = divided(part, round(share * size))
            found = guarantee(seen, tested, error_rate, level)
            rows.append((size, draw, found.coverage))
    return pl.DataFrame(rows, schema=DRAWN, orient="row")


def divided(part: Part, first: int) -> tuple[Part, Part]:
    """The answers of the groups with numbers below `first`, and the others."""
    chosen = part.group < first
    before, after = (
        Part(part.group[rows], part.probability[rows], part.correct[rows])
        for rows in (chosen, ~chosen)
    )
    return before, after


def summarised(drawn: pl.DataFrame) -> pl.DataFrame:
    """By number of `questions`, in their order: the share of draws `promised` something, and the
    `median`, `low` and `high` (10 and 90 %) of the coverage.
    """
    coverage = pl.col("coverage")
    return (
        drawn.group_by("questions")
        .agg(
            promised=(coverage > 0).mean(),
            low=coverage.quantile(0.1, "linear"),
            median=coverage.median(),
            high=coverage.quantile(0.9, "linear"),
        )
        .sort("questions")
    )


def needed(
    population: Population, start: int, most: int, **settings: Any
) -> tuple[Mapping[str, Any] | None, int]:
    """The first row of `summarised` that `suffices`, null where none does; the last number tried.

    Numbers go from `start` to `most`, doubled each time; `settings` are those of `simulated`.
    """
    for size in doubled(start, most):
        row = summarised(simulated(population, [size], **settings)).row(0, named=True)
        if suffices(row):
            return row, size
    return None, size


def doubled(start: int, most: int) -> list[int]:
    """`start`, twice as many and so on, up to `most`; `start` alone where that is more."""
    return [start * 2**power for power in range(max(1, int(math.log2(most / start)) + 1))]


def suffices(row: Mapping[str, Any]) -> bool:
    """Whether a row of `summarised` promises something often enough."""
    return row["promised"] >= POWER


def sentence(row: Mapping[str, Any] | None, error_rate: float, most: int) -> str:
    """What is needed, from the row of `summarised` that suffices; null: up to `most` none does."""
    if row is None:
        return (
            f"Even {most:,} labelled questions promise an error rate of at most {error_rate:.0%} "
            f"in fewer than {POWER:.0%} of the simulated draws: another estimator, other answers "
            "or a larger error rate are needed."
        )
    return (
        f"About {row['questions']:,} labelled questions are needed for an error rate of at most "
        f"{error_rate:.0%}: in {row['promised']:.0%} of the simulated draws something can be "
        f"promised then, and the promise keeps {row['median']:.0%} of the answers (median; "
        f"{row['low']:.0%} to {row['high']:.0%} in 80 % of the draws)."
    )
