"""Intervals of shares and of means over sets and draws, at 95 %."""

import math

import numpy as np
import polars as pl
from scipy.stats import norm

RESAMPLES = 2000

# A value, and the ends of its interval.
Interval = tuple[float, float, float]


def wilson(count: int, n: int) -> Interval:
    """A share with its interval (Wilson 1927)."""
    z = norm.ppf(0.975)
    middle = (count + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * math.sqrt(count * (n - count) / n + z**2 / 4)
    return count / n, max(middle - half, 0.0), min(middle + half, 1.0)


def mean_over_sets(rows: pl.DataFrame, column: str) -> Interval:
    """The mean over sets of means over draws; its interval resamples sets, and draws in each."""
    parts = rows.partition_by("set", maintain_order=True)
    values = np.stack([part[column].to_numpy() for part in parts])  # as many draws of each set
    rng, shape = np.random.default_rng(0), (RESAMPLES, *values.shape)
    sets = rng.integers(shape[1], size=shape[:2])
    means = values[sets[..., None], rng.integers(shape[2], size=shape)].mean(axis=(1, 2))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def broken(rows: pl.DataFrame) -> Interval:
    """How often the error rate was broken in all draws of all sets, column `broken`."""
    return wilson(int(rows["broken"].sum()), rows.height)


def cell(values: Interval, digits: int) -> str:
    """A value with its interval, `.089 (.07–.11)`."""
    mean, low, high = (f"{value:.{digits}f}" for value in values)
    return f"{mean} ({low}–{high})".replace("0.", ".").replace("-", "−")


def kept_cell(rows: pl.DataFrame) -> str:
    """The share kept, and how often the error rate was broken, columns `kept` and `broken`."""
    return both(mean_over_sets(rows, "kept"), broken(rows))


def both(kept: Interval, broken: Interval) -> str:
    return f"{cell(kept, 3)}<br>broken&nbsp;{cell(broken, 2)}"
