"""Thresholds on a ranking score with a guaranteed error rate of the answers kept.

`find_thresholds` tests labelled answers that the score has not seen, for each target error rate:

- single answers by the line (`threshold_by_line`);
- single answers with few distinct scores, such as stated confidences, value by value from the top
  (`threshold_by_values`);
- many single answers from a start that the labels of a fit choose (`threshold_by_sequence`);
- groups of answers by bets on whole groups (`threshold_by_groups`).

What is tested, and in which order, is fixed without the labels that test.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtr

from tracecal.calibration.bets import betting_test, min_groups
from tracecal.calibration.guarantees.fixed_score import MIN_UNLABELLED
from tracecal.calibration.guarantees.line import (
    MAX_LABELS,
    error_line,
    find_places,
    forecast,
    free_of_errors,
    labels_needed,
)
from tracecal.calibration.guarantees.sequence import fitted_sequence

# Fewer distinct scores than this, of MIN_UNLABELLED answers or more, are tested value by value.
FEW_VALUES = 20
GROUPS_NEED = "groups of answers need"  # how the reason begins where these are too few
MIN_QUANTILES = 20  # fewest unlabelled scores that choose the thresholds for groups
# The first value to test keeps START times the answers that suffice if none is wrong; with fewer
# labels than FEW_LABELS times these, START_FEW times.
START, START_FEW, FEW_LABELS = 3.0, 1.5, 10
# Scores with equal first digits are ties, since their last bits depend on the computation.
DIGITS = 14
# Fewest labels for a start that some of them choose, which then keeps more than the line.
MANY_LABELS = 600
STEP = 0.02  # groups: each threshold keeps this share of the answers more than the one before


@dataclass(frozen=True)
class GroupedScores:
    """Answers with ranking scores, in groups.

    Attributes
    ----------
    score : array [n]
        Larger is more confident; NaN where an answer has none, which is never kept.
    group : array [n]
        The number of each answer's group. Groups are tested in the order of their numbers, which
        must not depend on labels.
    size : array [n]
        How many answers the group of each answer has in all, labelled or not.
    """

    score: np.ndarray
    group: np.ndarray
    size: np.ndarray

    @classmethod
    def of_single(cls, score: np.ndarray) -> "GroupedScores":
        """Make single answers, each a group."""
        return cls(np.asarray(score, dtype=float), np.arange(len(score)), np.ones(len(score), int))

    def select(self, mask: np.ndarray) -> "GroupedScores":
        """Select the answers in a mask [n]."""
        return GroupedScores(self.score[mask], self.group[mask], self.size[mask])

    def rounded(self) -> "GroupedScores":
        """Round the scores to DIGITS digits."""
        unit = _last_digit(self.score)
        return replace(self, score=np.round(self.score / unit) * unit)

    @property
    def n_groups(self) -> int:
        return len(np.unique(self.group))

    def group_totals(self, values: np.ndarray, largest_group: int) -> np.ndarray:
        """Average `values` [n, t] in each group, times size / `largest_group`: [groups, t]."""
        _, index, counts = np.unique(self.group, return_inverse=True, return_counts=True)
        order = np.argsort(index, kind="stable")
        starts = np.cumsum(counts) - counts
        sums = np.add.reduceat(values[order].astype(float), starts, axis=0)
        sizes = self.size[order][starts]
        return sums * (sizes / counts / largest_group)[:, None]

    def is_kept(self, thresholds: np.ndarray) -> np.ndarray:
        """Whether thresholds [t] keep each answer, [n, t]."""
        return self.score[:, None] >= thresholds


@dataclass(frozen=True)
class ErrorRateTest:
    """A threshold with a guaranteed error rate, and its test.

    Attributes
    ----------
    error_rate, tested_rate : float
        The guaranteed rate, and the tested one, which is at most as large.
    guaranteed : tuple of float
        All guaranteed thresholds, in falling order; the guarantee holds for all of them at once.
    n, n_groups : int
        How many answers and groups were tested.
    kept, wrong : int
        Answers kept and wrong at the lowest guaranteed threshold, or else where the test came
        nearest. Their ratio is no estimate of the error rate, as these labels chose the place.
    allowed : int or None
        How many of the kept answers may be wrong; None where groups are tested, or without a test.
    enough : int or None
        Without a threshold: how many labelled answers (groups) would be enough if further ones are
        like these.
    reason : str or None
        Why there is no threshold.
    """

    error_rate: float
    tested_rate: float
    guaranteed: tuple[float, ...]
    n: int
    n_groups: int
    kept: int = 0
    wrong: int = 0
    allowed: int | None = None
    enough: int | None = None
    reason: str | None = None

    @property
    def threshold(self) -> float | None:
        """The lowest guaranteed threshold, which keeps most; None without a guarantee."""
        return self.guaranteed[-1] if self.guaranteed else None


def find_thresholds(
    labelled: GroupedScores,
    wrong: np.ndarray,
    unlabelled: GroupedScores,
    error_rates: Sequence[float],
    level: float,
    largest_group: int = 1,
    with_forecast: bool = True,
    fitted: tuple[np.ndarray, np.ndarray] | None = None,
) -> list[ErrorRateTest]:
    """Find the thresholds of each error rate, smallest rate first.

    Each guarantee holds by itself. A rate without a threshold takes the previous rate's threshold.
    Scores that agree in DIGITS digits are ties, and a threshold is a little below those it keeps.

    Parameters
    ----------
    labelled : GroupedScores
        Answers that the score was fixed without, drawn as answers will come.
    wrong : array [n] of bool
        Whether each of them is wrong.
    unlabelled : GroupedScores
        Answers of the same kind whose labels are not used. Those of groups need MIN_QUANTILES.
    error_rates : sequence of float
        Target error rates.
    level : float
        Significance level of each guarantee.
    largest_group : int
        Answers of larger groups are neither tested nor ever kept.
    with_forecast : bool
        Whether to forecast how many labels would be enough, which takes longer than the tests.
    fitted : pair of arrays [m], optional
        Scores of the labelled answers that the score was fitted on, and whether each is wrong. With
        MANY_LABELS in all they choose where single answers' tests start.

    Examples
    --------
    >>> rank = np.arange(100)
    >>> labelled, unlabelled = GroupedScores.of_single(-rank), GroupedScores.of_single(rank[:0])
    >>> test = find_thresholds(labelled, rank % 20 == 19, unlabelled, [0.2], level=0.1)[0]
    >>> round(test.threshold), test.kept, test.wrong, test.allowed
    (-99, 100, 5, 11)
    """
    labelled, unlabelled = labelled.rounded(), unlabelled.rounded()
    testable = labelled.size <= largest_group
    labelled, wrong = labelled.select(testable), np.asarray(wrong, dtype=bool)[testable]
    unlabelled = unlabelled.select(unlabelled.size <= largest_group)
    first = np.isin(labelled.group, np.unique(labelled.group)[:MAX_LABELS])
    labelled, wrong = labelled.select(first), wrong[first]
    finite = unlabelled.score[~np.isnan(unlabelled.score)]
    few_values = len(finite) >= MIN_UNLABELLED and len(np.unique(finite)) < FEW_VALUES
    scores = labelled.score, wrong
    chooses = None if fitted is None else _rounded_answers(*fitted)
    many = chooses is not None and len(chooses[0]) + len(wrong) >= MANY_LABELS
    tests: list[ErrorRateTest] = []
    for rate in sorted(error_rates):
        target = rate, level, with_forecast
        if largest_group > 1:
            test = threshold_by_groups(labelled, wrong, unlabelled, largest_group, *target)
        elif few_values:
            test = threshold_by_values(*scores, unlabelled.score, *target)
        elif many and len(chooses[0]):
            test = threshold_by_sequence(*scores, *chooses, *target)
        else:
            test = threshold_by_line(*scores, *target)
        test = replace(test, guaranteed=tuple(lowered(np.array(test.guaranteed)).tolist()))
        stricter = tests[-1] if tests else None
        if not test.guaranteed and stricter and stricter.guaranteed:
            test = replace(stricter, error_rate=rate)
        tests.append(test)
    return tests


def _rounded_answers(score: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded scores of the answers with a score, and whether each is wrong."""
    ranked = ~np.isnan(score)
    return GroupedScores.of_single(score[ranked]).rounded().score, wrong[ranked]


def lowered(score: np.ndarray) -> np.ndarray:
    """Return the smallest numbers that round to the scores [n]."""
    return score - _last_digit(score) / 2


def _last_digit(score: np.ndarray) -> np.ndarray:
    """The unit of the last of DIGITS digits of each score."""
    size = np.abs(np.where(np.isfinite(score) & (score != 0), score, 1.0))
    return 10.0 ** (np.floor(np.log10(size)) + 1 - DIGITS)


def threshold_by_line(
    score: np.ndarray,
    wrong: np.ndarray,
    error_rate: float,
    level: float,
    with_forecast: bool = True,
) -> ErrorRateTest:
    """Test single answers, `score` [n] and `wrong` [n], by the line."""
    places = find_places(score, wrong)
    test = ErrorRateTest(error_rate, error_rate, (), places.n, places.n)
    passes = places.passes(error_rate, level)
    line = error_line(places.n, error_rate, level)
    if line is None:
        return replace(test, reason=_too_few(places.n, "answers", error_rate, level))
    nearest = places.nearest(error_rate, level)
    index = np.flatnonzero(passes)[-1] if passes.any() else nearest
    n_kept, n_wrong = int(places.kept[index]), int(places.wrong[index])
    allowed = int(line.allowed[n_kept - line.first])
    test = replace(test, kept=n_kept, wrong=n_wrong, allowed=allowed)
    if passes.any():
        return replace(test, guaranteed=tuple(places.score[passes].tolist()))
    enough = labels_needed(places, error_rate, level) if with_forecast else None
    return _without_threshold(test, "answers", enough, with_forecast)


def threshold_by_values(
    score: np.ndarray,
    wrong: np.ndarray,
    unlabelled: np.ndarray,
    error_rate: float,
    level: float,
    with_forecast: bool = True,
) -> ErrorRateTest:
    """Test single answers at the distinct scores of `unlabelled` ones, from the top down.

    Each value has an exact binomial test, and the first that fails is the last. The first value
    keeps enough of the unlabelled answers for a test with a few errors.
    """
    ranked = ~np.isnan(score)
    score, wrong, n = score[ranked], wrong[ranked], int(ranked.sum())
    test = ErrorRateTest(error_rate, error_rate, (), n, n)
    if reason := _too_few(n, "answers", error_rate, level):
        return replace(test, reason=reason)
    suffice = free_of_errors(error_rate, level)
    values = np.unique(unlabelled[~np.isnan(unlabelled)])[::-1]
    start = (START_FEW if n < FEW_LABELS * suffice else START) * suffice / n
    share = (unlabelled[:, None] >= values).sum(axis=0) / (~np.isnan(unlabelled)).sum()
    values = values[min(int(np.searchsorted(share, start)), len(values) - 1) :]
    return _test_in_order(test, score, wrong, values, level, with_forecast)


def threshold_by_sequence(
    score: np.ndarray,
    wrong: np.ndarray,
    fitted_score: np.ndarray,
    fitted_wrong: np.ndarray,
    error_rate: float,
    level: float,
    with_forecast: bool = True,
) -> ErrorRateTest:
    """Test single answers at thresholds that the answers of a fit and their labels choose.

    Each threshold has an exact binomial test, and the first that fails is the last.
    """
    ranked = ~np.isnan(score)
    score, wrong, n = score[ranked], wrong[ranked], int(ranked.sum())
    test = ErrorRateTest(error_rate, error_rate, (), n, n)
    if reason := _too_few(n, "answers", error_rate, level):
        return replace(test, reason=reason)
    sequence = fitted_sequence(fitted_score, fitted_wrong, n, error_rate, level)
    return _test_in_order(test, score, wrong, sequence, level, with_forecast)


def _test_in_order(
    test: ErrorRateTest,
    score: np.ndarray,
    wrong: np.ndarray,
    thresholds: np.ndarray,
    level: float,
    with_forecast: bool,
) -> ErrorRateTest:
    """Complete a test by exact binomial tests of falling thresholds, up to the first that fails."""
    n, error_rate = test.n, test.tested_rate
    is_kept = score[:, None] >= thresholds
    n_kept, n_wrong = is_kept.sum(axis=0), (is_kept & wrong[:, None]).sum(axis=0)
    n_passed = int(np.cumprod(bdtr(n_wrong, n_kept, error_rate) <= level).sum())
    n_kept, n_wrong = (int(counts[max(n_passed - 1, 0)]) for counts in (n_kept, n_wrong))
    allowed = int((bdtr(np.arange(n_kept + 1), n_kept, error_rate) <= level).sum()) - 1
    test = replace(test, kept=n_kept, wrong=n_wrong, allowed=allowed)
    if n_passed:
        return replace(test, guaranteed=tuple(thresholds[:n_passed].tolist()))
    shares = n_kept / n, n_wrong / n

    def suffices(size: int) -> bool:
        n_kept, n_wrong = math.floor(shares[0] * size), math.ceil(shares[1] * size)
        return bool(bdtr(n_wrong, n_kept, error_rate) <= level)

    enough = forecast(n, suffices) if with_forecast else None
    return _without_threshold(test, "answers", enough, with_forecast)


def threshold_by_groups(
    labelled: GroupedScores,
    wrong: np.ndarray,
    unlabelled: GroupedScores,
    largest_group: int,
    error_rate: float,
    level: float,
    with_forecast: bool = True,
) -> ErrorRateTest:
    """Test groups of at most `largest_group` answers by bets on whole groups.

    Thresholds are quantiles of the unlabelled scores. The first keeps enough of the unlabelled
    answers for a test with a few errors, and the first that fails is the last. Where only some
    answers of a group are labelled, their mean stands for the others.
    """
    n, n_groups = int((~np.isnan(labelled.score)).sum()), labelled.n_groups
    test = ErrorRateTest(error_rate, error_rate, (), n, n_groups)
    if (reason := _too_few(n_groups, "groups", error_rate, level)) or (
        reason := lacks_unlabelled(unlabelled)
    ):
        return replace(test, reason=reason)
    wrong = wrong[:, None]
    sequence = _group_thresholds(unlabelled, n_groups, error_rate, level, largest_group)

    def excess(thresholds: np.ndarray) -> np.ndarray:
        is_kept = labelled.is_kept(thresholds)
        return labelled.group_totals(is_kept * (wrong - error_rate), largest_group)

    passed = betting_test(excess(sequence), np.zeros((0, len(sequence))), error_rate, level)
    n_passed = int(np.cumprod(passed).sum())
    is_kept = labelled.is_kept(sequence[[max(n_passed - 1, 0)]])
    test = replace(test, kept=int(is_kept.sum()), wrong=int((is_kept & wrong).sum()))
    if n_passed:
        return replace(test, guaranteed=tuple(sequence[:n_passed].tolist()))

    def suffices(size: int) -> bool:
        repeated = excess(sequence[:1])[np.arange(size) % n_groups]
        return bool(betting_test(repeated, np.zeros((0, 1)), error_rate, level)[0])

    enough = forecast(n_groups, suffices) if with_forecast else None
    return _without_threshold(test, "groups", enough, with_forecast)


def lacks_unlabelled(unlabelled: GroupedScores) -> str | None:
    """Why a guarantee of groups needs more unlabelled answers; None where there are enough."""
    n = int((~np.isnan(unlabelled.score)).sum())
    if n >= MIN_QUANTILES:
        return None
    return (
        f"{GROUPS_NEED} {MIN_QUANTILES} unlabelled answers, which choose the thresholds "
        f"to test; there are {n}"
    )


def quantiles(score: np.ndarray) -> np.ndarray:
    """The distinct thresholds that keep a share STEP, 2 STEP, … of the scores, in falling order."""
    ranked = -np.sort(-score[~np.isnan(score)])
    shares = np.arange(1, round(1 / STEP) + 1) * STEP
    return np.unique(ranked[np.ceil(shares * len(ranked) - 1e-9).astype(int) - 1])[::-1]


def _group_thresholds(
    unlabelled: GroupedScores, n_groups: int, error_rate: float, level: float, largest_group: int
) -> np.ndarray:
    """The thresholds to test on `n_groups` groups, in falling order."""
    thresholds = quantiles(unlabelled.score)
    weight = unlabelled.group_totals(unlabelled.is_kept(thresholds), largest_group).mean(axis=0)
    start = np.searchsorted(n_groups * weight, START * free_of_errors(error_rate, level))
    return thresholds[min(int(start), len(thresholds) - 1) :]


def _too_few(n: int, unit: str, error_rate: float, level: float) -> str | None:
    """Why `n` answers or groups cannot be enough; None where they may be."""
    fewest = min_groups(error_rate, level)
    if n >= fewest:
        return None
    return f"needs at least {fewest} labelled {unit} even if every answer is correct; there are {n}"


def _without_threshold(
    test: ErrorRateTest, unit: str, enough: int | None, with_forecast: bool
) -> ErrorRateTest:
    """Say why the place that came nearest failed, and what the forecast is."""
    reason = f"{test.wrong} of the {test.kept} highest-ranked answers are wrong"
    if test.allowed is not None and test.allowed >= 0:
        reason += f", at most {test.allowed} may be"
    if enough is not None:
        reason += f"; about {enough} labelled {unit} like these would be enough"
    elif with_forecast:
        reason += "; more labels like these would not be enough"
    return replace(test, enough=enough, reason=reason)
