"""The fixed score: a ranking of answers by their traces that needs no labels.

`fit_fixed_score` standardises amounts of surprisal and entropy on unlabelled answers and averages
them; with few of these it takes the mean surprisal alone.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.fits import Logistic
from tracecal.calibration.regression import EITHER_SIGN
from tracecal.estimators.feature_sets import SURPRISAL_ON_LOGARITHMS, TRACE_PLUS_ON_LOGARITHMS

MIN_UNLABELLED = 100
# An amount counts where at least this share of the unlabelled traces has it.
PRESENT = 0.9
ROUNDING = 1e-9  # values that differ by less are equal
MEAN_SURPRISAL = "features.mean_surprisal_log_conf"
# The confidences among log ridge's inputs, each -ln(amount + 1e-9): larger is more confident.
AMOUNTS = tuple(
    f"features.{name}"
    for name in (*TRACE_PLUS_ON_LOGARITHMS, *SURPRISAL_ON_LOGARITHMS)
    if name not in EITHER_SIGN
)


class FixedScore(NamedTuple):
    """A score that is fixed before labels are seen.

    Attributes
    ----------
    inputs : tuple of str
        The amounts that are averaged.
    fit : Logistic
        Maps the inputs to the score. It rises with the mean of the standardised inputs, lies
        between 0 and 1, and is no probability.
    """

    inputs: tuple[str, ...]
    fit: Logistic


def fit_fixed_score(unlabelled: pl.DataFrame) -> FixedScore:
    """Fix the score by answers whose labels are not used.

    Parameters
    ----------
    unlabelled : polars.DataFrame
        AMOUNTS of answers; an amount that the log does not give is None or absent. With fewer than
        MIN_UNLABELLED traces, or fewer than two amounts that vary, the score is the mean surprisal
        alone, which needs no standardisation.

    Examples
    --------
    >>> amounts = pl.DataFrame({name: np.arange(200) % 7 for name in AMOUNTS})
    >>> len(fit_fixed_score(amounts).inputs), len(fit_fixed_score(amounts.head(99)).inputs)
    (9, 1)
    """
    amounts = unlabelled.select(
        pl.col(name).cast(pl.Float64) for name in AMOUNTS if name in unlabelled.columns
    )
    n_traces = amounts[MEAN_SURPRISAL].count() if MEAN_SURPRISAL in amounts.columns else 0
    names, means, scales = [], [], []
    for name in amounts.columns if n_traces >= MIN_UNLABELLED else ():
        values = amounts[name].drop_nulls().to_numpy()
        if len(values) >= PRESENT * n_traces and np.ptp(values) > ROUNDING:
            names.append(name)
            means.append(float(values.mean()))
            scales.append(float(values.std()))
    if len(names) < 2:
        return FixedScore((MEAN_SURPRISAL,), Logistic([0.0], [1.0], [1.0], 0.0))
    return FixedScore(tuple(names), Logistic(means, scales, [1 / len(names)] * len(names), 0.0))
