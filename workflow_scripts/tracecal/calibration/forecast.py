"""A forecast of how many labels a guarantee needs, simulated with the code that tests guarantees.

1. `forecast_table` simulates labelled questions of a `Population`, for growing numbers of them.
2. `questions_needed` reads off the number at which a share of the draws has a guarantee.
3. `describe_forecast` says it in a sentence.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from tracecal.calibration.bets import Evidence, betting_test, significance_level
from tracecal.calibration.guarantee import resolve_largest_group, threshold_sequence
from tracecal.calibration.populations import Population
from tracecal.calibration.rated_answers import LabelledAnswers
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
# Draws tested at once, which is faster than one by one. With first thresholds only: all.
BATCH_SIZE = 50


def forecast_table(
    population: Population,
    calibration_share: float,
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
    simulated = simulate_draws(
        population, sizes, draws, error_rate, confidence, calibration_share, seed
    )
    return summarise_draws(simulated)


def simulate_draws(
    population: Population,
    sizes: Iterable[int],
    draws: int,
    error_rate: float,
    confidence: float,
    calibration_share: float,
    seed: int,
    first_only: bool = False,
) -> pl.DataFrame:
    """Simulate labelled questions, a row per number of questions and draw (`DRAW_SCHEMA`).

    `coverage` is the share of answers kept with the guarantee, 0 without one. With `first_only`
    only the first threshold is tested, which is ten times as fast.
    """
    level = significance_level(confidence)
    rows, batch_size = [], draws if first_only else BATCH_SIZE
    for size in sizes:
        for start in range(0, draws, batch_size):
            numbers = range(start, min(start + batch_size, draws))
            pairs = []
            for number in numbers:
                answers = population.draw(seeded(seed, "promised", size, number), size)
                parts = split_groups(answers, round(calibration_share * size))
                pairs.append(orient_probabilities(*parts))
            shares = coverages(pairs, error_rate, level, first_only, population.largest_group)
            rows += [(size, *row) for row in zip(numbers, shares, strict=True)]
    return pl.DataFrame(rows, schema=DRAW_SCHEMA, orient="row")


def split_groups(
    answers: LabelledAnswers, n_calibration: int
) -> tuple[LabelledAnswers, LabelledAnswers]:
    """Split answers into the groups with numbers below `n_calibration` and the others."""
    in_calibration = answers.group < n_calibration
    calibration, evaluation = (
        LabelledAnswers(answers.group[rows], answers.probability[rows], answers.correct[rows])
        for rows in (in_calibration, ~in_calibration)
    )
    return calibration, evaluation


def orient_probabilities(
    calibration: LabelledAnswers, evaluation: LabelledAnswers
) -> tuple[LabelledAnswers, LabelledAnswers]:
    """Negate probabilities that rank calibration answers the wrong way round, as a fit would."""
    right = calibration.probability[calibration.correct]
    wrong = calibration.probability[~calibration.correct]
    if not len(right) or not len(wrong) or right.mean() >= wrong.mean():
        return calibration, evaluation
    negated_calibration, negated_evaluation = (
        LabelledAnswers(part.group, -part.probability, part.correct)
        for part in (calibration, evaluation)
    )
    return negated_calibration, negated_evaluation


def coverages(
    pairs: Sequence[tuple[LabelledAnswers, LabelledAnswers]],
    error_rate: float,
    level: float,
    first_only: bool,
    largest_group: int | None = None,
) -> list[float]:
    """Return the coverage of `find_guarantee` for each calibration and evaluation part, 0 for none.

    With `first_only` only the first threshold counts. All pairs have equally many groups and are
    tested at once, as bets on many thresholds cost little more than on few.
    """
    evidence, weights = [], []
    for calibration, evaluation in pairs:
        limit = resolve_largest_group(calibration, False, largest_group)
        weights.append(evaluation.group_weights(limit).sum())
        thresholds = threshold_sequence(calibration, evaluation.n_groups, error_rate, level, limit)
        thresholds = thresholds[:1] if first_only else thresholds
        evidence.append(
            Evidence.from_answers(calibration, evaluation, thresholds, error_rate, False, limit)
        )
    excess = np.hstack([item.excess(error_rate) for item in evidence])
    calibration_excess = np.hstack([item.calibration_excess for item in evidence])
    ends = np.cumsum([item.kept.shape[1] for item in evidence])[:-1]
    passed = np.split(betting_test(excess, calibration_excess, error_rate, level), ends)
    n_passed = [int(np.cumprod(results).sum()) for results in passed]
    return [
        float(item.kept[:, count - 1].sum() / weight) if count else 0.0
        for item, weight, count in zip(evidence, weights, n_passed, strict=True)
    ]


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
    """Return `start`, twice as many and so on, up to `end`.

    >>> doubling_sizes(50, 300)
    [50, 100, 200]
    """
    return [start * 2**power for power in range(max(1, int(math.log2(end / start)) + 1))]


def questions_needed(share: float, table: pl.DataFrame) -> float | None:
    """Return the number of questions with which a `share` of draws has a guarantee.

    `table` is that of `summarise_draws`; None where its largest number is not enough. More labels
    never make a guarantee rarer, and between two numbers the share grows with the logarithm.
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
