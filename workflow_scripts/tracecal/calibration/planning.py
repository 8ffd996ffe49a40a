"""How many labels a guarantee needs: simulated with the code that tests guarantees."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
from jinja2 import Environment, StrictUndefined
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtri

from tracecal.calibration.guarantees import (
    Evidence,
    Part,
    bets_pass,
    counted,
    error_level,
    threshold_sequence,
)
from tracecal.calibration.settings import DRAWS, MOST
from tracecal.calibrator.schema import default_estimator
from tracecal.errors import InputError
from tracecal.io.randomness import seeded

# The share of the draws in which something has to be guaranteed for a number of labels to be
# enough; and the shares of which the sentence tells the numbers beside it.
POWER, BESIDE = 0.8, (0.5, 0.95)
# Of the normal priors of a curve's two coefficients, which keep it finite where all are right: a
# slope of 2.5 is steep (Gelman et al. 2008).
PRECISION = np.array([0.01, 2.5**-2])
MOST_ALIKE = 0.9
DRAWN = {"questions": pl.Int64, "draw": pl.Int64, "coverage": pl.Float64}
# How many draws are tested at once, which is faster than one by one; all, of first thresholds only.
AT_ONCE = 50


class Population(Protocol):
    """Where labelled questions come from. `unknown` says why they do not tell how many suffice.

    A question counts with at most `largest` answers; null: as many as the largest that calibrates.
    """

    unknown: str
    largest: int | None

    def draw(self, rng: np.random.Generator, groups: int) -> Part:
        """That many new groups, numbered from 0 in random order."""
        ...


def normal_scores(probability: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """The normal quantiles of the ranks that probabilities [answers] have within their folds.

    The fits of folds differ in level, so that their probabilities cannot be ranked together.
    """
    score = np.empty(len(probability))
    for one in np.unique(fold):
        own = fold == one
        rank = pl.Series(probability[own]).rank().to_numpy()
        score[own] = ndtri((rank - 0.5) / own.sum())
    return score


@dataclass(frozen=True)
class AtHand:
    """Groups like those at hand, by their `group` and `score` [answers].

    An answer is right with probability expit(a + b score); `curve` and `spread` are the mean and
    the covariance of (a, b). With probability `alike` chance decides on a group as a whole.
    """

    unknown: ClassVar[str] = (
        "the labels at hand do not tell how many are needed. Label more, allow a larger error "
        "rate, or use another estimator"
    )
    group: np.ndarray
    score: np.ndarray
    curve: np.ndarray
    spread: np.ndarray
    alike: float
    largest: int | None = None

    @classmethod
    def of(
        cls, group: np.ndarray, score: np.ndarray, correct: np.ndarray, largest: int | None = None
    ) -> "AtHand":
        """By labelled answers, with the `normal_scores` of fits that had not seen them."""
        curve, spread = _curve(score, correct)
        right = expit(curve[0] + curve[1] * score)
        alike = _alike(group, (correct - right) / np.sqrt(right * (1 - right)))
        sizes = np.unique(group, return_counts=True)[1]
        # So much less do alike answers tell than as many independent ones.
        design_effect = 1 + alike * ((sizes**2).sum() / sizes.sum() - 1)
        return cls(group, score, curve, spread * design_effect, alike, largest)

    @cached_property
    def _by_group(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The answers' places in the order of their groups; where each group begins; its size."""
        order = np.argsort(self.group, kind="stable")
        _, starts, sizes = np.unique(self.group[order], return_index=True, return_counts=True)
        return order, starts, sizes

    def draw(self, rng: np.random.Generator, groups: int) -> Part:
        order, starts, sizes = self._by_group
        # Another resample of the questions in each draw, as so few leave open what others are like.
        like_these = rng.integers(len(sizes), size=len(sizes))
        chosen = rng.choice(like_these, groups)
        size = sizes[chosen]
        new = np.repeat(np.arange(groups), size)
        within = np.arange(len(new)) - np.repeat(np.cumsum(size) - size, size)
        places = order[np.repeat(starts[chosen], size) + within]
        a, b = rng.multivariate_normal(self.curve, self.spread, check_valid="ignore")
        as_one = rng.random(groups) < self.alike
        chance = np.where(as_one[new], rng.random(groups)[new], rng.random(len(new)))
        score = self.score[places]
        return Part(new, score, chance < expit(a + b * score))


def _curve(score: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (a, b), by Laplace's approximation."""
    x = np.column_stack([np.ones(len(score)), score])

    def loss(theta: np.ndarray) -> float:
        margin = x @ theta
        surprise = np.logaddexp(0, np.where(correct, -margin, margin))
        return surprise.sum() + (PRECISION * theta**2).sum() / 2

    def gradient(theta: np.ndarray) -> np.ndarray:
        return x.T @ (expit(x @ theta) - correct) + PRECISION * theta

    def hessian(theta: np.ndarray) -> np.ndarray:
        right = expit(x @ theta)
        return (x.T * (right * (1 - right))) @ x + np.diag(PRECISION)

    found = minimize(loss, np.zeros(2), jac=gradient, hess=hessian, method="trust-exact")
    return found.x, np.linalg.inv(hessian(found.x))


def _alike(group: np.ndarray, residual: np.ndarray) -> float:
    """The mean product of the residuals of two answers of one group; 0 where none has two."""
    member_of = np.unique(group, return_inverse=True)[1]
    sums, squares, sizes = (
        np.bincount(member_of, weights=values) for values in (residual, residual**2, residual**0)
    )
    pairs = (sizes * (sizes - 1)).sum()
    return float(np.clip((sums**2 - squares).sum() / pairs, 0, MOST_ALIKE)) if pairs else 0.0


@dataclass(frozen=True)
class Guessed:
    """Single answers of an `accuracy`, with a score that ranks them with an AUROC of `auroc`.

    The score is normal with variance 1 among the right and among the wrong answers (the binormal
    model), and the probability is exact.
    """

    unknown: ClassVar[str] = (
        "more labels, a larger error rate or a better estimator would be needed"
    )
    largest: ClassVar[int] = 1
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
    first_only: bool = False,
) -> pl.DataFrame:
    """Columns of `DRAWN`, a row per number of labelled questions and draw.

    `coverage` is the share of the answers that is kept at the guaranteed error rate, 0 where
    nothing can be guaranteed; that of the first threshold with `first_only`, which is ten times as
    fast. A `share` of the questions calibrates.
    """
    level = error_level(confidence)
    rows, at_once = [], draws if first_only else AT_ONCE
    for size in sizes:
        for first in range(0, draws, at_once):
            numbers = range(first, min(first + at_once, draws))
            pairs = [
                in_order(*divided(part, round(share * size)))
                for part in (
                    population.draw(seeded(seed, "promised", size, k), size) for k in numbers
                )
            ]
            found = coverages(pairs, error_rate, level, first_only, population.largest)
            rows += [(size, draw, one) for draw, one in zip(numbers, found, strict=True)]
    return pl.DataFrame(rows, schema=DRAWN, orient="row")


def divided(part: Part, first: int) -> tuple[Part, Part]:
    """The answers of the groups with numbers below `first`, and the others."""
    chosen = part.group < first
    before, after = (
        Part(part.group[rows], part.probability[rows], part.correct[rows])
        for rows in (chosen, ~chosen)
    )
    return before, after


def in_order(seen: Part, tested: Part) -> tuple[Part, Part]:
    """The same with probabilities turned round where, in `seen`, higher ones are less often right:
    a fit would.
    """
    of_right, of_wrong = seen.probability[seen.correct], seen.probability[~seen.correct]
    if not len(of_right) or not len(of_wrong) or of_right.mean() >= of_wrong.mean():
        return seen, tested
    before, after = (Part(one.group, -one.probability, one.correct) for one in (seen, tested))
    return before, after


def coverages(
    pairs: Sequence[tuple[Part, Part]],
    error_rate: float,
    level: float,
    first_only: bool,
    largest: int | None = None,
) -> list[float]:
    """The coverage of the `guarantee` of each pair of a seen and a tested part, 0 where there is
    none; of its first threshold with `first_only`.

    All pairs have equally many groups, each of which counts with at most `largest` answers (null:
    as many as the largest of the seen part has). They are tested at once, as bets on many
    thresholds cost little more than on few.
    """
    evidence, weights = [], []
    for seen, tested in pairs:
        most = counted(seen, False, largest)
        weights.append(tested.weights(most).sum())
        thresholds = threshold_sequence(seen, tested.groups, error_rate, level, most)
        thresholds = thresholds[:1] if first_only else thresholds
        evidence.append(Evidence.of(seen, tested, thresholds, error_rate, False, most))
    z = np.hstack([one.wrong - error_rate * one.kept for one in evidence])
    before = np.hstack([one.before for one in evidence])
    ends = np.cumsum([one.kept.shape[1] for one in evidence])[:-1]
    passed = np.split(bets_pass(z, before, error_rate, level), ends)
    counts = [int(np.cumprod(one).sum()) for one in passed]
    return [
        float(one.kept[:, count - 1].sum() / weight) if count else 0.0
        for one, weight, count in zip(evidence, weights, counts, strict=True)
    ]


def summarised(drawn: pl.DataFrame) -> pl.DataFrame:
    """By number of `questions`, in their order: the share of draws in which something is
    `guaranteed`, and the `median`, `low` and `high` (10 and 90 %) of the coverage.
    """
    coverage = pl.col("coverage")
    return (
        drawn.group_by("questions")
        .agg(
            guaranteed=(coverage > 0).mean(),
            low=coverage.quantile(0.1, "linear"),
            median=coverage.median(),
            high=coverage.quantile(0.9, "linear"),
        )
        .sort("questions")
    )


def doubled(start: int, most: int) -> list[int]:
    """`start`, twice as many and so on, up to `most`; `start` alone where that is more."""
    return [start * 2**power for power in range(max(1, int(math.log2(most / start)) + 1))]


def number_for(share: float, table: pl.DataFrame) -> float | None:
    """The number of questions from which on something is guaranteed in a `share` of draws, by
    `table` (`summarised`); null where its largest number does not do.

    More labels never make it rarer, and between two numbers the share grows with the logarithm.
    """
    reached = np.maximum.accumulate(table["guaranteed"].to_numpy())
    place = int(np.searchsorted(reached, share))
    if place == len(reached):
        return None
    questions = np.log(table["questions"].to_numpy())
    if not place:
        return math.exp(questions[0])
    low, high = reached[place - 1 : place + 1]
    part = (share - low) / (high - low)
    return math.exp(questions[place - 1] + part * (questions[place] - questions[place - 1]))


def sentence(population: Population, table: pl.DataFrame, error_rate: float) -> str:
    """How many labelled questions are needed, by `table` (`summarised`)."""
    number, most = number_for(POWER, table), table["questions"].max()
    if number is None:
        return (
            f"With {most:,} labelled questions an error rate of at most {error_rate:.0%} can be "
            f"guaranteed in {table['guaranteed'].max():.0%} of the simulated draws, fewer than "
            f"{POWER:.0%}: {population.unknown}."
        )
    few, many = (number_for(share, table) for share in BESIDE)
    return (
        f"About {_rounded(number)} labelled questions are needed for an error rate of at most "
        f"{error_rate:.0%}: something can be guaranteed in {POWER:.0%} of the simulated draws "
        f"then, in {BESIDE[0]:.0%} with {_rounded(few)}, in {BESIDE[1]:.0%} with "
        f"{f'more than {most:,}' if many is None else _rounded(many)}."
    )


def _rounded(number: float) -> str:
    """To two digits."""
    return f"{float(f'{number:.1e}'):,.0f}"


# How many labels a guarantee needs, as a table, a picture and a sentence.


FEWEST = 50  # labelled questions, the smallest number to try
TOPS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares kept at which an axis may end

PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 290"
  font-family="sans-serif" font-size="12">
<title>{{ title }}</title>
<style>
.ground { fill: #fff; } text { fill: #1c1f23; } .grid { stroke: #dfe3e7; }
.line { fill: none; stroke: #2F5D8A; stroke-width: 2; } .dot, .band { fill: #2F5D8A; }
.band { fill-opacity: .2; } .enough { stroke: #9A5B00; stroke-dasharray: 5 4; }
text.told { fill: #9A5B00; font-weight: bold; }
@media (prefers-color-scheme: dark) {
.ground { fill: #15181b; } text { fill: #e8ebee; } .grid { stroke: #343b42; }
.line { stroke: #8fbde6; } .dot, .band { fill: #8fbde6; }
.enough { stroke: #f5b95c; } text.told { fill: #f5b95c; } }
</style>
<rect class="ground" width="480" height="290"/>
<text x="14" y="20" font-weight="bold">{{ title }}</text>
{% for place in (0, 0.25, 0.5, 0.75, 1) -%}
<line class="grid" x1="50" x2="465" y1="{{ up(place * top) }}" y2="{{ up(place * top) }}"/>
<text x="44" y="{{ up(place * top) + 4 }}" text-anchor="end">
{{- "%g" | format(100 * place * top) }} %</text>
{% endfor -%}
<polygon class="band" points="{{ band }}"/>
<polyline class="line" points="{{ line }}"/>
{% for row in rows -%}
<circle class="dot" cx="{{ across(row.questions) }}" cy="{{ up(row.median) }}" r="3"/>
<text x="{{ across(row.questions) }}" y="250" text-anchor="middle">
{{- "{:,}".format(row.questions) }}</text>
{% endfor -%}
{% if enough -%}
<line class="enough" x1="{{ across(enough) }}" x2="{{ across(enough) }}" y1="42" y2="{{ up(0) }}"/>
{% endif -%}
<text class="told" x="{{ at }}" y="38" text-anchor="{{ anchor }}">{{ told }}</text>
<text x="257" y="267" text-anchor="middle">labelled questions</text>
<text x="257" y="284" text-anchor="middle">line: median of the draws; band: 80 % of them</text>
</svg>
"""


def at_hand(stored: Mapping[str, Any], where: str) -> AtHand:
    """The labelled answers of a calibrator. Raises `InputError` where its file lacks them."""
    own = stored[default_estimator(stored)]
    held = own.get("held_out") or {}
    if "fold" not in held:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities and folds, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    group, fold = np.array(held["group"]), np.array(held["fold"])
    score = normal_scores(np.array(held["probability"], dtype=float), fold)
    largest = own["risk_control"]["largest_group"]
    return AtHand.of(group, score, np.array(held["correct"], dtype=bool), largest)


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


def printed(
    population: Population, table: pl.DataFrame, error_rate: float, confidence: float
) -> str:
    """The table and what is needed, for a terminal."""
    lines = [
        f"At most {error_rate:.0%} incorrect, with confidence {confidence:g}:",
        f"{'labelled questions':>18}{'guaranteed in':>15}{'share kept, median':>20}"
        f"{'80 % of draws':>16}",
    ]
    lines += [
        f"{row['questions']:>18,}{row['guaranteed']:>15.0%}{row['median']:>20.0%}{_ends(row):>16}"
        for row in table.iter_rows(named=True)
    ]
    return "\n".join([*lines, "", sentence(population, table, error_rate)])


def _ends(row: Mapping[str, Any]) -> str:
    return f"{row['low']:.0%} to {row['high']:.0%}"


def picture(table: pl.DataFrame, error_rate: float, confidence: float) -> str:
    """The share kept by number of labelled questions, as SVG: median and 80 % of draws; and
    the number that suffices.
    """
    rows, enough = table.to_dicts(), number_for(POWER, table)
    least, most = math.log(rows[0]["questions"]), math.log(rows[-1]["questions"])
    top = next(one for one in TOPS if one >= table["high"].max())

    def across(questions: float) -> float:
        return round(65 + 380 * (math.log(questions) - least) / max(most - least, 1e-9), 1)

    def up(share: float) -> float:
        return round(232 - 184 * share / top, 1)

    def points(column: str) -> list[str]:
        return [f"{across(row['questions'])},{up(row[column])}" for row in rows]

    title = f"Answers kept with at most {error_rate:.0%} incorrect ({confidence:.0%} confidence)"
    told, at = f"not even {rows[-1]['questions']:,} suffice in {POWER:.0%} of the draws", 257.0
    if enough is not None:
        told, at = f"{_rounded(enough)} suffice in {POWER:.0%} of the draws", across(enough)
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(PICTURE).render(
        title=title,
        told=told,
        at=at,
        anchor="start" if at < 170 else "end" if at > 350 else "middle",
        enough=enough,
        rows=rows,
        top=top,
        across=across,
        up=up,
        line=" ".join(points("median")),
        band=" ".join([*points("high"), *reversed(points("low"))]),
    )


def outlook(
    stored: Mapping[str, Any], error_rates: pl.DataFrame, share: float, seed: int
) -> str | None:
    """What the largest error rate needs that could not be guaranteed; null where all could be.

    `error_rates` are `report.guarantees` of the default estimator.
    """
    missing = error_rates.filter(pl.col("threshold").is_null())["error_rate"].to_list()
    if not missing:
        return None
    rate, population = max(missing), at_hand(stored, "the calibrator")
    confidence = stored[default_estimator(stored)]["risk_control"]["confidence"]
    sizes = doubled(FEWEST, MOST)
    drawn = pl.DataFrame(schema=DRAWN)
    for size in sizes:
        more = simulated(population, [size], DRAWS, rate, confidence, share, seed, first_only=True)
        drawn = drawn.vstack(more)
        if (more["coverage"] > 0).mean() >= max(BESIDE):  # larger numbers change nothing
            break
    table, questions = summarised(drawn), len(np.unique(population.group))
    number, said = number_for(POWER, table), sentence(population, table, rate)
    if number is None or number > questions:
        return said
    if number <= questions / 2:  # the simulation misses what makes these so hard
        return (
            f"The {questions:,} labelled questions at hand do not guarantee an error rate of at "
            f"most {rate:.0%}, and they do not tell how many would: allow a larger error rate, or "
            "use another estimator."
        )
    return f"{said} The {questions:,} at hand happen not to be enough."
