"""Fitting probabilities to labels by regression, many parts of the data at once.

1. `fit` fits labelled answers by a method of the protocol; `fit_all` fits many parts at once.
2. Ridges hold with few labels: their penalty is ten times scikit-learn's, and no confidence lowers
   the probability. `fit_ridge` pulls the weights to 0, `fit_prior_ridge` those of confidences to a
   small value above it.
3. `fit_mixtures` weights several regressions by how well each predicts held-out folds.
4. `fit_logistic_regressions` fits penalised logistic regressions by Newton's method, with bounds on
   the weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracecal.estimators.feature_sets import TRACE_PLUS_FEATURES, TRACE_PLUS_ON_LOGARITHMS
from tracecal.estimators.features import FEATURES
from tracecal.fits.fits import Constant, Fit, Identity, Isotonic, Logistic, Mixture

Method = Literal["platt", "platt_raw", "isotonic", "identity"]
# Features that may raise or lower the probability; all others are confidences.
EITHER_SIGN = frozenset({"log_length", "entropy_slope"})
# Penalties on squared weights: of a trace's features, which are correlated, and of a user's own
# column, for which it is scikit-learn's default.
RIDGE, OWN_COLUMN = 10.0, 1.0
# The prior ridge pulls the weights of confidences to values with this sum, and its intercept, whose
# prior is normal with this standard deviation, to 0.
PRIOR_SUM, INTERCEPT_DEVIATION = 0.8, 1.8
FOLDS = 5  # on which a mixture's fits predict held-out answers
# The prior of a mixture's weights counts as this many answers, spread evenly over the fits.
PSEUDO_ANSWERS = 5
# Smallest probability of a label under a fit of a mixture.
MIN_LIKELIHOOD = 1e-4
# Newton's method for these weights ends with a step that moves none by more, relative to it.
WEIGHT_TOLERANCE = 1e-6
# Numbers in a block of regressions, so that its arrays stay in the processor's cache.
BLOCK = 2**17
MAX_STEPS = 100
MAX_HALVINGS = 40
# A full Newton step this small relative to 1 + the largest coefficient is the last; the remaining
# error is of the order of its square.
TOLERANCE = 1e-9
# A weight this near to its bound that is pushed towards it takes a step by itself.
BOUND_TOLERANCE = 1e-6
# A step must achieve this share of the decrease that a linear model predicts (Armijo 1966).
SUFFICIENT_DECREASE = 1e-4


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


def fit(x: np.ndarray, correct: np.ndarray, method: Method) -> Fit:
    """Fit features [n, d] (finite) to labels [n] (bool), as `fit_all` does.

    >>> x = np.arange(40.0)[:, None]
    >>> fit(x, x[:, 0] > 19, "platt").predict(np.array([[10.0], [30.0]])).round(2).tolist()
    [0.11, 0.91]
    """
    return fit_all([(x, correct)], method)[0]


def fit_all(
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    method: Method,
    penalty: float | np.ndarray = 1.0,
    lower: np.ndarray | None = None,
    centre: np.ndarray | None = None,
    intercept_penalty: float = 0.0,
) -> list[Fit]:
    """Fit each part by itself.

    Parameters
    ----------
    parts : sequence of pairs
        Features [n, d] (finite) and labels [n] (bool) of each part.
    method : {"platt", "platt_raw", "isotonic", "identity"}
        platt: standardise (ddof 0, zero variance -> 1), then logistic regression with
        scikit-learn's default penalty. platt_raw: the same without standardising. isotonic: for one
        feature; several fall back on platt. identity: nothing is fitted.
    penalty : float or array [d]
        Factor of half the squared distances of the weights from `centre`: 1 / C in scikit-learn.
    lower, centre : array [d], optional
        Lower bounds, 0 or -inf, and centre of a logistic fit's weights; by default none and 0.
    intercept_penalty : float
        Factor of half the squared intercept.

    Raises
    ------
    ArithmeticError
        Where a fit does not converge.
    """
    is_raw = method == "platt_raw"
    fits = [_without_regression(*part, method) for part in parts]
    for numbers, x, correct in stack_unfitted(parts, fits):
        batch = _logistic(x, correct, is_raw, penalty, lower, centre, intercept_penalty)
        for number, batch_fit in zip(numbers, batch, strict=True):
            fits[number] = batch_fit
    return fits


def stack_unfitted(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], fits: Sequence[Fit | None]
) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Stack the parts without a fit, by their shape, so that those of one are fitted at once.

    Yields the numbers [B] of the parts, their inputs [B, n, d] and labels [B, n].
    """
    shapes: dict[tuple[int, ...], list[int]] = {}
    for number, (x, _) in enumerate(parts):
        if fits[number] is None:
            shapes.setdefault(x.shape, []).append(number)
    for numbers in shapes.values():
        x = np.stack([parts[number][0] for number in numbers])
        yield numbers, x, np.stack([parts[number][1] for number in numbers])


def _without_regression(x: np.ndarray, correct: np.ndarray, method: Method) -> Fit | None:
    """The fit of a part that needs no logistic regression, else None."""
    if method == "identity":
        return Identity()
    if constant := constant_fit(correct):
        return constant
    if method == "isotonic" and x.shape[1] == 1:
        # A score such as a slope may rank the wrong way round: its direction is fitted, too.
        return isotonic_fit(x[:, 0], correct, "auto")
    return None


def constant_fit(correct: np.ndarray) -> Constant | None:
    """The fit of labels [n] of one class; None for two classes."""
    if correct.all() or not correct.any():
        return Constant((int(correct.sum()) + 1) / (len(correct) + 2))
    return None


def _logistic(
    x: np.ndarray,
    correct: np.ndarray,
    raw: bool,
    penalty: float | np.ndarray,
    lower: np.ndarray | None,
    centre: np.ndarray | None,
    intercept_penalty: float,
) -> Iterator[Logistic]:
    """Fit features [B, n, d] to labels [B, n]."""
    means, scales = x.mean(axis=1), feature_scales(x)
    # Standardised in any case, for numerical stability: a weight w of a raw feature is w * scale of
    # the standardised one, and the penalty falls on w.
    penalties = penalty * (scales**-2 if raw else np.ones_like(scales))
    standard = (x - means[:, None]) / scales[:, None]
    weights, intercepts = fit_logistic_regressions(
        standard, correct, penalties, lower, centre, intercept_penalty
    )
    if raw:
        weights = weights / scales
        intercepts = intercepts - (weights * means).sum(axis=1)
        means, scales = np.zeros_like(means), np.ones_like(scales)
    for mean, scale, weight, intercept in zip(means, scales, weights, intercepts, strict=True):
        yield Logistic(mean.tolist(), scale.tolist(), weight.tolist(), float(intercept))


def feature_scales(x: np.ndarray) -> np.ndarray:
    """Standard deviations (ddof 0) [B, d]; 1 where a feature is constant up to rounding errors."""
    spread = x.std(axis=1)
    rounding = 10 * np.finfo(float).eps * np.abs(x).max(axis=1)
    return np.where(spread > rounding, spread, 1.0)


def isotonic_fit(
    score: np.ndarray, correct: np.ndarray, rising: bool | Literal["auto"]
) -> Isotonic:
    """Fit the isotonic regression of labels [n] of both classes on scores [n].

    It equals scikit-learn's, which takes a second to load: equal scores count as their mean, and a
    flat stretch is stored by its ends. 'auto' takes the sign of Spearman's correlation.
    """
    from scipy.optimize import isotonic_regression  # slow to load, and not needed to predict

    x, index, counts = np.unique(score, return_inverse=True, return_counts=True)
    if rising == "auto":
        from scipy.stats import spearmanr  # slow to load, and seldom needed

        rising = len(x) > 1 and bool(spearmanr(score, correct).statistic >= 0)
    means = np.bincount(index, weights=correct) / counts
    values = isotonic_regression(means, weights=counts, increasing=rising).x
    flat = values[1:] == values[:-1]
    ends = np.append(True, ~flat) | np.append(~flat, True)
    return Isotonic(x[ends].tolist(), values[ends].tolist())


def fit_ridge(parts: Sequence[tuple[np.ndarray, np.ndarray]], features: Sequence[str]) -> list[Fit]:
    """Fit each part, features [n, d] and labels [n] (bool), by penalised logistic regression.

    Weights are at least 0, except those of `EITHER_SIGN`.
    """
    penalty = np.array([RIDGE if name in FEATURES else OWN_COLUMN for name in features])
    return fit_all(parts, "platt", penalty, lower_bounds(features))


def fit_prior_ridge(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], features: Sequence[str]
) -> list[Fit]:
    """Fit each part, features [n, d] and labels [n] (bool), by a regression with a prior.

    Standardised confidences start from equal weights, those of `EITHER_SIGN` from 0.
    """
    lower = lower_bounds(features)
    bounded = lower == 0
    centre = np.where(bounded, PRIOR_SUM / max(1, bounded.sum()), 0.0)
    return fit_all(parts, "platt", RIDGE, lower, centre, INTERCEPT_DEVIATION**-2)


def lower_bounds(features: Sequence[str]) -> np.ndarray:
    """Lower bounds [d] of the weights: 0, and none for `EITHER_SIGN`."""
    return np.array([-np.inf if name in EITHER_SIGN else 0.0 for name in features])


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
        if np.abs(step).max() <= WEIGHT_TOLERANCE:
            return weights * (1 + step)
        length = min(1.0, 0.99 / -step.min())
        if gradient @ step > prior / 10:  # nearer to the optimum whole steps converge
            while log_posterior(weights * (1 + length * step)) < log_posterior(weights):
                length /= 2
        weights = weights * (1 + length * step)
    raise ArithmeticError(f"the weights of a mixture still move after {MAX_STEPS} Newton steps")


def fit_logistic_regressions(
    z: np.ndarray,
    correct: np.ndarray,
    penalty: np.ndarray,
    lower: np.ndarray | None = None,
    centre: np.ndarray | None = None,
    intercept_penalty: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit B independent regressions: their weights [B, d] and intercepts [B].

    Parameters
    ----------
    z : array [B, n, d]
        Features of about unit size.
    correct : array of bool [B, n]
        Labels, with both classes in each row.
    penalty : array [B, d]
        Factor of half the squared distances of the weights from `centre`.
    lower : array [d], optional
        Lower bounds of the weights, at most 0; by default none.
    centre : array [d], optional
        The weights without a penalty; by default 0.
    intercept_penalty : float
        Factor of half the squared intercept.

    Raises
    ------
    ArithmeticError
        Where a regression does not converge.
    """
    lower = np.full(z.shape[2] + 1, -np.inf) if lower is None else np.append(-np.inf, lower)
    centre = np.zeros(z.shape[2] + 1) if centre is None else np.append(0.0, centre)
    penalty = np.hstack([np.full((len(z), 1), intercept_penalty), penalty])
    size = max(1, BLOCK // z[0].size)
    blocks = [slice(first, first + size) for first in range(0, len(z), size)]
    coefficients = np.concatenate(
        [_newton(z[block], correct[block], penalty[block], lower, centre) for block in blocks]
    )
    return coefficients[:, 1:], coefficients[:, 0]


def _newton(
    z: np.ndarray, correct: np.ndarray, penalty: np.ndarray, lower: np.ndarray, centre: np.ndarray
) -> np.ndarray:
    """Return intercept and weights [B, 1 + d] of a block.

    `penalty` is [B, 1 + d]; lower bounds and centre are [1 + d].
    """
    count, n, d = z.shape
    # The intercept and the features of each answer, with the sign of its label.
    signed = np.empty((count, d + 1, n))
    signed[:, 0] = np.where(correct, 1.0, -1.0)
    signed[:, 1:] = z.transpose(0, 2, 1) * signed[:, :1]
    positives = correct.sum(axis=1)
    solution = np.zeros((count, d + 1))
    solution[:, 0] = np.log(positives / (n - positives))  # the optimum of all weights 0
    active = np.arange(count)
    theta = solution.copy()
    error, loss = _evaluate(signed, penalty, theta, centre)
    for _ in range(MAX_STEPS):
        gradient = penalty * (theta - centre) - (signed @ error[:, :, None])[:, :, 0]
        bound = (theta <= lower + BOUND_TOLERANCE) & (gradient > 0)
        step = -_solve(signed, error, penalty, gradient, bound)
        before, slope = theta, (gradient * step * ~bound).sum(axis=1)
        theta, error, loss, length = _search_line(
            signed, penalty, theta, loss, slope, step, lower, centre
        )
        solution[active] = theta
        # Negated, so that NaN never counts as converged.
        moving = ~(
            (np.abs(theta - before).max(axis=1) <= TOLERANCE * (1 + np.abs(theta).max(axis=1)))
            & (length == 1)
        )
        if not moving.any():
            return solution
        if not moving.all():
            active, signed, penalty = active[moving], signed[moving], penalty[moving]
            theta, error, loss = theta[moving], error[moving], loss[moving]
    raise ArithmeticError(
        f"logistic calibration did not converge: {len(active)} of {count} fits on {n} answers "
        f"still move after {MAX_STEPS} Newton steps"
    )


def _evaluate(
    signed: np.ndarray, penalty: np.ndarray, theta: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of the wrong label [B, n] and the objective [B]."""
    margin = (theta[:, None, :] @ signed)[:, 0]
    small = np.exp(-np.abs(margin))
    # ln(1 + exp(-m)), without overflow.
    loss = np.log(1 + small) - np.minimum(margin, 0)
    wrong = np.where(margin < 0, 1.0, small) / (1 + small)
    return wrong, loss.sum(axis=1) + (penalty * (theta - centre) ** 2).sum(axis=1) / 2


def _solve(
    signed: np.ndarray,
    error: np.ndarray,
    penalty: np.ndarray,
    gradient: np.ndarray,
    bound: np.ndarray,
) -> np.ndarray:
    """Return the inverse Hessian times the gradient, [B, 1 + d].

    Coefficients at a `bound` [B, 1 + d] count by the Hessian's diagonal alone.
    """
    hessian = (signed * (error * (1 - error))[:, None, :]) @ signed.transpose(0, 2, 1)
    diagonal = np.arange(hessian.shape[1])
    hessian[:, diagonal, diagonal] += penalty
    coupled = (bound[:, None, :] | bound[:, :, None]) & (diagonal != diagonal[:, None])
    hessian[coupled] = 0
    try:
        return np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError as error:
        raise ArithmeticError("logistic calibration met a singular Hessian") from error


def _search_line(
    signed: np.ndarray,
    penalty: np.ndarray,
    theta: np.ndarray,
    loss: np.ndarray,
    slope: np.ndarray,
    step: np.ndarray,
    lower: np.ndarray,
    centre: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Halve each step until it decreases the objective sufficiently.

    `slope` [B] is the slope of the objective along the step. Returns the new coefficients, their
    `_evaluate`, and the shares [B] of the steps taken.
    """
    sufficient = SUFFICIENT_DECREASE * slope
    rounding = 1e-12 * (1 + loss)
    share, new_theta = np.ones(len(theta)), np.maximum(theta + step, lower)
    error, new_loss = _evaluate(signed, penalty, new_theta, centre)
    for _ in range(MAX_HALVINGS):
        failed = ~(new_loss <= loss + share * sufficient + rounding)
        if not failed.any():
            return new_theta, error, new_loss, share
        share[failed] /= 2
        new_theta[failed] = np.maximum(theta[failed] + share[failed, None] * step[failed], lower)
        error[failed], new_loss[failed] = _evaluate(
            signed[failed], penalty[failed], new_theta[failed], centre
        )
    raise ArithmeticError(
        f"logistic calibration did not converge: {failed.sum()} of {len(theta)} fits find no step "
        "that lowers their objective"
    )
