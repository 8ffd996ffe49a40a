"""A batch of answers as the monitors see it: probability, length and whether each is kept.

Where neighbours are alike the monitors watch blocks of answers, whose length `block_length` says.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from tracecal.serving.monitoring.ranks import MAX_LOGIT, bins_of

MONITORS = tuple(bins_of())  # the signals, with one monitor each
MAX_LAG = 256  # up to which neighbours are compared
SEGMENT = 2048  # values whose common level is removed


@dataclass(frozen=True)
class Batch:
    """Answers in their order, as arrays [n]: NaN where unknown or, in `keep`, not decided."""

    probability: np.ndarray
    length: np.ndarray
    keep: np.ndarray

    def __len__(self) -> int:
        return len(self.probability)

    def __getitem__(self, part: slice | np.ndarray) -> "Batch":
        return Batch(*(values[part] for values in self.columns))

    def __add__(self, more: "Batch") -> "Batch":
        return Batch(*map(np.concatenate, zip(self.columns, more.columns, strict=True)))

    @classmethod
    def empty(cls) -> "Batch":
        """Return a batch without answers."""
        return cls(*np.empty((3, 0)))

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probability, length and keep."""
        return self.probability, self.length, self.keep

    def signals(self, block: int = 1) -> dict[str, np.ndarray]:
        """Return each monitor's values, one a block of answers; NaN where a block has none.

        A block's values are the probability at the mean logit, the geometric mean of lengths, and
        how many answers are kept and without confidence.
        """
        unknown = np.isnan(self.probability).astype(float)
        if block == 1:
            return dict(zip(MONITORS, (*self.columns, unknown), strict=True))
        with np.errstate(divide="ignore"):
            logit = np.log(self.probability) - np.log1p(-self.probability)
        logit = _block_means(np.clip(logit, -MAX_LOGIT, MAX_LOGIT), block)
        keep = self.keep.reshape(-1, block)
        is_decided, n_kept = ~np.isnan(keep).all(1), np.nansum(keep, axis=1)
        values = (
            1 / (1 + np.exp(-logit)),
            np.exp(_block_means(np.log(self.length), block)),
            np.where(is_decided, n_kept, np.nan),
            unknown.reshape(-1, block).sum(1),
        )
        return dict(zip(MONITORS, values, strict=True))

    def block_length(self) -> int | None:
        """Return the length of blocks that suits all signals; None where none suits one of them."""
        defined = (values[~np.isnan(values)] for values in self.signals().values())
        lengths = [block_length(values) for values in defined if len(values)]
        return None if None in lengths else max(lengths, default=block_length(np.ones(1)))


def _block_means(values: np.ndarray, block: int) -> np.ndarray:
    """Return the mean of each block's defined values, NaN where there are none."""
    blocks = values.reshape(-1, block)
    n_defined = (~np.isnan(blocks)).sum(1)
    means = np.nansum(blocks, axis=1) / np.maximum(n_defined, 1)
    return np.where(n_defined, means, np.nan)


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
