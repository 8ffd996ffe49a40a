"""A forecast of how many labels a guarantee needs, simulated with the code that tests guarantees.

1. `forecast_table` simulates labelled questions of a `Population`, for growing numbers of them.
2. `questions_needed` reads off the number at which a share of the draws has a guarantee.
3. `describe_forecast` says it in a sentence.
"""

import math
from collections.abc import Iterable

import numpy as np
import polars as pl

from tracecal.calibration.groups import FIT_SHARE, MIN_FITTED
from tracecal.calibration.guarantees.line import significance_level
from tracecal.calibration.guarantees.parts import PartScores, RankedParts, most_parts
from tracecal.calibration.guarantees.ranked_answers import RankedAnswers
from tracecal.calibration.populations import LabelledAnswers, Population
from tracecal.calibration.settings import require_shares
from tracecal.errors import InputError
from tracecal.io.randomness import seeded

# Unless stated: the largest number of labelled questions to try, and the simulated draws of each.
MOST, DRAWS = 3200, 100
# A number of labels is enough if POWER of the draws have a guarantee. The sentence also gives the
# numbers for the shares OTHER_POWERS.
POWER, OTHER_POWERS = 0.8, (0.5, 0.95)
MIN_QUESTIONS = 50  # the smallest number of labelled questions to try
DRAW_SCHEMA = {"questions": pl.Int64, "draw": pl.Int64, "coverage": pl.Float64}


def forecast_table(
    population: Population,
    error_rate: float,
    confidence: float,
    max_questions: int,
    draws: int,
    seed: int,
) -> pl.DataFrame:
    """Simulate growing numbers of labelled questions, up to `max_questions` (`summarise_draws`).

    Raises `InputError` for settings out of range.
    """
    require_shares({"--error-rate": error_rate, "--confidence": confidence})
    if max_questions < MIN_QUESTIONS or draws < 1:
        raise InputError(f"--most must be {MIN_QUESTIONS} or more, and --draws 1 or more.")
    sizes = doubling_sizes(MIN_QUESTIONS, max_questions)
    return summarise_draws(simulate_draws(population, sizes, draws, error_rate, confidence, seed))


def simulate_draws(
    population: Population,
    sizes: Iterable[int],
    draws: int,
    error_rate: float,
    confidence: float,
    seed: int,
) -> pl.DataFrame:
    """Simulate labelled questions, a row per number of questions and draw (`DRAW_SCHEMA`).

    `coverage` is the share of answers kept with the guarantee, 0 without one.
    """
    level, rows = significance_level(confidence), []
    for size in sizes:
        for number in range(draws):
            answers = population.draw(seeded(seed, "promised", size, number), size)
            share = coverage(answers, size, error_rate, level, population.of_parts)
            rows.append((size, number, share))
    return pl.DataFrame(rows, schema=DRAW_SCHEMA, orient="row")


def coverage(
    answers: LabelledAnswers,
    n_groups: int,
    error_rate: float,
    level: float,
    of_parts: bool = False,
) -> float:
    """The share of answers kept by the guarantee that `calibrate` finds; 0 without one.

    Like `calibrate` it fits the ranking on a fifth of the groups, whose numbers are random, and
    tests thresholds on the others; fewer than MIN_FITTED groups all test. Groups are single
    answers, or the parts of one.
    """
    n_fit = round(FIT_SHARE * n_groups) if n_groups >= MIN_FITTED else 0
    fits, wrong = answers.group < n_fit, ~answers.correct
    score = answers.probability * _orientation(answers.probability[fits], answers.correct[fits])
    ranked: RankedAnswers | RankedParts
    if of_parts:
        sizes = np.bincount(answers.group)
        parts = PartScores(score, answers.group, sizes[answers.group])
        tested, limit = parts.select(~fits), most_parts(sizes[sizes > 0])
        ranked = RankedParts(tested, wrong[~fits], parts.select(fits), tested, limit)
    else:
        fitted = (score[fits], wrong[fits]) if n_fit else None
        ranked = RankedAnswers(score[~fits], wrong[~fits], score[fits], fitted, score[~fits])
    (test,) = ranked.test([error_rate], level)
    return ranked.share_kept(test.threshold)


def _orientation(score: np.ndarray, correct: np.ndarray) -> int:
    """Return the sign that a fit would give the score: -1 if wrong answers have higher scores."""
    if correct.all() or not correct.any():
        return 1
    return 1 if score[correct].mean() >= score[~correct].mean() else -1


def summarise_draws(simulated: pl.DataFrame) -> pl.DataFrame:
    """Summarise draws by number of `questions`.

    `guaranteed` is the share of draws with a guarantee; `median`, `low` and `high` (10 and 90 %)
    are of the coverage.
    """
    coverage = pl.col("coverage")
    return (
        simulated.group_by("questions")
        .agg(
            guaranteed=(coverage > 0).mean(),
            low=coverage.quantile(0.1, "linear"),
            median=coverage.median(),
            high=coverage.quantile(0.9, "linear"),
        )
        .sort("questions")
    )


def doubling_sizes(start: int, end: int) -> list[int]:
    """Return `start` and its doublings up to `end`.

    >>> doubling_sizes(50, 300)
    [50, 100, 200]
    """
    return [start * 2**power for power in range(max(1, int(math.log2(end / start)) + 1))]


def questions_needed(share: float, table: pl.DataFrame) -> float | None:
    """Return the number of questions with which a `share` of draws has a guarantee.

    `table` comes from `summarise_draws`; None if its largest number is not enough. Shares never
    fall with more labels, and grow linearly in the logarithm between two numbers.
    """
    shares = np.maximum.accumulate(table["guaranteed"].to_numpy())
    row = int(np.searchsorted(shares, share))
    if row == len(shares):
        return None
    questions = np.log(table["questions"].to_numpy())
    if not row:
        return math.exp(questions[0])
    low, high = shares[row - 1 : row + 1]
    fraction = (share - low) / (high - low)
    return math.exp(questions[row - 1] + fraction * (questions[row] - questions[row - 1]))


def describe_forecast(population: Population, table: pl.DataFrame, error_rate: float) -> str:
    """Say in a sentence how many labelled questions are needed, by a table of `summarise_draws`."""
    needed, largest = questions_needed(POWER, table), table["questions"].max()
    if needed is None:
        return (
            f"With {largest:,} labelled questions an error rate of at most {error_rate:.0%} can be "
            f"guaranteed in {table['guaranteed'].max():.0%} of the simulated draws, fewer than "
            f"{POWER:.0%}: {population.advice}."
        )
    fewer, more = (questions_needed(share, table) for share in OTHER_POWERS)
    return (
        f"About {format_count(needed)} labelled questions are needed for an error rate of at most "
        f"{error_rate:.0%}: something can be guaranteed in {POWER:.0%} of the simulated draws "
        f"then, in {OTHER_POWERS[0]:.0%} with {format_count(fewer)}, in {OTHER_POWERS[1]:.0%} with "
        f"{f'more than {largest:,}' if more is None else format_count(more)}."
    )


def format_count(number: float) -> str:
    """Format a number with two significant digits.

    >>> format_count(1234.5)
    '1,200'
    """
    return f"{float(f'{number:.1e}'):,.0f}"
