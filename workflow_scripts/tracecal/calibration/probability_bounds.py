"""Bounds of a probability whose inputs are known between bounds only."""

import numpy as np

from tracecal.calibration.fits import Fit, Logistic, Mixture, Pooled


def probability_bounds(
    fit: Fit, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest probability [n] of inputs between `low` and `high`, both [n, d].

    Every kind of fit is monotone in each of its inputs, so they lie at ends. A mixture's bounds
    are those of its fits, mixed, and may be wider.
    """
    if isinstance(fit, Mixture):
        ends = [
            probability_bounds(member, low[:, columns], high[:, columns])
            for columns, member in zip(fit.columns, fit.fits, strict=True)
        ]
        least, most = np.tensordot(fit.weights, np.array(ends), axes=1)
        return least, most
    if isinstance(fit, Logistic | Pooled):
        rises = _rises(fit, low)
        low, high = np.where(rises, low, high), np.where(rises, high, low)
    ends = fit.predict(low), fit.predict(high)
    return np.minimum(*ends), np.maximum(*ends)


def _rises(fit: Logistic | Pooled, x: np.ndarray) -> np.ndarray:
    """Whether the probability of inputs x [n, d] rises with each, [n, d]."""
    if isinstance(fit, Logistic):
        return np.broadcast_to(np.array(fit.weights) >= 0, x.shape)
    weights, _ = fit.coefficients(x[:, -1])
    return np.column_stack([weights >= 0, np.ones(len(x), dtype=bool)])  # the last is no score
