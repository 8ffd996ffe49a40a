"""Ridges: logistic regressions that hold with few labels.

The penalty is ten times scikit-learn's, and no confidence lowers the probability. `fit_ridge` pulls
the weights to 0, `fit_prior_ridge` those of confidences to a small value above it.
"""

from collections.abc import Sequence

import numpy as np

from tracecal.calibration.fits import Fit, fit_all
from tracecal.features.features import FEATURES

# Features that may raise or lower the probability; all others are confidences.
EITHER_SIGN = frozenset({"log_length", "entropy_slope"})
# Penalties on squared weights: of a trace's features, which are correlated, and of a user's own
# column, for which it is scikit-learn's default.
RIDGE, OWN_COLUMN = 10.0, 1.0
# The prior ridge pulls the weights of confidences to values with this sum, and its intercept, whose
# prior is normal with this standard deviation, to 0.
PRIOR_SUM, INTERCEPT_DEVIATION = 0.8, 1.8


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
