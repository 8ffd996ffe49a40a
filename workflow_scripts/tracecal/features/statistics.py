"""Statistics of the entropies of an answer: the moments and quantiles of Entropy Sentinel."""

import math

import numpy as np

PERCENT = (10, 25, 50, 75, 90)
TINY = 1e-8  # keeps a moment finite where all values are equal; the authors' value
# The nine of its eleven statistics that TRACE's features lack.
STATISTICS = (
    "entropy_sum",
    "entropy_deviation",
    *(f"entropy_q{percent}" for percent in PERCENT),
    "entropy_skewness",
    "entropy_kurtosis",
)


def statistics(values: np.ndarray) -> np.ndarray:
    """The STATISTICS of the tokens of answers [m, T], [m, 9]."""
    length = values.shape[1]
    centred = values - values.mean(1, keepdims=True)
    squares = centred**2
    deviation = np.sqrt(squares.sum(1) / max(length - 1, 1))
    ordered = np.sort(values, axis=1)

    def quantile(share: float) -> np.ndarray:
        """The `share` quantile over the tokens, linearly interpolated."""
        position = share * (length - 1)
        below, above = ordered[:, math.floor(position)], ordered[:, math.ceil(position)]
        return below + (position % 1) * (above - below)

    return np.column_stack(
        [
            values.sum(1),
            deviation,
            *(quantile(percent / 100) for percent in PERCENT),
            np.vecdot(squares, centred) / length / (deviation**3 + TINY),
            np.vecdot(squares, squares) / length / (deviation**4 + TINY),
        ]
    )
