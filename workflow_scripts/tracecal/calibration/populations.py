"""Populations of labelled questions."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtri

from tracecal.calibration.rated_answers import LabelledAnswers
from tracecal.errors import InputError

# Of the normal priors of a curve's two coefficients, which keep it finite where all are right: a
# slope of 2.5 is steep (Gelman et al. 2008).
PRECISION = np.array([0.01, 2.5**-2])
MOST_ALIKE = 0.9


class Population(Protocol):
    """Where labelled questions come from. `unknown` says why they do not tell how many suffice.

    A question counts with at most `largest` answers; null: as many as the largest that calibrates.
    """

    unknown: str
    largest: int | None

    def draw(self, rng: np.random.Generator, groups: int) -> LabelledAnswers:
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
class LabelledPopulation:
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
    ) -> "LabelledPopulation":
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

    def draw(self, rng: np.random.Generator, groups: int) -> LabelledAnswers:
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
        return LabelledAnswers(new, score, chance < expit(a + b * score))


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
class BinormalPopulation:
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

    def draw(self, rng: np.random.Generator, groups: int) -> LabelledAnswers:
        apart = math.sqrt(2) * ndtri(self.auroc)
        correct = rng.random(groups) < self.accuracy
        score = rng.normal(size=groups) + apart * correct
        probability = expit(logit(self.accuracy) + apart * (score - apart / 2))
        return LabelledAnswers(np.arange(groups), probability, correct)
