"""A batch of answers as the monitors see it: probability, length and whether each is kept."""

from dataclasses import dataclass

import numpy as np

from tracecal.monitoring.ranks import BINS

MONITORS = tuple(BINS)  # the signals, with one monitor each


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

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probability, length and keep."""
        return self.probability, self.length, self.keep

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Each monitor's values [n], NaN where an answer has none."""
        unknown = np.isnan(self.probability).astype(float)
        return dict(zip(MONITORS, (*self.columns, unknown), strict=True))
