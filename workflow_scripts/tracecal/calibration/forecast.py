"""How many labels a guarantee needs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibration.bets import Evidence, betting_test, significance_level
from tracecal.calibration.guarantee import resolve_largest_group, threshold_sequence
from tracecal.calibration.populations import LabelledPopulation, Population, normal_scores
from tracecal.calibration.rated_answers import LabelledAnswers
from tracecal.calibration.settings import DRAWS, MOST
from tracecal.errors import InputError
from tracecal.io.randomness import seeded

# The share of the draws in which something has to be guaranteed for a number of labels to be
# enough; and the shares of which the sentence tells the numbers beside it.
POWER, BESIDE = 0.8, (0.5, 0.95)


DRAWN = {"questions": pl.Int64, "draw": pl.Int64, "coverage": pl.Float64}
# How many draws are tested at once, which is faster than one by one; all, of first thresholds only.
AT_ONCE = 50


def simulate_draws(
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
    level = significance_level(confidence)
    rows, at_once = [], draws if first_only else AT_ONCE
    for size in sizes:
        for first in range(0, draws, at_once):
            numbers = range(first, min(first + at_once, draws))
            pairs = [
                orient_probabilities(*split_groups(part, round(share * size)))
                for part in (
                    population.draw(seeded(seed, "promised", size, k), size) for k in numbers
                )
            ]
            found = coverages(pairs, error_rate, level, first_only, population.largest)
            rows += [(size, draw, one) for draw, one in zip(numbers, found, strict=True)]
    return pl.DataFrame(rows, schema=DRAWN, orient="row")


def split_groups(part: LabelledAnswers, first: int) -> tuple[LabelledAnswers, LabelledAnswers]:
    """The answers of the groups with numbers below `first`, and the others."""
    chosen = part.group < first
    before, after = (
        LabelledAnswers(part.group[rows], part.probability[rows], part.correct[rows])
        for rows in (chosen, ~chosen)
    )
    return before, after


def orient_probabilities(
    seen: LabelledAnswers, tested: LabelledAnswers
) -> tuple[LabelledAnswers, LabelledAnswers]:
    """The same with probabilities turned round where, in `seen`, higher ones are less often right:
    a fit would.
    """
    of_right, of_wrong = seen.probability[seen.correct], seen.probability[~seen.correct]
    if not len(of_right) or not len(of_wrong) or of_right.mean() >= of_wrong.mean():
        return seen, tested
    before, after = (
        LabelledAnswers(one.group, -one.probability, one.correct) for one in (seen, tested)
    )
    return before, after


def coverages(
    pairs: Sequence[tuple[LabelledAnswers, LabelledAnswers]],
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
        most = resolve_largest_group(seen, False, largest)
        weights.append(tested.weights(most).sum())
        thresholds = threshold_sequence(seen, tested.groups, error_rate, level, most)
        thresholds = thresholds[:1] if first_only else thresholds
        evidence.append(Evidence.of(seen, tested, thresholds, error_rate, False, most))
    z = np.hstack([one.wrong - error_rate * one.kept for one in evidence])
    before = np.hstack([one.before for one in evidence])
    ends = np.cumsum([one.kept.shape[1] for one in evidence])[:-1]
    passed = np.split(betting_test(z, before, error_rate, level), ends)
    counts = [int(np.cumprod(one).sum()) for one in passed]
    return [
        float(one.kept[:, count - 1].sum() / weight) if count else 0.0
        for one, weight, count in zip(evidence, weights, counts, strict=True)
    ]


def summarise_draws(drawn: pl.DataFrame) -> pl.DataFrame:
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


def doubling_sizes(start: int, most: int) -> list[int]:
    """`start`, twice as many and so on, up to `most`; `start` alone where that is more."""
    return [start * 2**power for power in range(max(1, int(math.log2(most / start)) + 1))]


def questions_needed(share: float, table: pl.DataFrame) -> float | None:
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


def describe_forecast(population: Population, table: pl.DataFrame, error_rate: float) -> str:
    """How many labelled questions are needed, by `table` (`summarised`)."""
    number, most = questions_needed(POWER, table), table["questions"].max()
    if number is None:
        return (
            f"With {most:,} labelled questions an error rate of at most {error_rate:.0%} can be "
            f"guaranteed in {table['guaranteed'].max():.0%} of the simulated draws, fewer than "
            f"{POWER:.0%}: {population.unknown}."
        )
    few, many = (questions_needed(share, table) for share in BESIDE)
    return (
        f"About {format_count(number)} labelled questions are needed for an error rate of at most "
        f"{error_rate:.0%}: something can be guaranteed in {POWER:.0%} of the simulated draws "
        f"then, in {BESIDE[0]:.0%} with {format_count(few)}, in {BESIDE[1]:.0%} with "
        f"{f'more than {most:,}' if many is None else format_count(many)}."
    )


def format_count(number: float) -> str:
    """To two digits."""
    return f"{float(f'{number:.1e}'):,.0f}"


FEWEST = 50  # labelled questions, the smallest number to try


def labelled_population(entry: Mapping[str, Any], where: str) -> LabelledPopulation:
    """The labelled answers of a calibrator. Raises `InputError` where its file lacks them."""
    held = entry.get("held_out") or {}
    if "fold" not in held:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities and folds, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    group, fold = np.array(held["group"]), np.array(held["fold"])
    score = normal_scores(np.array(held["probability"], dtype=float), fold)
    largest = entry["risk_control"]["largest_group"]
    return LabelledPopulation.of(group, score, np.array(held["correct"], dtype=bool), largest)


def forecast_table(
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
    sizes = doubling_sizes(FEWEST, most)
    return summarise_draws(
        simulate_draws(population, sizes, draws, error_rate, confidence, share, seed)
    )


def describe_outlook(
    entry: Mapping[str, Any], error_rates: pl.DataFrame, share: float, seed: int
) -> str | None:
    """What the largest error rate needs that could not be guaranteed; null where all could be.

    `error_rates` are `report.guarantees` of the default estimator.
    """
    missing = error_rates.filter(pl.col("threshold").is_null())["error_rate"].to_list()
    if not missing:
        return None
    rate, population = max(missing), labelled_population(entry, "the calibrator")
    confidence = entry["risk_control"]["confidence"]
    sizes = doubling_sizes(FEWEST, MOST)
    drawn = pl.DataFrame(schema=DRAWN)
    for size in sizes:
        more = simulate_draws(
            population, [size], DRAWS, rate, confidence, share, seed, first_only=True
        )
        drawn = drawn.vstack(more)
        if (more["coverage"] > 0).mean() >= max(BESIDE):  # larger numbers change nothing
            break
    table, questions = summarise_draws(drawn), len(np.unique(population.group))
    number, said = questions_needed(POWER, table), describe_forecast(population, table, rate)
    if number is None or number > questions:
        return said
    if number <= questions / 2:  # the simulation misses what makes these so hard
        return (
            f"The {questions:,} labelled questions at hand do not guarantee an error rate of at "
            f"most {rate:.0%}, and they do not tell how many would: allow a larger error rate, or "
            "use another estimator."
        )
    return f"{said} The {questions:,} at hand happen not to be enough."
