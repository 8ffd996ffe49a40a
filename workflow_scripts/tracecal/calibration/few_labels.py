"""Fits that hold with few labels, and one calibrator for all parts of a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from tracecal.calibration.fits import (
    Fit,
    Mixture,
    Pooled,
    constant_fit,
    feature_scales,
    fit_all,
    fit_by_shape,
    isotonic_fit,
)
from tracecal.calibration.regression import fit_logistic_regressions
from tracecal.estimators.feature_sets import TRACE_PLUS_FEATURES, TRACE_PLUS_ON_LOGARITHMS
from tracecal.features.features import FEATURES

# Features that may raise or lower the probability; all others are confidences.
EITHER_SIGN = frozenset({"log_length", "entropy_slope"})
# The factors of the squared weights: of the features of traces, which share what they say, and of a
# user's own column, which stands for itself, scikit-learn's default.
RIDGE, OWN = 10.0, 1.0
FOLDS = 5
# The weight of the prior, which spreads this many answers evenly over a mixture's fits.
PSEUDO_ANSWERS = 5
# The least probability that a fit is taken to give to a label.
LEAST = 1e-4
# Expectation maximisation ends at a step in which no weight moves by more.
TOLERANCE = 3e-6
MAX_STEPS = 100_000


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


def fit_ridge(parts: Sequence[tuple[np.ndarray, np.ndarray]], features: Sequence[str]) -> list[Fit]:
    """As `fit_all` with 'platt', with the penalties RIDGE and OWN and weights >= 0, save those of
    `EITHER_SIGN`.
    """
    penalty = np.array([RIDGE if name in FEATURES else OWN for name in features])
    return fit_all(parts, "platt", penalty, _least(features))


def _least(features: Sequence[str]) -> np.ndarray:
    """The lower bounds [d] of the weights: 0 save those of `EITHER_SIGN`."""
    return np.array([-np.inf if name in EITHER_SIGN else 0.0 for name in features])


def fit_mixtures(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    features: Sequence[str],
    members: Sequence[Member] = MEMBERS,
) -> list[Fit]:
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


def _fit_member(member: Member, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[Fit]:
    if member.fit == "rising":
        return [
            constant_fit(correct) or isotonic_fit(x[:, 0], correct, True) for x, correct in parts
        ]
    least = _least(member.features) if member.fit == "signed" else None
    return fit_all(parts, "platt", lower=least)


def mixture_weights(likelihood: np.ndarray) -> np.ndarray:
    """The weights [k] of fits that gave the labels of n answers the probabilities [n, k].

    By expectation maximisation, with a prior of `PSEUDO_ANSWERS`. Raises `ArithmeticError` where
    it does not converge.
    """
    n, k = likelihood.shape
    likelihood = likelihood.clip(min=LEAST)
    weights = np.full(k, 1 / k)
    for _ in range(MAX_STEPS):
        shares = weights * (likelihood.T @ (1 / (likelihood @ weights)))  # [k], summed over answers
        updated = (shares + PSEUDO_ANSWERS / k) / (n + PSEUDO_ANSWERS)
        if np.abs(updated - weights).max() <= TOLERANCE:
            return updated
        weights = updated
    raise ArithmeticError(f"the weights of a mixture still move after {MAX_STEPS} steps of EM")


# One calibrator for all parts of a task's answers, by partial pooling.


# The factors of the squared weights: the common slopes and the names' intercepts, and how far a
# name's slopes are from the common ones.
COMMON, DEVIATION = 1.0, 10.0
# The input that says which part a row is, by its place among the names; and as a fit names it
PART = "parts.part_of_answer"
PART_FEATURE = PART.split(".")[1]


def part_codes(rows: pl.DataFrame, names: Sequence[str], column: str = PART) -> pl.DataFrame:
    """`example_id` of a task's `rows` and, as `column`, the place of their `part` in `names`."""
    code = pl.col("part").replace_strict(list(names), range(len(names)), return_dtype=pl.Int64)
    return rows.select("example_id", code.alias(column))


def by_part(
    estimators: Mapping[str, Sequence[str]], own_fits: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Estimators' columns and fits where those without a fit of their own are fitted by part.

    >>> estimators = {"trace": ["scores.trace"], "log_ridge": ["features.length"]}
    >>> by_part(estimators, {"log_ridge": "ridge"})[0]
    {'trace': ['scores.trace', 'parts.part_of_answer'], 'log_ridge': ['features.length']}
    """
    columns = {
        name: [*own] if name in own_fits else [*own, PART] for name, own in estimators.items()
    }
    return columns, {**dict.fromkeys(estimators, "pooled"), **own_fits}


def fit_pooled(parts: Sequence[tuple[np.ndarray, np.ndarray]], names: Sequence[str]) -> list[Fit]:
    """Fit each part of the data: inputs x [n, d + 1] (finite) and labels [n] (bool).

    The last column of x is the place of a row's name in `names`. Labels of one class give a
    constant. Raises `ArithmeticError` where a fit does not converge.
    """
    known = [constant_fit(correct) for _, correct in parts]
    return fit_by_shape(parts, known, lambda x, correct: _fit(x, correct, names))


def _fit(x: np.ndarray, correct: np.ndarray, names: Sequence[str]) -> list[Pooled]:
    """The fits of x [B, n, d + 1] and labels [B, n]."""
    features, codes = x[:, :, :-1], x[:, :, -1]
    means, scales = features.mean(axis=1), feature_scales(features)
    z = (features - means[:, None]) / scales[:, None]
    named = (codes[:, :, None] == np.arange(len(names))).astype(float)
    own = (named[:, :, :, None] * z[:, :, None, :]).reshape(*named.shape[:2], -1)
    design = np.concatenate([z, named, own], axis=2)
    d, count = z.shape[2], len(names)
    factors = np.repeat([COMMON, DEVIATION], [d + count, count * d])
    weights, intercepts = fit_logistic_regressions(design, correct, np.tile(factors, (len(x), 1)))
    slopes, shifts, deviations = np.split(weights, [d, d + count], axis=1)
    return [
        Pooled(
            names=list(names),
            means=means[b].tolist(),
            scales=scales[b].tolist(),
            weights=(slopes[b] + deviations[b].reshape(count, d)).tolist(),
            intercepts=(intercepts[b] + shifts[b]).tolist(),
            common_weights=slopes[b].tolist(),
            common_intercept=float(intercepts[b]),
        )
        for b in range(len(x))
    ]
