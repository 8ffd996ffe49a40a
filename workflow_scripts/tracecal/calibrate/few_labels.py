"""Fits that hold with 20 to 100 labels: weights of a known sign, and a mixture of such fits.

A signed fit is the protocol's logistic fit with the weights of confidences at or above 0, so that a
few labels cannot turn a confidence upside down. A mixture averages several fits, Σ_k v_k p_k, in
which v_k says how well the k-th predicts labels that it was not fitted on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracecal.calibrate.protocol import Calibrator, Mixture, fit_all
from tracecal.registry.estimators import SEQUENCE_LIKELIHOODS, TRACE_PLUS_FEATURES

# Features that may raise or lower the probability; all others are confidences.
EITHER_SIGN = frozenset({"log_length", "entropy_slope"})
FOLDS = 5
# The weight of the prior, which spreads this many answers evenly over a mixture's fits.
PSEUDO_ANSWERS = 5
# The least probability that a fit is taken to give to a label.
LEAST = 1e-4
# Expectation maximisation ends at a step in which no weight moves by more.
TOLERANCE = 1e-8
MAX_STEPS = 100_000


@dataclass(frozen=True)
class Member:
    """One fit of a mixture: the names of its features, and whether it is a signed fit."""

    features: tuple[str, ...]
    signed: bool = True


# The stack of seven.
MEMBERS = (
    Member(TRACE_PLUS_FEATURES),
    Member((*TRACE_PLUS_FEATURES, *SEQUENCE_LIKELIHOODS)),
    Member(("seq_logp", "len_norm_logp", "trace", "log_length")),
    Member(("seq_logp",), signed=False),
    Member(("len_norm_logp",), signed=False),
    Member(("windowed_entropy",), signed=False),
    Member(("mean_token_entropy",), signed=False),
)


def fit_signed(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], features: Sequence[str]
) -> list[Calibrator]:
    """As `fit_all` with 'platt', with weights of at least 0 save those of `EITHER_SIGN`."""
    least = np.array([-np.inf if name in EITHER_SIGN else 0.0 for name in features])
    return fit_all(parts, "platt", least=least)


def fit_mixtures(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    features: Sequence[str],
    members: Sequence[Member] = MEMBERS,
) -> list[Calibrator]:
    """The mixture of `members` for each part: features [n, d], labels (bool) and groups, both [n].

    A group's answers are in one fold; the groups are dealt to the folds in the order of their
    numbers, which should be random. Raises `ArithmeticError` where a fit does not converge.
    """
    folds = [np.unique(group, return_inverse=True)[1] % FOLDS for _, _, group in parts]
    # Each part as a whole, then without each of its folds.
    rows = [
        [np.ones(len(fold), dtype=bool), *(fold != held for held in np.unique(fold))]
        for fold in folds
    ]
    jobs = [
        (x[used], correct[used])
        for (x, correct, _), chosen in zip(parts, rows, strict=True)
        for used in chosen
    ]
    columns = [[features.index(name) for name in member.features] for member in members]
    fits = [
        iter(_fit_member(member, [(x[:, own], correct) for x, correct in jobs]))
        for member, own in zip(members, columns, strict=True)
    ]
    mixtures = []
    for (x, correct, _), fold in zip(parts, folds, strict=True):
        whole = [next(of_member) for of_member in fits]
        likelihood = np.empty((len(x), len(members)))
        for held in np.unique(fold):
            out = fold == held
            for k, of_member in enumerate(fits):
                probability = next(of_member).predict(x[out][:, columns[k]])
                likelihood[out, k] = np.where(correct[out], probability, 1 - probability)
        mixtures.append(Mixture(mixture_weights(likelihood).tolist(), columns, whole))
    return mixtures


def _fit_member(member: Member, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Calibrator]:
    return fit_signed(parts, member.features) if member.signed else fit_all(parts, "platt")


def mixture_weights(likelihood: np.ndarray) -> np.ndarray:
    """The weights [k] of fits that gave the labels of n answers the probabilities [n, k].

    By expectation maximisation, with a prior of `PSEUDO_ANSWERS`. Raises `ArithmeticError` where
    it does not converge.
    """
    n, k = likelihood.shape
    likelihood = likelihood.clip(min=LEAST)
    weights = np.full(k, 1 / k)
    for _ in range(MAX_STEPS):
        shares = likelihood * weights
        shares /= shares.sum(axis=1, keepdims=True)
        updated = (shares.sum(axis=0) + PSEUDO_ANSWERS / k) / (n + PSEUDO_ANSWERS)
        if np.abs(updated - weights).max() <= TOLERANCE:
            return updated
        weights = updated
    raise ArithmeticError(f"the weights of a mixture still move after {MAX_STEPS} steps of EM")
