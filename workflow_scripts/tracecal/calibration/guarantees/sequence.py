"""Sequences of thresholds that one set of labelled answers chooses for another to test.

With many labels a good start saves more than the line, which holds for all thresholds at once.
`fitted_sequence` chooses one for single answers.
"""

import numpy as np
from scipy.special import xlogy

from tracecal.calibration.guarantees.line import free_of_errors

# The first threshold keeps START times the answers that suffice without an error; errors count as
# if PRIOR_LABELS more answers were wrong at the target error rate. Each further one keeps a share
# STEP more. All were chosen by simulation on the populations of `make validate`.
START, PRIOR_LABELS, STEP = 1.5, 2.0, 0.02


def fitted_sequence(
    score: np.ndarray, wrong: np.ndarray, n_tested: int, error_rate: float, level: float
) -> np.ndarray:
    """Choose the thresholds that `n_tested` further answers test, in falling order.

    The first should be the easiest to guarantee: of those that keep enough answers for a test, it
    has the largest share kept * KL(observed error rate, `error_rate`), the rate at which evidence
    grows; where all observed error rates exceed the target, it has the lowest one.

    Parameters
    ----------
    score, wrong : array [n]
        Ranking scores and labels of answers that do not test.
    n_tested : int
        Number of answers that will test.
    error_rate, level : float
        Target error rate, and significance level of each test.

    Examples
    --------
    >>> fitted_sequence(np.arange(5.0), np.arange(5) < 2, n_tested=50, error_rate=0.2, level=0.1)
    array([2., 1., 0.])
    """
    start_share = START * np.ceil(free_of_errors(error_rate, level)) / max(n_tested, 1)
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    if not len(ranked):
        return ranked
    # Rounding may lift the last step above 1.
    shares = np.append(np.arange(min(start_share, 1.0), 1.0, STEP), 1.0).clip(max=1)
    thresholds = ranked[np.ceil(shares * len(ranked)).astype(int) - 1]
    n_kept = np.searchsorted(-ranked, -thresholds, side="right")
    n_wrong = np.append(0, np.cumsum(wrong[order]))[n_kept]
    observed = (n_wrong + PRIOR_LABELS * error_rate) / (n_kept + PRIOR_LABELS)
    growth = xlogy(observed, observed / error_rate) + xlogy(
        1 - observed, (1 - observed) / (1 - error_rate)
    )
    merit = np.where(observed < error_rate, shares * growth, error_rate - observed)
    return np.unique(thresholds[int(np.argmax(merit)) :])[::-1]
