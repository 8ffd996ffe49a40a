"""Thresholds on a ranking score with a guaranteed error rate, of the answers kept or of all.

`find_thresholds` tests labelled answers that the score has not seen, one of each question, for each
target error rate:

- by the line (`threshold_by_line`);
- answers with few distinct scores, such as stated confidences, value by value from the top
  (`threshold_by_values`);
- many answers in the order of a sequence that the labels of a fit choose (`fitted_sequence`).

People check the answers below a threshold and mend what is wrong: `overall_threshold` gives the
lowest one above which at most a share of all answers is wrong, `confidence_at_once` the confidence
with which several such rates hold together.

`RankedAnswers` holds the scores of one ranking and finds the thresholds of kept answers.
What is tested, and in which order, is fixed without the labels that test. Parts of answers have
tests of their own (`parts`).
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from tracecal.guarantees.line import MAX_LABELS, error_line, find_places, free_of_errors

# Answers without labels that a choice of scores or thresholds takes, at least.
MIN_UNLABELLED = 100
# Fewer distinct scores than this, of MIN_UNLABELLED answers or more, are tested value by value.
FEW_VALUES = 20
# The first value to test keeps START times the answers that suffice if none is wrong; with fewer
# labels than FEW_LABELS times these, START_FEW times.
START, START_FEW, FEW_LABELS = 3.0, 1.5, 10
# Scores with equal first digits are ties, since their last bits depend on the computation.
DIGITS = 14
# Fewest labels for a start that some of them choose, which then keeps more than the line.
MANY_LABELS = 600
# The first threshold of a sequence keeps SEQUENCE_START times the answers that suffice without an
# error; errors count as if PRIOR_LABELS more answers were wrong at the target error rate. Each
# further one keeps a share STEP more. All were chosen by simulation (`make validate`).
SEQUENCE_START, PRIOR_LABELS, STEP = 1.5, 2.0, 0.02
NOT_OF_PARTS = "--overall-error is for whole answers: nobody has measured it for parts."
KEEP_ALL = 0.0  # a threshold that every score reaches
# The ranking does not help where the share of wrong ones among the kept exceeds this times all's.
LOTTERY = 0.8
NEGLIGIBLE = 1e-15  # probability of a number of errors
DEVIATIONS = 8.5  # from its mean, beyond which a number of errors is negligible


@dataclass(frozen=True)
class ErrorRateTest:
    """A threshold with a guaranteed error rate, and its test.

    Attributes
    ----------
    error_rate, tested_rate : float
        The guaranteed rate, and the tested one, which is at most as large.
    guaranteed : tuple of float
        All guaranteed thresholds, in falling order; the guarantee holds for all of them at once.
    n : int
        How many answers were tested.
    kept, wrong : int
        Answers kept and wrong at the lowest guaranteed threshold, or else where the test came
        nearest. Their ratio is no estimate of the error rate, as these labels chose the place.
    allowed : int or None
        How many of the kept answers may be wrong; None of parts, or without a test.
    reason : str or None
        Why there is no threshold.
    """

    error_rate: float
    tested_rate: float
    guaranteed: tuple[float, ...]
    n: int
    kept: int = 0
    wrong: int = 0
    allowed: int | None = None
    reason: str | None = None

    @property
    def threshold(self) -> float | None:
        """The lowest guaranteed threshold, which keeps most; None without a guarantee."""
        return self.guaranteed[-1] if self.guaranteed else None

    def as_row(self) -> dict[str, Any]:
        """Return the JSON values of the test, with counts if it has a threshold."""
        n_kept, wrong = (self.kept, self.wrong) if self.guaranteed else (0, 0)
        return {
            "error_rate": self.error_rate,
            "tested_rate": self.tested_rate,
            "threshold": self.threshold,
            "n": self.n,
            "kept": n_kept,
            "wrong": wrong,
            "allowed": self.allowed if self.guaranteed else None,
            "coverage": n_kept / self.n if n_kept else 0.0,
            "error": wrong / n_kept if n_kept else None,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class RankedAnswers:
    """Answers, one of each question, with their ranking scores; NaN where no threshold decides.

    Attributes
    ----------
    score : array [n]
        The scores of the labelled answers that test.
    wrong : array [n] of bool
        Whether each of them is wrong.
    unlabelled : array [m]
        Scores of answers that choose the thresholds to test; their labels are not used.
    fitted : pair of arrays, optional
        Scores of the answers that fitted the ranking, and whether each is wrong.
    counted : array, optional
        Scores of the answers that the share kept refers to; by default of those that test.
    """

    score: np.ndarray
    wrong: np.ndarray
    unlabelled: np.ndarray
    fitted: tuple[np.ndarray, np.ndarray] | None = None
    counted: np.ndarray | None = None

    @property
    def n_tested(self) -> int:
        """How many questions test."""
        return int((~np.isnan(self.score)).sum())

    @property
    def n_right(self) -> int:
        """How many right answers test."""
        return int((~self.wrong).sum())

    def test(self, error_rates: Sequence[float], level: float) -> list[ErrorRateTest]:
        """Find the thresholds of each error rate, smallest rate first."""
        answers = self.score, self.wrong, self.unlabelled
        return find_thresholds(*answers, error_rates, level, self.fitted)

    @property
    def n_counted(self) -> int | None:
        """Of how many answers the share kept is; None: of those that test."""
        return None if self.counted is None else len(self.counted)

    def share_kept(self, threshold: float | None) -> float:
        """The share of the counted answers that a guaranteed threshold keeps."""
        counted = self.score if self.counted is None else self.counted
        if threshold is None or not len(counted):
            return 0.0
        return float((counted >= threshold).mean())


def find_thresholds(
    score: np.ndarray,
    wrong: np.ndarray,
    unlabelled: np.ndarray,
    error_rates: Sequence[float],
    level: float,
    fitted: tuple[np.ndarray, np.ndarray] | None = None,
) -> list[ErrorRateTest]:
    """Find the thresholds of each error rate, smallest rate first.

    Each guarantee holds by itself. A rate without a threshold takes the previous rate's threshold.
    Scores that agree in DIGITS digits are ties, and a threshold is a little below those it keeps.

    Parameters
    ----------
    score : array [n]
        Scores of answers that the score was fixed without, drawn as answers will come, in an order
        that does not depend on labels; larger is more confident, and NaN is never kept.
    wrong : array [n] of bool
        Whether each of them is wrong.
    unlabelled : array [m]
        Scores of answers of the same kind whose labels are not used.
    error_rates : sequence of float
        Target error rates.
    level : float
        Significance level of each guarantee.
    fitted : pair of arrays [m], optional
        Scores of the labelled answers that the score was fitted on, and whether each is wrong. With
        MANY_LABELS in all they choose where tests start.

    Examples
    --------
    >>> rank = np.arange(100)
    >>> test = find_thresholds(-rank, rank % 20 == 19, rank[:0], [0.2], level=0.1)[0]
    >>> round(test.threshold), test.kept, test.wrong, test.allowed
    (-99, 100, 5, 11)
    """
    scores = rounded(score)[:MAX_LABELS], np.asarray(wrong, dtype=bool)[:MAX_LABELS]
    unlabelled = rounded(unlabelled)
    finite = unlabelled[~np.isnan(unlabelled)]
    few_values = len(finite) >= MIN_UNLABELLED and len(np.unique(finite)) < FEW_VALUES
    fitted_score, fitted_wrong = fitted or (unlabelled[:0], scores[1][:0])
    ranked = ~np.isnan(fitted_score)
    chooses = rounded(fitted_score[ranked]), fitted_wrong[ranked]
    many = len(chooses[0]) + len(scores[0]) >= MANY_LABELS
    tests = []
    for rate in sorted(error_rates):
        if few_values:
            test = threshold_by_values(*scores, unlabelled, rate, level)
        elif many and len(chooses[0]):
            sequence = partial(fitted_sequence, *chooses, error_rate=rate, level=level)
            test = threshold_in_order(*scores, sequence, rate, level)
        else:
            test = threshold_by_line(*scores, rate, level)
        tests.append(test)
    return with_lower_rates(tests)


def with_lower_rates(tests: Sequence[ErrorRateTest]) -> list[ErrorRateTest]:
    """Lower the thresholds of tests by a part of a digit, so that ties are kept.

    A rate without a threshold takes that of the rate before.
    """
    results: list[ErrorRateTest] = []
    for test in tests:
        test = replace(test, guaranteed=tuple(lowered(np.array(test.guaranteed)).tolist()))
        stricter = results[-1] if results else None
        if not test.guaranteed and stricter and stricter.guaranteed:
            test = replace(stricter, error_rate=test.error_rate)
        results.append(test)
    return results


def rounded(score: np.ndarray) -> np.ndarray:
    """Round scores to DIGITS digits."""
    score = np.asarray(score, dtype=float)
    unit = _last_digit(score)
    return np.round(score / unit) * unit


def lowered(score: np.ndarray) -> np.ndarray:
    """Return the smallest numbers that round to the scores [n], or one bit less."""
    limit = score - _last_digit(score) / 2
    below = np.nextafter(limit, -np.inf)
    return np.where(rounded(below) == score, below, limit)


def raised(score: np.ndarray) -> np.ndarray:
    """Return the smallest numbers that round to more than the scores [n], or one bit more."""
    limit = score + _last_digit(score) / 2
    limit = np.where(rounded(limit) > score, limit, np.nextafter(limit, np.inf))
    return np.where(rounded(limit) > score, limit, np.nextafter(limit, np.inf))


def _last_digit(score: np.ndarray) -> np.ndarray:
    """The unit of the last of DIGITS digits of each score."""
    size = np.abs(np.where(np.isfinite(score) & (score != 0), score, 1.0))
    return 10.0 ** (np.floor(np.log10(size)) + 1 - DIGITS)


def threshold_by_line(
    score: np.ndarray, wrong: np.ndarray, error_rate: float, level: float
) -> ErrorRateTest:
    """Test answers, `score` [n] and `wrong` [n], by the line."""
    places = find_places(score, wrong)
    test = ErrorRateTest(error_rate, error_rate, (), places.n)
    passes = places.passes(error_rate, level)
    line = error_line(places.n, error_rate, level)
    if line is None:
        return replace(test, reason=too_few(places.n, "answers", error_rate, level))
    is_sure = bool(passes.any())
    index = np.flatnonzero(passes)[-1] if is_sure else places.nearest(error_rate, level)
    n_kept, n_wrong = int(places.kept[index]), int(places.wrong[index])
    allowed = int(line.allowed[n_kept - line.first])
    test = replace(test, kept=n_kept, wrong=n_wrong, allowed=allowed)
    if is_sure:
        return replace(test, guaranteed=tuple(places.score[passes].tolist()))
    return without_threshold(test)


def threshold_by_values(
    score: np.ndarray, wrong: np.ndarray, unlabelled: np.ndarray, error_rate: float, level: float
) -> ErrorRateTest:
    """Test answers at the distinct scores of `unlabelled` ones, from the top down.

    Each value has an exact binomial test, and the first that fails is the last. The first value
    keeps enough of the unlabelled answers for a test with a few errors.
    """

    def choose(n: int) -> np.ndarray:
        suffice = free_of_errors(error_rate, level)
        values = np.unique(unlabelled[~np.isnan(unlabelled)])[::-1]
        start = (START_FEW if n < FEW_LABELS * suffice else START) * suffice / n
        share = (unlabelled[:, None] >= values).sum(axis=0) / (~np.isnan(unlabelled)).sum()
        return values[min(int(np.searchsorted(share, start)), len(values) - 1) :]

    return threshold_in_order(score, wrong, choose, error_rate, level)


def threshold_in_order(
    score: np.ndarray,
    wrong: np.ndarray,
    choose: Callable[[int], np.ndarray],
    error_rate: float,
    level: float,
) -> ErrorRateTest:
    """Test falling thresholds, up to the first that fails, each by an exact binomial test.

    `choose` gives them by the number of answers that test.
    """
    ranked = ~np.isnan(score)
    score, wrong, n = score[ranked], wrong[ranked], int(ranked.sum())
    test = ErrorRateTest(error_rate, error_rate, (), n)
    if reason := too_few(n, "answers", error_rate, level):
        return replace(test, reason=reason)
    thresholds = choose(n)
    scores = score, score[wrong]
    counts = [len(each) - np.searchsorted(np.sort(each), thresholds) for each in scores]
    n_passed = int(np.cumprod(scipy.special.bdtr(counts[1], counts[0], error_rate) <= level).sum())
    n_kept, n_wrong = (int(count[max(n_passed - 1, 0)]) for count in counts)
    allowed = allowed_errors(n_kept, error_rate, level)
    test = replace(test, kept=n_kept, wrong=n_wrong, allowed=allowed)
    if n_passed:
        return replace(test, guaranteed=tuple(thresholds[:n_passed].tolist()))
    return without_threshold(test)


def too_few(n: int, unit: str, error_rate: float, level: float) -> str | None:
    """Why `n` answers or groups cannot be enough; None where they may be."""
    fewest = min_groups(error_rate, level)
    if n >= fewest:
        return None
    return f"needs at least {fewest} labelled {unit} even if every answer is correct; there are {n}"


def without_threshold(test: ErrorRateTest) -> ErrorRateTest:
    """Say why the place that came nearest failed."""
    verb = "is" if test.wrong == 1 else "are"
    reason = f"{test.wrong} of the {test.kept} highest-ranked answers {verb} wrong"
    if test.allowed is not None and test.allowed >= 0:
        reason += f", at most {test.allowed} may be"
    return replace(test, reason=reason)


def fitted_sequence(
    score: np.ndarray, wrong: np.ndarray, n_tested: int, error_rate: float, level: float
) -> np.ndarray:
    """Choose the thresholds that `n_tested` further answers test, in falling order.

    The first should be the easiest to guarantee: of those that keep enough answers for a test, it
    has the largest share kept * KL(observed error rate, `error_rate`), the rate at which evidence
    grows; where all observed error rates exceed the target, it has the lowest one.

    Parameters
    ----------
    score, wrong : array [n]
        Ranking scores and labels of answers that do not test.
    n_tested : int
        Number of answers that will test.
    error_rate, level : float
        Target error rate, and significance level of each test.

    Examples
    --------
    >>> fitted_sequence(np.arange(5.0), np.arange(5) < 2, n_tested=50, error_rate=0.2, level=0.1)
    array([2., 1., 0.])
    """
    start_share = SEQUENCE_START * np.ceil(free_of_errors(error_rate, level)) / max(n_tested, 1)
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    if not len(ranked):
        return ranked
    # Rounding may lift the last step above 1.
    shares = np.append(np.arange(min(start_share, 1.0), 1.0, STEP), 1.0).clip(max=1)
    thresholds = ranked[np.ceil(shares * len(ranked)).astype(int) - 1]
    n_kept = np.searchsorted(-ranked, -thresholds, side="right")
    n_wrong = np.append(0, np.cumsum(wrong[order]))[n_kept]
    observed = (n_wrong + PRIOR_LABELS * error_rate) / (n_kept + PRIOR_LABELS)
    growth = scipy.special.xlogy(observed, observed / error_rate) + scipy.special.xlogy(
        1 - observed, (1 - observed) / (1 - error_rate)
    )
    merit = np.where(observed < error_rate, shares * growth, error_rate - observed)
    return np.unique(thresholds[int(np.argmax(merit)) :])[::-1]


def overall_threshold(
    score: np.ndarray, wrong: np.ndarray, error_rate: float, level: float
) -> float | None:
    """The lowest threshold above which at most `error_rate` of all answers is wrong.

    It lies above the (k + 1)-th highest score of the wrong answers, where k errors are allowed; all
    that tie with that answer are below it.

    Parameters
    ----------
    score : array [n]
        Ranking scores from 0 to 1; an answer without one (NaN) is never kept, and counts.
    wrong : array [n] of bool
        Whether each answer is wrong.
    error_rate : float
        Largest share of all answers that are kept and wrong.
    level : float
        Significance level.

    Returns
    -------
    float or None
        None if there are too few answers.

    Examples
    --------
    >>> score, wrong = np.arange(100) / 100, np.arange(100) % 10 == 5
    >>> round(overall_threshold(score, wrong, error_rate=0.1, level=0.1), 2)
    0.45
    """
    allowed = allowed_errors(len(score), error_rate, level)
    if allowed < 0:
        return None
    score = rounded(score)
    highest = -np.sort(-score[wrong & ~np.isnan(score)])
    return float(raised(highest[allowed])) if len(highest) > allowed else KEEP_ALL


def overall_rows(
    score: np.ndarray, wrong: np.ndarray, error_rates: Sequence[float], level: float
) -> list[dict[str, Any]]:
    """The JSON values of the `overall_threshold` of each rate, smallest rate first."""
    n, rows = len(score), []
    for rate in sorted(error_rates):
        few = f"needs at least {min_groups(rate, level)} labels that test; there are {n}"
        allowed = allowed_errors(n, rate, level)
        threshold = overall_threshold(score, wrong, rate, level)
        is_kept = score >= (np.inf if threshold is None else threshold)
        some = is_kept.any() and not is_kept.all()
        rows.append(
            {
                "error_rate": rate,
                "threshold": threshold,
                "n": n,
                "allowed": None if threshold is None else allowed,
                "is_lottery": bool(some and wrong[is_kept].mean() > LOTTERY * wrong.mean()),
                "reason": few if threshold is None else None,
            }
        )
    return rows


def confidence_at_once(n: int, error_rates: Sequence[float], level: float) -> float:
    """The confidence that the thresholds of all rates hold at once, with `n` answers.

    The thresholds of rising rates nest, so that the errors above each are those above the one
    before and a binomial number of further ones.

    >>> round(confidence_at_once(100, [0.05, 0.1, 0.2], level=0.1), 4)
    0.8697
    """
    probability, before = np.eye(1, n + 1)[0], 0.0
    for rate in sorted(error_rates):
        further = (rate - before) / (1 - before)
        reach = DEVIATIONS * (math.sqrt(n * further * (1 - further)) + DEVIATIONS)
        counts = np.flatnonzero(probability > NEGLIGIBLE)
        first = max(0, math.floor((n - counts[-1]) * further - reach))
        numbers = np.arange(first, min(n, math.ceil((n - counts[0]) * further + reach)) + 1)
        remaining = n - counts[:, None]
        below = scipy.special.bdtr(np.minimum(numbers, remaining), remaining, further)
        mass = np.diff(below, prepend=0.0)
        following = np.zeros(n + len(numbers) + first)
        for count, row in zip(counts, mass, strict=True):
            following[count + numbers] += probability[count] * row
        following[: allowed_errors(n, rate, level) + 1] = 0.0
        probability, before = following[: n + 1], rate
    return float(probability.sum())


def min_groups(error_rate: float, level: float) -> int:
    """How many groups guarantee an error rate if no answer is wrong."""
    return math.ceil(free_of_errors(error_rate, level))


def allowed_errors(n: int, error_rate: float, level: float) -> int:
    """The largest k with P(Bin(n, `error_rate`) <= k) <= `level`; -1 where `n` is too small.

    >>> allowed_errors(21, 0.1, 0.1), allowed_errors(22, 0.1, 0.1), allowed_errors(100, 0.1, 0.1)
    (-1, 0, 5)
    """
    bdtr = scipy.special.bdtr
    return bisect_right(range(n), level, key=lambda wrong: bdtr(wrong, n, error_rate)) - 1
