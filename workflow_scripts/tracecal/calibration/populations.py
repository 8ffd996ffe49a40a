"""Populations of questions that a forecast draws labelled answers from.

`LabelledPopulation` imitates labelled answers at hand; `BinormalPopulation` follows from guesses of
accuracy and AUROC.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtri

from tracecal.errors import InputError

# Precisions of the normal priors of a curve's intercept and slope, which keep both finite where all
# answers are right. A slope of 2.5 is steep (Gelman et al. 2008).
PRECISION = np.array([0.01, 2.5**-2])
MAX_CORRELATION = 0.9


@dataclass(frozen=True)
class LabelledAnswers:
    """Labelled answers with probabilities, in groups.

    Attributes
    ----------
    group : array [answers]
        The group of each answer; groups are tested in the order of their numbers.
    probability : array [answers]
        The calibrated probability of each answer.
    correct : array [answers]
        Whether each answer is correct.
    """

    group: np.ndarray
    probability: np.ndarray
    correct: np.ndarray


class Population(Protocol):
    """A source of labelled questions."""

    @property
    def advice(self) -> str:
        """The forecast's advice if no number of questions suffices."""
        ...

    @property
    def of_parts(self) -> bool:
        """Whether its groups are parts of answers."""
        ...

    def draw(self, rng: np.random.Generator, n_groups: int) -> LabelledAnswers:
        """Draw new groups, numbered from 0 in random order."""
        ...


def normal_scores(probability: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Return the normal quantiles of probabilities' ranks within their folds, [answers].

    The fits of folds differ in level, so that their probabilities cannot be ranked together.
    """
    score = np.empty(len(probability))
    for number in np.unique(fold):
        in_fold = fold == number
        rank = pl.Series(probability[in_fold]).rank().to_numpy()
        score[in_fold] = ndtri((rank - 0.5) / in_fold.sum())
    return score


@dataclass(frozen=True)
class LabelledPopulation:
    """Answers, or groups of parts, that imitate labelled ones.

    Attributes
    ----------
    group, score : array [answers]
        Group and score of the labelled answers.
    coefficients, covariance : array
        Mean and covariance of (a, b): an answer is right with probability expit(a + b score).
    correlation : float
        The probability that chance decides on a group as a whole.
    of_parts : bool
        Whether groups are parts of answers.
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

    @classmethod
    def from_labels(
        cls,
        group: np.ndarray,
        score: np.ndarray,
        correct: np.ndarray,
        of_parts: bool = False,
    ) -> "LabelledPopulation":
        """Fit the curve to labelled answers with `normal_scores` of held-out probabilities."""
        coefficients, covariance = _fit_curve(score, correct)
        right = expit(coefficients[0] + coefficients[1] * score)
        residual = (correct - right) / np.sqrt(right * (1 - right))
        correlation = _group_correlation(group, residual)
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
        order, starts, sizes = self._by_group
        # Resample questions, so that sampling error counts.
        resampled = rng.integers(len(sizes), size=len(sizes))
        chosen = rng.choice(resampled, n_groups)
        size = sizes[chosen]
        group = np.repeat(np.arange(n_groups), size)
        member = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
        indices = order[np.repeat(starts[chosen], size) + member]
        a, b = rng.multivariate_normal(self.coefficients, self.covariance, check_valid="ignore")
        as_a_whole = rng.random(n_groups) < self.correlation
        chance = np.where(as_a_whole[group], rng.random(n_groups)[group], rng.random(len(group)))
        score = self.score[indices]
        return LabelledAnswers(group, score, chance < expit(a + b * score))


def _fit_curve(score: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (a, b) by Laplace's approximation."""
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

    optimum = minimize(loss, np.zeros(2), jac=gradient, hess=hessian, method="trust-exact").x
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
    accuracy: float
    auroc: float

    def __post_init__(self) -> None:
        for name, value, lowest in (("accuracy", self.accuracy, 0), ("AUROC", self.auroc, 0.5)):
            if not lowest < value < 1:
                raise InputError(f"an {name} of {value:g} is not between {lowest:g} and 1.")

    def draw(self, rng: np.random.Generator, n_groups: int) -> LabelledAnswers:
        """Draw new answers, numbered from 0."""
        distance = math.sqrt(2) * ndtri(self.auroc)
        correct = rng.random(n_groups) < self.accuracy
        score = rng.normal(size=n_groups) + distance * correct
        probability = expit(logit(self.accuracy) + distance * (score - distance / 2))
        return LabelledAnswers(np.arange(n_groups), probability, correct)
