"""Mixtures of fits, weighted by how well each fit predicts held-out folds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracecal.calibration.fits import Fit, Mixture
from tracecal.calibration.regression import constant_fit, fit_all, isotonic_fit, lower_bounds
from tracecal.estimators.feature_sets import TRACE_PLUS_FEATURES, TRACE_PLUS_ON_LOGARITHMS

FOLDS = 5
# The prior of the weights counts as this many answers, spread evenly over the fits.
PSEUDO_ANSWERS = 5
# Smallest probability of a label under a fit.
MIN_LIKELIHOOD = 1e-4
# Newton's method ends with a step that moves no weight by more, relative to the weight.
TOLERANCE = 1e-6
MAX_STEPS = 100


@dataclass(frozen=True)
class Member:
    """One fit of a mixture and the names of its features.

    platt: the protocol's; signed: the same with weights of confidences at or above 0; rising:
    isotonic regression on one feature.
    """

    features: tuple[str, ...]
    fit: Literal["platt", "signed", "rising"] = "platt"


# The stack of six.
MEMBERS = (
    Member(TRACE_PLUS_FEATURES),
    Member(TRACE_PLUS_ON_LOGARITHMS, "signed"),
    Member(("mean_entropy_log_conf",)),
    Member(("total_surprisal_log_conf",)),
    Member(("mean_token_entropy",), "rising"),
    Member(("log_likelihood",), "rising"),
)


def fit_mixtures(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    features: Sequence[str],
    members: Sequence[Member] = MEMBERS,
) -> list[Fit]:
    """Fit the mixture of `members` to each part: features [n, d], labels (bool) and groups, [n].

    A group's answers share a fold. Groups are dealt to the folds in the order of their numbers,
    which should be random. Raises `ArithmeticError` where a fit does not converge.
    """
    folds = [np.unique(group, return_inverse=True)[1] % FOLDS for _, _, group in parts]
    # Masks of the fitted answers: all of a part, then all but one fold.
    masks = [
        [np.ones(len(fold), dtype=bool), *(fold != number for number in np.unique(fold))]
        for fold in folds
    ]
    subsets = [
        (x[mask], correct[mask])
        for (x, correct, _), part_masks in zip(parts, masks, strict=True)
        for mask in part_masks
    ]
    columns = [[features.index(name) for name in member.features] for member in members]
    fits = [
        iter(_fit_member(member, [(x[:, places], correct) for x, correct in subsets]))
        for member, places in zip(members, columns, strict=True)
    ]
    mixtures = []
    for (x, correct, _), fold in zip(parts, folds, strict=True):
        final = [next(member_fits) for member_fits in fits]
        likelihood = np.empty((len(x), len(members)))
        for number in np.unique(fold):
            held_out = fold == number
            for k, member_fits in enumerate(fits):
                probability = next(member_fits).predict(x[held_out][:, columns[k]])
                right = correct[held_out]
                likelihood[held_out, k] = np.where(right, probability, 1 - probability)
        mixtures.append(Mixture(mixture_weights(likelihood).tolist(), columns, final))
    return mixtures


def _fit_member(member: Member, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Fit]:
    if member.fit == "rising":
        return [
            constant_fit(correct) or isotonic_fit(x[:, 0], correct, True) for x, correct in parts
        ]
    bounds = lower_bounds(member.features) if member.fit == "signed" else None
    return fit_all(parts, "platt", lower=bounds)


def mixture_weights(likelihood: np.ndarray) -> np.ndarray:
    """The weights [k] of fits that gave the labels of n answers the probabilities [n, k].

    They maximise the labels' posterior under a prior of `PSEUDO_ANSWERS`, which is concave, by
    Newton's method. Raises `ArithmeticError` where it does not converge.
    """
    k = likelihood.shape[1]
    likelihood = likelihood.clip(min=MIN_LIKELIHOOD)
    prior = PSEUDO_ANSWERS / k
    weights = np.full(k, 1 / k)

    def log_posterior(weights: np.ndarray) -> float:
        return np.log(likelihood @ weights).sum() + prior * np.log(weights).sum()

    for _ in range(MAX_STEPS):
        # Derivatives by relative changes of the weights, whose sum stays 1.
        shares = likelihood * weights / (likelihood @ weights)[:, None]
        gradient = shares.sum(axis=0) + prior
        curvature = shares.T @ shares + prior * np.eye(k)
        system = np.block([[curvature, weights[:, None]], [weights, np.zeros(1)]])
        step = np.linalg.solve(system, [*gradient, 0.0])[:k]
        if np.abs(step).max() <= TOLERANCE:
            return weights * (1 + step)
        length = min(1.0, 0.99 / -step.min())
        if gradient @ step > prior / 10:  # nearer to the optimum whole steps converge
            while log_posterior(weights * (1 + length * step)) < log_posterior(weights):
                length /= 2
        weights = weights * (1 + length * step)
    raise ArithmeticError(f"the weights of a mixture still move after {MAX_STEPS} Newton steps")
