"""Guarantees for parts of answers, by bets on whole documents.

Parts of one answer, their document, may be right and wrong together, so that documents are tested:
one of each question. A document of more than `most_parts` parts is neither tested nor kept.

1. `most_parts(sizes)` is the usual limit.
2. `RankedParts` holds the parts with their scores, and finds thresholds for error rates and recall.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from tracecal.guarantees.error_rate import (
    START,
    ErrorRateTest,
    lowered,
    rounded,
    too_few,
    with_lower_rates,
    without_threshold,
)
from tracecal.guarantees.line import MAX_LABELS, free_of_errors

LARGER_SHARE = 0.2  # of the parts, which the usual limit leaves in larger documents
PARTS_NEED = "guarantees for parts need"  # how the reason begins where these are too few
MIN_QUANTILES = 20  # fewest unlabelled scores that choose the thresholds
STEP = 0.02  # each threshold keeps this share of the parts more than the one before


def most_parts(sizes: np.ndarray) -> int:
    """The smallest number that leaves at most LARGER_SHARE of the parts in larger documents.

    `sizes` [documents] are the numbers of parts.

    >>> most_parts(np.array([1, 1, 1, 1, 2, 20])), most_parts(np.array([2, 2, 2, 1]))
    (20, 2)
    """
    distinct, counts = np.unique(sizes, return_counts=True)
    larger = 1 - np.cumsum(distinct * counts) / max((distinct * counts).sum(), 1)
    return int(distinct[np.argmax(larger <= LARGER_SHARE + 1e-12)]) if len(distinct) else 1


@dataclass(frozen=True)
class PartScores:
    """Parts with ranking scores.

    Attributes
    ----------
    score : array [n]
        Larger is more confident; NaN where a part has none, which is never kept.
    document : array [n]
        The number of each part's document. Documents are tested in the order of their numbers,
        which must not depend on labels.
    size : array [n]
        How many parts its document has in all, labelled or not.
    """

    score: np.ndarray
    document: np.ndarray
    size: np.ndarray

    def select(self, mask: np.ndarray) -> "PartScores":
        """Select the parts in a mask [n]."""
        return PartScores(self.score[mask], self.document[mask], self.size[mask])

    def rounded(self) -> "PartScores":
        """Round the scores."""
        return replace(self, score=rounded(self.score))

    @property
    def n_documents(self) -> int:
        return len(np.unique(self.document))

    def totals(self, values: np.ndarray, most_parts: int) -> np.ndarray:
        """Average `values` [n, t] in each document, times its size / `most_parts`: [documents, t].

        Where only some parts of a document are labelled, their mean stands for the others.
        """
        _, index, counts = np.unique(self.document, return_inverse=True, return_counts=True)
        order = np.argsort(index, kind="stable")
        starts = np.cumsum(counts) - counts
        sums = np.add.reduceat(values[order].astype(float), starts, axis=0)
        sizes = self.size[order][starts]
        return sums * (sizes / counts / most_parts)[:, None]

    def is_kept(self, thresholds: np.ndarray) -> np.ndarray:
        """Whether thresholds [t] keep each part, [n, t]."""
        return self.score[:, None] >= thresholds


@dataclass(frozen=True)
class RankedParts:
    """Parts of answers with their ranking scores, NaN where no threshold decides about them.

    Attributes
    ----------
    labelled : PartScores
        The labelled parts that test.
    wrong : array [n] of bool
        Whether each of them is wrong.
    unlabelled : PartScores
        Parts that choose the thresholds to test; their labels are not used.
    most_parts : int
        Parts of larger documents are neither tested nor kept.
    counted : PartScores, optional
        The parts that the share kept refers to; by default those that test.
    """

    labelled: PartScores
    wrong: np.ndarray
    unlabelled: PartScores
    most_parts: int
    counted: PartScores | None = None

    @property
    def is_testable(self) -> np.ndarray:
        """Whether a threshold may keep each labelled part, [n]."""
        return self.labelled.size <= self.most_parts

    @property
    def score(self) -> np.ndarray:
        """The scores of the labelled parts; NaN where no threshold keeps one."""
        return np.where(self.is_testable, self.labelled.score, np.nan)

    @property
    def n_tested(self) -> int:
        """How many documents test."""
        return self.labelled.select(~np.isnan(self.score)).n_documents

    @property
    def n_right(self) -> int:
        """How many right parts may be kept."""
        return int((~self.wrong[self.is_testable]).sum())

    def test(self, error_rates: Sequence[float], level: float) -> list[ErrorRateTest]:
        """Find the thresholds of each error rate, smallest rate first (`find_thresholds`)."""
        labelled = self.labelled.rounded().select(self.is_testable)
        wrong = np.asarray(self.wrong, dtype=bool)[self.is_testable]
        first = np.isin(labelled.document, np.unique(labelled.document)[:MAX_LABELS])
        labelled, wrong = labelled.select(first), wrong[first]
        rates = sorted(error_rates)
        return with_lower_rates(
            _test_documents(labelled, wrong, self._choosing, self.most_parts, rates, level)
        )

    def find_recall_threshold(self, recall: float, level: float) -> float | None:
        """The highest threshold that keeps at least `recall` of the right parts, or None.

        Bets on documents test quantiles of the unlabelled scores from the lowest up; the first that
        fails ends the search.
        """
        labelled = self.labelled.rounded().select(self.is_testable)
        right = ~np.asarray(self.wrong, dtype=bool)[self.is_testable, None]
        if not labelled.n_documents or self.lacks_unlabelled():
            return None
        rising = _quantiles(self._choosing.score)[::-1]
        is_dropped = ~labelled.is_kept(rising)
        excess = labelled.totals(right * (is_dropped - (1 - recall)), self.most_parts)
        passed = betting_test(excess, 1 - recall, level)
        n_passed = int(np.cumprod(passed).sum())
        return float(lowered(rising[n_passed - 1])) if n_passed else None

    @property
    def n_counted(self) -> int | None:
        """Of how many parts the share kept is; None: of those that test."""
        return None if self.counted is None else len(self.counted.score)

    def lacks_unlabelled(self) -> str | None:
        """Why a guarantee needs more unlabelled parts; None where there are enough."""
        return _lacks_unlabelled(self._choosing)

    def share_kept(self, threshold: float | None) -> float:
        """The share of the counted parts that a guaranteed threshold keeps."""
        counted = self.labelled if self.counted is None else self.counted
        if threshold is None or not len(counted.score):
            return 0.0
        return float(((counted.score >= threshold) & (counted.size <= self.most_parts)).mean())

    @property
    def _choosing(self) -> PartScores:
        """The unlabelled parts that may be kept."""
        return self.unlabelled.rounded().select(self.unlabelled.size <= self.most_parts)


def _test_documents(
    labelled: PartScores,
    wrong: np.ndarray,
    unlabelled: PartScores,
    most_parts: int,
    error_rates: Sequence[float],
    level: float,
) -> list[ErrorRateTest]:
    """Test documents of at most `most_parts` parts by bets on one after another.

    Thresholds are quantiles of the unlabelled scores. The first keeps enough of the unlabelled
    parts for a test with a few errors, and the first that fails is the last. One pass over the
    documents tests the thresholds of all rates.
    """
    n, n_documents = int((~np.isnan(labelled.score)).sum()), labelled.n_documents
    lacking = _lacks_unlabelled(unlabelled)
    tests = [
        ErrorRateTest(
            rate, rate, (), n, reason=too_few(n_documents, "documents", rate, level) or lacking
        )
        for rate in error_rates
    ]
    rates = [test.error_rate for test in tests if test.reason is None]
    if not rates:
        return tests
    sequences = _sequences(unlabelled, n_documents, rates, level, most_parts)
    lengths = [len(sequence) for sequence in sequences]
    tested_rates, thresholds = np.repeat(rates, lengths), np.concatenate(sequences)
    excess = labelled.is_kept(thresholds) * (wrong[:, None] - tested_rates)
    passed = betting_test(labelled.totals(excess, most_parts), tested_rates, level)
    outcomes = zip(sequences, np.split(passed, np.cumsum(lengths)[:-1]), strict=True)
    return [
        test if test.reason else _with_passed(test, labelled, wrong, *next(outcomes))
        for test in tests
    ]


def _with_passed(
    test: ErrorRateTest,
    labelled: PartScores,
    wrong: np.ndarray,
    sequence: np.ndarray,
    passed: np.ndarray,
) -> ErrorRateTest:
    """Add to a test the thresholds of its sequence that passed before the first that failed."""
    n_passed = int(np.cumprod(passed).sum())
    is_kept = labelled.is_kept(sequence[[max(n_passed - 1, 0)]])[:, 0]
    test = replace(test, kept=int(is_kept.sum()), wrong=int((is_kept & wrong).sum()))
    if n_passed:
        return replace(test, guaranteed=tuple(sequence[:n_passed].tolist()))
    return without_threshold(test)


def _lacks_unlabelled(unlabelled: PartScores) -> str | None:
    n = int((~np.isnan(unlabelled.score)).sum())
    if n >= MIN_QUANTILES:
        return None
    return (
        f"{PARTS_NEED} {MIN_QUANTILES} unlabelled ones, which choose the thresholds to test; "
        f"there are {n}"
    )


def _quantiles(score: np.ndarray) -> np.ndarray:
    """The distinct thresholds that keep a share STEP, 2 STEP, … of the scores, in falling order."""
    ranked = -np.sort(-score[~np.isnan(score)])
    shares = np.arange(1, round(1 / STEP) + 1) * STEP
    return np.unique(ranked[np.ceil(shares * len(ranked) - 1e-9).astype(int) - 1])[::-1]


def _sequences(
    unlabelled: PartScores,
    n_documents: int,
    error_rates: Sequence[float],
    level: float,
    most_parts: int,
) -> list[np.ndarray]:
    """By rate, the thresholds to test on `n_documents` documents, in falling order."""
    thresholds = _quantiles(unlabelled.score)
    weight = unlabelled.totals(unlabelled.is_kept(thresholds), most_parts).mean(axis=0)
    needed = [START * free_of_errors(rate, level) for rate in error_rates]
    starts = np.searchsorted(n_documents * weight, needed).clip(max=len(thresholds) - 1)
    return [thresholds[start:] for start in starts]


def betting_test(excess: np.ndarray, error_rate: float | np.ndarray, level: float) -> np.ndarray:
    """Test whether the mean excess of each column is at most 0, by bets that it is above 0: [t].

    Wealth starts at `level`, and the test passes when it reaches 1. Each bet aims at 1 in the last
    group: with m groups to go, of variance v, a Gaussian walk from wealth Φ(d) to 1 is bet at
    φ(d) / (Φ(d) sqrt(m v)), which nearly attains the power of the test that knows the walk. v is
    the mean square of the excesses so far and of one group that is all wrong.

    Parameters
    ----------
    excess : array [groups, t]
        Errors less the target, in each tested group, in order; at most 1 - `error_rate`.
    error_rate : float or array [t]
        Target error rate.
    level : float
        Significance level.
    """
    n_groups = len(excess)
    wealth = np.full(excess.shape[1], level)
    one_wrong = np.full(excess.shape[1], (1 - error_rate) ** 2)
    squares = np.cumsum(np.vstack([one_wrong, excess[:-1] ** 2]), axis=0)
    number = np.arange(n_groups)[:, None]
    spread = np.sqrt((n_groups - number) * squares / (1 + number))
    largest_bet = 1 / (1 - error_rate)
    for group_excess, spread_to_go in zip(excess, spread, strict=True):
        inside = np.minimum(np.maximum(wealth, 1e-12), 1 - 1e-12)
        density = np.exp(-(scipy.special.ndtri(inside) ** 2) / 2) / math.sqrt(2 * math.pi)
        bet = np.minimum(density / (inside * spread_to_go), largest_bet)
        new_wealth = wealth * np.maximum(1 - bet * group_excess, 0)
        wealth = np.where(wealth < 1 - 1e-12, new_wealth, wealth)
    return wealth >= 1 - 1e-12
