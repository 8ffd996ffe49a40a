"""The length of blocks whose means are nearly independent."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

MAX_LAG = 256
SEGMENT = 2048  # values whose common level is removed


def block_length(values: np.ndarray) -> int | None:
    """Return the length of blocks of `values` [n], in their order, that makes means independent.

    The length is four times the lag up to which values are alike: their normal scores are
    correlated, on average over lags from a power of two to the next, by more than three standard
    errors, which grow with the correlations of smaller lags (Bartlett). The mean of each segment is
    removed, so that a single change of level counts little. None where values are alike over
    MAX_LAG values or more, as in a slow drift or a daily cycle.
    """
    scores = ndtri((rankdata(values) - 0.5) / len(values))
    segments = np.array_split(scores, -(-len(scores) // SEGMENT))
    segments = [segment - segment.mean() for segment in segments]
    power = sum(float(segment @ segment) for segment in segments) or 1.0
    lag, alike, sum_of_squares, sum_of_correlations = 1, 1, 1.0, 1.0
    while lag < min(MAX_LAG, len(scores) // 4):
        correlations = [
            sum(segment[shift:] @ segment[:-shift] for segment in segments) / power
            for shift in range(lag, 2 * lag)
        ]
        variance = min(sum_of_squares, sum_of_correlations**2 / lag) / len(scores)
        if np.mean(correlations) > 3 * np.sqrt(variance):
            alike = 2 * lag
            sum_of_squares += 2 * float(np.square(correlations).sum())
            sum_of_correlations += 2 * float(np.sum(correlations))
        lag *= 2
    return None if alike >= MAX_LAG else 4 * max(alike, 2)
