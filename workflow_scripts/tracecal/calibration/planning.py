"""How many labels a guarantee needs: simulated with the code that certifies, and told."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
from jinja2 import Environment, StrictUndefined
from scipy.special import expit, logit, ndtri

from tracecal.calibration.calibrator import default_estimator, stored_in
from tracecal.calibration.guarantees import Part, error_level, guarantee
from tracecal.calibration.settings import Splits
from tracecal.errors import InputError
from tracecal.io.randomness import seeded

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


# How many labels a promise needs, as a table, a picture and a sentence.


FEWEST = 50
# Of the sentence in a calibrator's report, which should not keep one waiting.
FEW_DRAWS, TIMES = 20, 8

PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 270"
  font-family="sans-serif" font-size="12">
<title>{{ title }}</title>
<rect width="480" height="270" fill="#fff"/>
<text x="50" y="18">{{ title }}</text>
{% for share in (0, 25, 50, 75, 100) -%}
<line x1="50" x2="465" y1="{{ up(share / 100) }}" y2="{{ up(share / 100) }}" stroke="#ddd"/>
<text x="44" y="{{ up(share / 100) + 4 }}" text-anchor="end">{{ share }} %</text>
{% endfor -%}
<polygon points="{{ band }}" fill="#2F5D8A" fill-opacity=".2"/>
<polyline points="{{ line }}" fill="none" stroke="#2F5D8A" stroke-width="2"/>
{% for row in rows -%}
<circle cx="{{ across(row.questions) }}" cy="{{ up(row.median) }}" r="3" fill="#2F5D8A"/>
<text x="{{ across(row.questions) }}" y="240" text-anchor="middle">{{ row.questions }}</text>
{% endfor -%}
<text x="257" y="260" text-anchor="middle">labelled questions</text>
</svg>
"""


def population(
    calibrator: str | None, accuracy: float | None, auroc: float | None
) -> tuple[Population, float]:
    """Where labelled questions come from, and the share of them that calibrates.

    Raises `InputError` unless there is either a calibrator with held-out probabilities or both
    guesses.
    """
    guesses = accuracy is not None and auroc is not None
    if (calibrator is None) != guesses or (calibrator and (accuracy, auroc) != (None, None)):
        raise InputError("give either --calibrator, or --accuracy and --auroc as guesses.")
    if calibrator is None:
        return Guessed(accuracy, auroc), Splits().calibration_share
    stored = stored_in(calibrator)
    return at_hand(stored, calibrator), Splits().calibration_share


def at_hand(stored: Mapping[str, Any], where: str) -> AtHand:
    """The labelled answers of a calibrator. Raises `InputError` where its file lacks them."""
    held = stored[default_estimator(stored)].get("held_out")
    if held is None:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    return AtHand(
        Part(
            np.array(held["group"]),
            np.array(held["probability"], dtype=float),
            np.array(held["correct"], dtype=bool),
        )
    )


def planned(
    population: Population,
    share: float,
    error_rate: float,
    confidence: float,
    most: int,
    draws: int,
    seed: int,
) -> pl.DataFrame:
    """`promised.summarised` for numbers of labelled questions up to `most`.

    Raises `InputError` for settings out of range.
    """
    for name, value in (("--error-rate", error_rate), ("--confidence", confidence)):
        if not 0 < value < 1:
            raise InputError(f"{name} {value:g}: expected a number between 0 and 1.")
    if most < FEWEST or draws < 1:
        raise InputError(f"--most must be {FEWEST} or more, and --draws 1 or more.")
    sizes = doubled(FEWEST, most)
    return summarised(simulated(population, sizes, draws, error_rate, confidence, share, seed))


def printed(table: pl.DataFrame, error_rate: float, confidence: float) -> str:
    """The table and what is needed, for a terminal."""
    lines = [
        f"At most {error_rate:.0%} incorrect, with confidence {confidence:g}:",
        f"{'labelled questions':>18}{'promised in':>13}{'share kept, median':>20}"
        f"{'80 % of draws':>16}",
    ]
    lines += [
        f"{row['questions']:>18,}{row['promised']:>13.0%}{row['median']:>20.0%}{_ends(row):>16}"
        for row in table.iter_rows(named=True)
    ]
    row = next(filter(suffices, table.iter_rows(named=True)), None)
    return "\n".join([*lines, "", sentence(row, error_rate, table["questions"].max())])


def _ends(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.0%} to {row['high']:.0%}"


def picture(table: pl.DataFrame, error_rate: float, confidence: float) -> str:
    """The share kept against the number of labelled questions, as SVG: median and 80 % of draws."""
    rows = table.to_dicts()
    least, most = math.log(rows[0]["questions"]), math.log(rows[-1]["questions"])

    def across(questions: int) -> float:
        return round(60 + 395 * (math.log(questions) - least) / max(most - least, 1e-9), 1)

    def up(share: float) -> float:
        return round(222 - 190 * share, 1)

    def points(column: str) -> list[str]:
        return [f"{across(row['questions'])},{up(row[column])}" for row in rows]

    title = f"Answers kept with at most {error_rate:.0%} incorrect ({confidence:.0%} confidence)"
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(PICTURE).render(
        title=title,
        rows=rows,
        across=across,
        up=up,
        line=" ".join(points("median")),
        band=" ".join([*points("high"), *reversed(points("low"))]),
    )


def outlook(
    stored: Mapping[str, Any], certified: pl.DataFrame, share: float, seed: int
) -> str | None:
    """What the largest error rate that could not be promised needs; null where all could be.

    `certified` are `report.guarantees` of the default estimator.
    """
    missing = certified.filter(pl.col("threshold").is_null())["error_rate"].to_list()
    if not missing:
        return None
    rate, at = max(missing), at_hand(stored, "the calibrator")
    confidence = stored[default_estimator(stored)]["risk_control"]["confidence"]
    questions = at.part.groups
    settings = {"error_rate": rate, "confidence": confidence, "share": share, "seed": seed}
    row, tried = needed(at, questions, TIMES * questions, draws=FEW_DRAWS, **settings)
    return sentence(row, rate, tried)
