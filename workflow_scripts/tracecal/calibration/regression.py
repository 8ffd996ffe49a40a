"""Penalised logistic regressions, many at once, by Newton's method with bounds on the weights."""

import numpy as np

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


def sigmoid(margin: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-margin)), element by element; small values keep their digits."""
    small = np.exp(-np.abs(margin))
    return np.where(margin < 0, small, 1.0) / (1 + small)


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
