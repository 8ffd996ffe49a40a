"""A forecast of how many labels a guarantee needs, simulated with the code that tests guarantees.

1. A `Population` draws labelled answers: `LabelledPopulation` imitates those at hand,
   `BinormalPopulation` follows from guesses of accuracy and AUROC. `forecast_tables` simulates
   growing numbers of its questions.
2. `questions_needed` reads off the number at which a share of the draws has a guarantee.
3. `describe_forecast` says it in a sentence.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl
import scipy

from tracecal.answers.groups import FIT_SHARE, MIN_FITTED
from tracecal.errors import InputError
from tracecal.fits.fit_settings import SEED, stated_shares
from tracecal.guarantees.error_rate import RankedAnswers, overall_threshold
from tracecal.guarantees.line import significance_level
from tracecal.guarantees.part_tests import PartScores, RankedParts, most_parts
from tracecal.guarantees.sequential import START_SHARE, falling_thresholds, passes_test
from tracecal.io.randomness import seeded
from tracecal.statistics.percentages import percent, rate_text

# Unless stated: the largest number of labelled questions to try, and the simulated draws of each.
MOST, DRAWS = 3200, 100
# A number of labels is enough if POWER of the draws have a guarantee. The sentence also gives the
# numbers for the shares OTHER_POWERS.
POWER, OTHER_POWERS = 0.8, (0.5, 0.95)
MORE_FITTED = 4  # folds but one, which fit held-out probabilities, for one
NEW_ANSWERS = 4000  # of the file in which 'tracecal label --error-rate' is taken to ask
MIN_QUESTIONS = 50  # the smallest number of labelled questions to try
DRAW_SCHEMA = {
    "error_rate": pl.Float64,
    "questions": pl.Int64,
    "draw": pl.Int64,
    "coverage": pl.Float64,
    "unchecked": pl.Float64,
}
# Precisions of the normal priors of a curve's intercept, slope and bend, which keep them finite
# where all answers are right. A slope of 2.5 is steep (Gelman et al. 2008).
PRECISION = np.array([0.01, 2.5**-2, 1.0])
MAX_CORRELATION = 0.9


@dataclass(frozen=True)
class LabelledAnswers:
    """Labelled answers with probabilities, in groups.

    Attributes
    ----------
    group : array [answers]
        The group of each answer; groups are tested in the order of their numbers.
    probability : array [answers]
        The score of each answer, from 0 to 1; NaN: none.
    correct : array [answers]
        Whether each answer is correct.
    is_fixed : bool
        Whether the probability is a fixed score, which no label fits.
    """

    group: np.ndarray
    probability: np.ndarray
    correct: np.ndarray
    is_fixed: bool = False


def normal_scores(probability: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the normal quantiles of probabilities' ranks within their folds, [answers].

    The fits of folds differ in level, so that their probabilities cannot be ranked together. NaN
    where there is no probability.
    """
    score = np.full(len(probability), np.nan)
    for number in np.unique(fold):
        in_fold = (fold == number) & ~np.isnan(probability)
        rank = pl.Series(probability[in_fold]).rank().to_numpy()
        score[in_fold] = scipy.special.ndtri((rank - 0.5) / in_fold.sum())
    return score


@dataclass(frozen=True)
class LabelledPopulation:
    """Answers, or groups of parts, that imitate labelled ones.

    Attributes
    ----------
    group, score : array [answers]
        Group and score of the labelled answers.
    coefficients, covariance : array
        Mean and covariance of (a, b, c): an answer is right with probability
        expit(a + b score + c (score² - 1)).
    correlation : float
        The probability that chance decides on a group as a whole.
    of_parts : bool
        Whether groups are parts of answers.
    at_hand : int
        How many labelled questions there are, where they have no guarantee; else 0.
    is_fixed : bool
        Whether the score is a fixed one, which no label fits.
    few : LabelledPopulation, optional
        The same answers with the fixed score, by which fewer than MIN_FITTED groups are ranked.
    many : LabelledPopulation, optional
        The same answers with the scores of fits on MORE_FITTED times as many labels.
    """

    advice: ClassVar[str] = (
        "the labels at hand do not tell how many are needed. Label more, allow a larger error "
        "rate, or use another estimator"
    )
    group: np.ndarray
    score: np.ndarray
    coefficients: np.ndarray
    covariance: np.ndarray
    correlation: float
    of_parts: bool = False
    at_hand: int = 0
    is_fixed: bool = False
    few: "LabelledPopulation | None" = None
    many: "LabelledPopulation | None" = None

    @classmethod
    def from_labels(
        cls, group: np.ndarray, score: np.ndarray, correct: np.ndarray, of_parts: bool = False
    ) -> "LabelledPopulation":
        """Fit the curve to labelled answers with `normal_scores`.

        A curve that does not bend has too many errors at the top.
        """
        ranked = ~np.isnan(score)
        coefficients, covariance = _fit_curve(score[ranked], correct[ranked])
        right = scipy.special.expit(_powers(score[ranked]) @ coefficients)
        residual = (correct[ranked] - right) / np.sqrt(right * (1 - right))
        correlation = _group_correlation(group[ranked], residual)
        sizes = np.unique(group, return_counts=True)[1]
        # Design effect of correlated answers.
        design_effect = 1 + correlation * ((sizes**2).sum() / sizes.sum() - 1)
        covariance = covariance * design_effect
        return cls(group, score, coefficients, covariance, correlation, of_parts)

    @cached_property
    def _by_group(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The indices of answers in the order of their groups, and each group's start and size."""
        order = np.argsort(self.group, kind="stable")
        _, starts, sizes = np.unique(self.group[order], return_index=True, return_counts=True)
        return order, starts, sizes

    def draw(self, rng: np.random.Generator, n_groups: int) -> LabelledAnswers:
        """Draw new groups, numbered from 0 in random order."""
        if self.few is not None and n_groups < MIN_FITTED:
            return self.few.draw(rng, n_groups)
        order, starts, sizes = self._by_group
        coefficients = self.coefficients
        if self.many is not None and not self.is_fixed:
            # An error of a fit falls as the inverse of its number of labels.
            share = max(1 - len(sizes) / n_groups, 0) / (1 - 1 / MORE_FITTED)
            coefficients = coefficients + share * (self.many.coefficients - coefficients)
        # Resample questions, so that sampling error counts.
        resampled = rng.integers(len(sizes), size=len(sizes))
        chosen = rng.choice(resampled, n_groups)
        size = sizes[chosen]
        group = np.repeat(np.arange(n_groups), size)
        member = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
        indices = order[np.repeat(starts[chosen], size) + member]
        curve = rng.multivariate_normal(coefficients, self.covariance, check_valid="ignore")
        as_a_whole = rng.random(n_groups) < self.correlation
        chance = np.where(as_a_whole[group], rng.random(n_groups)[group], rng.random(len(group)))
        score = self.score[indices]
        right = scipy.special.expit(_powers(score) @ curve)
        return LabelledAnswers(group, scipy.special.ndtr(score), chance < right, self.is_fixed)


def _powers(score: np.ndarray) -> np.ndarray:
    """What the coefficients of a curve multiply, [answers, 3]."""
    return np.column_stack([np.ones(len(score)), score, score**2 - 1])


def _fit_curve(score: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a curve's coefficients by Laplace's approximation."""
    x = _powers(score)

    def loss(theta: np.ndarray) -> float:
        margin = x @ theta
        surprise = np.logaddexp(0, np.where(correct, -margin, margin))
        return surprise.sum() + (PRECISION * theta**2).sum() / 2

    def gradient(theta: np.ndarray) -> np.ndarray:
        return x.T @ (scipy.special.expit(x @ theta) - correct) + PRECISION * theta

    def hessian(theta: np.ndarray) -> np.ndarray:
        right = scipy.special.expit(x @ theta)
        return (x.T * (right * (1 - right))) @ x + np.diag(PRECISION)

    start = np.zeros(len(PRECISION))
    derivatives = {"jac": gradient, "hess": hessian}
    optimum = scipy.optimize.minimize(loss, start, method="trust-exact", **derivatives).x
    return optimum, np.linalg.inv(hessian(optimum))


def _group_correlation(group: np.ndarray, residual: np.ndarray) -> float:
    """Average the products of residuals over pairs within groups; 0 without pairs."""
    index = np.unique(group, return_inverse=True)[1]
    sums, squares, sizes = (
        np.bincount(index, weights=values) for values in (residual, residual**2, residual**0)
    )
    pairs = (sizes * (sizes - 1)).sum()
    if not pairs:
        return 0.0
    return float(np.clip((sums**2 - squares).sum() / pairs, 0, MAX_CORRELATION))


@dataclass(frozen=True)
class BinormalPopulation:
    """Single answers with an `accuracy`, and a score that ranks them with an AUROC of `auroc`.

    The score is normal with variance 1 among the right and among the wrong answers (the binormal
    model), and the probability is exact.
    """

    advice: ClassVar[str] = "more labels, a larger error rate or a better estimator would be needed"
    of_parts: ClassVar[bool] = False
    at_hand: ClassVar[int] = 0
    many: ClassVar[None] = None
    accuracy: float
    auroc: float

    def __post_init__(self) -> None:
        for name, value, lowest in (("accuracy", self.accuracy, 0), ("AUROC", self.auroc, 0.5)):
            if not lowest < value < 1:
                raise InputError(f"an {name} of {value:g} is not between {lowest:g} and 1.")

    def draw(self, rng: np.random.Generator, n_groups: int) -> LabelledAnswers:
        """Draw new answers, numbered from 0."""
        distance = math.sqrt(2) * scipy.special.ndtri(self.auroc)
        correct = rng.random(n_groups) < self.accuracy
        score = rng.normal(size=n_groups) + distance * correct
        log_odds = scipy.special.logit(self.accuracy) + distance * (score - distance / 2)
        probability = scipy.special.expit(log_odds)
        return LabelledAnswers(np.arange(n_groups), probability, correct)


Population = LabelledPopulation | BinormalPopulation


def forecast_tables(
    population: Population,
    error_rates: Sequence[float],
    confidence: float,
    most: int = MOST,
    draws: int = DRAWS,
    seed: int = SEED,
    with_unchecked: bool = True,
) -> list[pl.DataFrame]:
    """Simulate growing numbers of labelled questions, up to `most`: a table for each error rate.

    All rates are tested on the same draws. Raises `InputError` for settings out of range.
    """
    stated_shares("--error-rate", error_rates)
    stated_shares("--confidence", [confidence])
    if most < MIN_QUESTIONS or draws < 1:
        raise InputError(f"--most must be {MIN_QUESTIONS} or more, and --draws must be 1 or more.")
    sizes = doubling_sizes(MIN_QUESTIONS, most)
    settings = error_rates, confidence, seed, with_unchecked
    simulated = simulate_draws(population, sizes, draws, *settings)
    return [summarise_draws(simulated.filter(error_rate=rate)) for rate in error_rates]


def labels_needed(
    population: LabelledPopulation, error_rates: Sequence[float], confidence: float
) -> dict[float, int | None]:
    """By error rate, how many labelled questions would be enough; None if not even MOST.

    They are the numbers of `tracecal plan`.
    """
    # Who asks so needs no share that nobody checks.
    tables = forecast_tables(population, error_rates, confidence, with_unchecked=False)
    numbers = [questions_needed(POWER, table, population.at_hand) for table in tables]
    counts = [None if number is None else rounded_count(number) for number in numbers]
    return dict(zip(error_rates, counts, strict=True))


def simulate_draws(
    population: Population,
    sizes: Iterable[int],
    draws: int,
    error_rates: Sequence[float],
    confidence: float,
    seed: int,
    with_unchecked: bool = True,
) -> pl.DataFrame:
    """Simulate labelled questions, a row per number, draw and error rate (`DRAW_SCHEMA`).

    `coverage` and `unchecked` are its `shares`.
    """
    level, rows = significance_level(confidence), []
    for size in sizes:
        for number in range(draws):
            answers = population.draw(seeded(seed, "promised", size, number), size)
            ranked = rank_draw(answers, size, population.of_parts)
            for rate, of_answers in shares(ranked, error_rates, level, with_unchecked).items():
                rows.append((rate, size, number, *of_answers))
    return pl.DataFrame(rows, schema=DRAW_SCHEMA, orient="row")


def rank_draw(
    answers: LabelledAnswers, n_groups: int, of_parts: bool = False
) -> RankedAnswers | RankedParts:
    """Rank the answers of a draw.

    Like `calibrate` it fits the ranking on a fifth of the groups, whose numbers are random, and
    tests thresholds on the others; fewer than MIN_FITTED groups all test, and so do those that a
    fixed score ranks. Groups are single answers, or the parts of one.
    """
    is_fitted = n_groups >= MIN_FITTED and not answers.is_fixed
    n_fit = round(FIT_SHARE * n_groups) if is_fitted else 0
    fits, wrong, proba = answers.group < n_fit, ~answers.correct, answers.probability
    score = proba if _orientation(proba[fits], answers.correct[fits]) > 0 else 1 - proba
    if of_parts:
        sizes = np.bincount(answers.group)
        parts = PartScores(score, answers.group, sizes[answers.group])
        limit = most_parts(sizes[sizes > 0])
        return RankedParts(parts.select(~fits), wrong[~fits], parts.select(fits), limit)
    fitted = (score[fits], wrong[fits]) if n_fit else None
    return RankedAnswers(score[~fits], wrong[~fits], score[fits], fitted)


def shares(
    ranked: RankedAnswers | RankedParts,
    error_rates: Sequence[float],
    level: float,
    with_unchecked: bool = True,
) -> dict[float, tuple[float, float | None]]:
    """By error rate, the share of answers kept by the guarantee that `calibrate` finds, 0 without.

    And, `with_unchecked`, the share that nobody checks with the same rate as overall error rate;
    None of parts. Each rate counts by itself, without the thresholds of lower ones.
    """
    of_answers = {}
    for test in ranked.test(error_rates, level):
        rate, unchecked = test.error_rate, None
        if with_unchecked and isinstance(ranked, RankedAnswers):
            threshold = overall_threshold(ranked.score, ranked.wrong, rate, level)
            unchecked = ranked.share_kept(threshold)
        coverage = ranked.share_kept(test.threshold) if test.tested_rate == rate else 0.0
        of_answers[rate] = coverage, unchecked
    return of_answers


def _orientation(score: np.ndarray, correct: np.ndarray) -> int:
    """Return the sign that a fit would give the score: -1 if wrong answers have higher scores."""
    right, wrong = (score[side & ~np.isnan(score)] for side in (correct, ~correct))
    return -1 if len(right) and len(wrong) and right.mean() < wrong.mean() else 1


def labels_to_ask(
    population: Population,
    error_rate: float,
    confidence: float,
    draws: int = DRAWS,
    seed: int = SEED,
) -> int | None:
    """Forecast how many labels `label --error-rate` asks for until it guarantees something.

    It asks among NEW_ANSWERS answers. With that number POWER of the draws have a guarantee; None
    if no number is enough, and of parts.
    """
    if population.of_parts:
        return None
    population = population.many or population
    level, counts = significance_level(confidence), []
    for number in range(draws):
        answers = population.draw(seeded(seed, "asked", number), NEW_ANSWERS)
        counts.append(_labels_asked(answers, error_rate, level))
    enough = sorted(counts)[math.ceil(POWER * draws) - 1]
    return None if math.isinf(enough) else rounded_count(enough)


def _labels_asked(answers: LabelledAnswers, error_rate: float, level: float) -> float:
    """How many labels the first test of a search asks for; infinitely many where it fails."""
    judged: list[int] = []

    def is_wrong(index: int) -> bool:
        judged.append(index)
        return not answers.correct[index]

    thresholds = falling_thresholds(answers.probability, START_SHARE)
    candidates = np.flatnonzero(answers.probability >= thresholds[0]) if thresholds else []
    passes = passes_test(candidates, is_wrong, error_rate, level, "finite")
    return len(judged) if passes else math.inf


def summarise_draws(simulated: pl.DataFrame) -> pl.DataFrame:
    """Summarise draws by number of `questions`.

    `guaranteed` is the share of draws with a guarantee; `median`, `low` and `high` (10 and 90 %)
    are of the coverage, and `unchecked` is a median, too.
    """
    coverage = pl.col("coverage")
    return (
        simulated.group_by("questions")
        .agg(
            guaranteed=(coverage > 0).mean(),
            low=coverage.quantile(0.1, "linear"),
            median=coverage.median(),
            high=coverage.quantile(0.9, "linear"),
            unchecked=pl.median("unchecked"),
        )
        .sort("questions")
    )


def doubling_sizes(start: int, end: int) -> list[int]:
    """Return `start` and its doublings up to `end`.

    >>> doubling_sizes(50, 300)
    [50, 100, 200]
    """
    return [start * 2**power for power in range(max(1, int(math.log2(end / start)) + 1))]


def questions_needed(share: float, table: pl.DataFrame, more_than: int = 0) -> float | None:
    """Return the number of questions with which a `share` of draws has a guarantee.

    `table` comes from `summarise_draws`; None if its largest number is not enough. Shares never
    fall with more labels, and grow linearly in the logarithm between two numbers. Where the number
    is not `more_than` those at hand, which have no guarantee, it is the next of the table.
    """
    shares, questions = table["guaranteed"].cum_max().to_numpy(), table["questions"].to_numpy()
    row = int(np.searchsorted(shares, share))
    if row == len(shares):
        return None
    needed = float(questions[0])
    if row:
        fraction = (share - shares[row - 1]) / (shares[row] - shares[row - 1])
        needed = float(np.exp(np.interp(fraction, [0, 1], np.log(questions[row - 1 : row + 1]))))
    larger = questions[questions > more_than]
    return needed if needed > more_than else float(larger[0]) if len(larger) else None


def describe_forecast(
    population: Population, table: pl.DataFrame, error_rate: float, n_to_ask: int | None = None
) -> str:
    """Say in sentences how many labelled questions are needed, by a table of `summarise_draws`.

    `n_to_ask` are labels that 'tracecal label' would ask for, instead of random ones.
    """
    sentences = []
    needed, largest = questions_needed(POWER, table), table["questions"].max()
    rate, (power, *other_powers) = rate_text(error_rate), map(percent, (POWER, *OTHER_POWERS))
    at_hand = population.at_hand
    if needed is not None and needed <= at_hand:
        sentences.append(
            f"A fresh draw of your {at_hand:,} has a guarantee in {power} or more of the simulated "
            "draws; yours has none."
        )
    counts = [questions_needed(share, table, at_hand) for share in (POWER, *OTHER_POWERS)]
    enough, fewer, more = (
        f"more than {largest:,}" if count is None else f"{rounded_count(count):,}"
        for count in counts
    )
    if counts[0] is None:
        sentences.append(
            f"With {largest:,} labelled questions an error rate of at most {rate} can be "
            f"guaranteed in {percent(table['guaranteed'].max())} of the simulated draws, fewer "
            f"than {power}: {population.advice}."
        )
    else:
        sentences.append(
            f"About {enough} labelled questions are needed for an error rate of at most {rate}: "
            f"something can be guaranteed in {power} of the simulated draws then, in "
            f"{other_powers[0]} with {fewer}, in {other_powers[1]} with {more}."
        )
    if n_to_ask:
        sentences.append(
            f"'tracecal label' asks for labels that decide: about {n_to_ask:,} would do."
        )
    return " ".join(sentences)


def describe_few(table: pl.DataFrame, error_rate: float) -> str | None:
    """Say what the fewest labels of the table spare people by an overall error rate."""
    few = table.row(0, named=True)
    if not few["unchecked"]:
        return None
    return (
        f"With {few['questions']} labelled questions people need not check about "
        f"{percent(few['unchecked'])} of the answers if at most {rate_text(error_rate)} of all may "
        "remain wrong."
    )


def rounded_count(number: float) -> int:
    """Round a number to two significant digits.

    >>> rounded_count(1234.5)
    1200
    """
    return int(float(f"{number:.1e}"))
