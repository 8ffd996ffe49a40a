"""Penalised logistic regressions, many at once."""

import numpy as np

# Numbers in one block of regressions, so that its arrays stay in the processor's cache.
BLOCK = 2**17
MAX_STEPS = 100
MAX_HALVINGS = 40
# Convergence: a full Newton step this small relative to 1 + the largest coefficient is the last;
# the remaining error is of the order of its square.
TOLERANCE = 1e-9
# A weight this near to its bound, and pushed towards it, leaves Newton's step for one of its own.
NEAR = 1e-6
# Share of the decrease predicted by a linear model that a step must achieve (Armijo 1966).
SUFFICIENT = 1e-4


def sigmoid(margin: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-margin)), element by element; small values keep their digits."""
    small = np.exp(-np.abs(margin))
    return np.where(margin < 0, small, 1.0) / (1 + small)


def fit_logistic_regressions(
    z: np.ndarray, correct: np.ndarray, penalty: np.ndarray, least: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [B, d] and intercepts [B] of B independent regressions.

    `z` [B, n, d] are features of about unit size, `correct` [B, n] bool with both classes in each
    row, `penalty` [B, d] the λ, `least` [d] the weights' lower bounds, at most 0 (default: none).
    Raises `ArithmeticError` where one does not converge.
    """
    least = np.full(z.shape[2] + 1, -np.inf) if least is None else np.append(-np.inf, least)
    size = max(1, BLOCK // z[0].size)
    blocks = [slice(first, first + size) for first in range(0, len(z), size)]
    coefficients = np.concatenate(
        [_newton(z[block], correct[block], penalty[block], least) for block in blocks]
    )
    return coefficients[:, 1:], coefficients[:, 0]


def _newton(
    z: np.ndarray, correct: np.ndarray, penalty: np.ndarray, least: np.ndarray
) -> np.ndarray:
    """Intercept and weights [B, 1 + d] of a block; `least` [1 + d] are their lower bounds."""
    count, n, d = z.shape
    # Rows of features, the intercept's first, each answer's with the sign of its label.
    signed = np.empty((count, d + 1, n))
    signed[:, 0] = np.where(correct, 1.0, -1.0)
    signed[:, 1:] = z.transpose(0, 2, 1) * signed[:, :1]
    penalty = np.concatenate([np.zeros((count, 1)), penalty], axis=1)
    positives = correct.sum(axis=1)
    solution = np.zeros((count, d + 1))
    solution[:, 0] = np.log(positives / (n - positives))  # the optimum of all weights 0
    running = np.arange(count)
    theta = solution.copy()
    error, loss = _evaluate(signed, penalty, theta)
    for _ in range(MAX_STEPS):
        gradient = penalty * theta - (signed @ error[:, :, None])[:, :, 0]
        bound = (theta <= least + NEAR) & (gradient > 0)
        step = -_solve(signed, error, penalty, gradient, bound)
        before, slope = theta, (gradient * step * ~bound).sum(axis=1)
        theta, error, loss, length = _search(signed, penalty, theta, loss, slope, step, least)
        solution[running] = theta
        # Negated, so that NaN never counts as converged.
        unfinished = ~(
            (np.abs(theta - before).max(axis=1) <= TOLERANCE * (1 + np.abs(theta).max(axis=1)))
            & (length == 1)
        )
        if not unfinished.any():
            return solution
        if not unfinished.all():
            running, signed, penalty = running[unfinished], signed[unfinished], penalty[unfinished]
            theta, error, loss = theta[unfinished], error[unfinished], loss[unfinished]
    raise ArithmeticError(
        f"logistic calibration did not converge: {len(running)} of {count} fits on {n} answers "
        f"still move after {MAX_STEPS} Newton steps"
    )


def _evaluate(
    signed: np.ndarray, penalty: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The probability of the wrong label [B, n] and the objective [B]."""
    margin = (theta[:, None, :] @ signed)[:, 0]
    small = np.exp(-np.abs(margin))
    # ln(1 + exp(-m)), without overflow.
    loss = np.log(1 + small) - np.minimum(margin, 0)
    wrong = np.where(margin < 0, 1.0, small) / (1 + small)
    return wrong, loss.sum(axis=1) + (penalty * theta**2).sum(axis=1) / 2


def _solve(
    signed: np.ndarray,
    error: np.ndarray,
    penalty: np.ndarray,
    gradient: np.ndarray,
    bound: np.ndarray,
) -> np.ndarray:
    """The inverse Hessian times the gradient [B, 1 + d].

    Of coefficients at a `bound` [B, 1 + d] only the Hessian's diagonal counts.
    """
    hessian = (signed * (error * (1 - error))[:, None, :]) @ signed.transpose(0, 2, 1)
    diagonal = np.arange(hessian.shape[1])
    hessian[:, diagonal, diagonal] += penalty
    alone = (bound[:, None, :] | bound[:, :, None]) & (diagonal != diagonal[:, None])
    hessian[alone] = 0
    try:
        return np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError as error:
        raise ArithmeticError("logistic calibration met a singular Hessian") from error


def _search(
    signed: np.ndarray,
    penalty: np.ndarray,
    theta: np.ndarray,
    loss: np.ndarray,
    slope: np.ndarray,
    step: np.ndarray,
    least: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Line search: each step is halved until it decreases the objective sufficiently.

    `slope` [B] is the objective's along the step, `least` [1 + d] the coefficients' lower bounds.
    Returns the new coefficients, `_evaluate` of them, and the shares [B] of the steps taken.
    """
    sufficient = SUFFICIENT * slope
    rounding = 1e-12 * (1 + loss)
    share, new_theta = np.ones(len(theta)), np.maximum(theta + step, least)
    error, new_loss = _evaluate(signed, penalty, new_theta)
    for _ in range(MAX_HALVINGS):
        again = ~(new_loss <= loss + share * sufficient + rounding)
        if not again.any():
            return new_theta, error, new_loss, share
        share[again] /= 2
        new_theta[again] = np.maximum(theta[again] + share[again, None] * step[again], least)
        error[again], new_loss[again] = _evaluate(signed[again], penalty[again], new_theta[again])
    raise ArithmeticError(
        f"logistic calibration did not converge: {again.sum()} of {len(theta)} fits find no step "
        "that lowers their objective"
    )
