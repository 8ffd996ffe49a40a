"""Bets against "nothing has changed", whose wealth is the evidence of a monitor.

Each function continues the wealth of several streams with new values. The evidence is valid after
every value: `bet_on_change` is an e-detector, the other two are e-processes. What they guarantee is
in docs/background/alarms.md.
"""

import numpy as np

STAKES = np.array([-1.8, -0.9, 0.0, 0.9, 1.8])  # on ranks above one half
SHARED_WEALTH = 0.01  # share of the wealth that all stakes share anew before each rank
# Error rates to bet on, as shares of the way from the target to 1.
EXCESS_RATES = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2])
DEPENDENCE_STAKES = np.array([1.0, 2.0, 3.9])  # on ranks that follow the previous rank
WINDOW = 50  # ranks whose mean says what is usual
SUM_SCALE = 2.0**40  # integer sums of ranks do not depend on how many are summed at once


def bet_on_change(wealth: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bet that ranks [streams, n] are no longer uniform.

    Returns the wealth [streams, stakes] after all ranks and the evidence [streams, n] after each.
    Ranks are bet on one after the other, so that a batch leaves exactly what single answers would.
    """
    evidence = np.empty(ranks.shape)
    with np.errstate(over="ignore"):  # infinite wealth raises an alarm too
        for column in range(ranks.shape[1]):
            share = (1 + SHARED_WEALTH * wealth.sum(1, keepdims=True)) / len(STAKES)
            payoff = 1 + STAKES * (ranks[:, column, None] - 0.5)
            wealth = payoff * (share + (1 - SHARED_WEALTH) * wealth)
            evidence[:, column] = wealth.sum(1)
    return wealth, evidence


def bet_on_errors(
    wealth: np.ndarray, errors: np.ndarray, error_rate: float, n_before: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bet that the error rate is above its target, after `n_before` labels.

    `errors` [streams, n] are 1 (wrong) or 0. Returns the wealth [streams, rates] after all labels
    and the evidence [streams, n] after each.
    """
    rates = error_rate + (1 - error_rate) * EXCESS_RATES
    if_right = (1 - rates) / (1 - error_rate)
    if_wrong = rates / error_rate
    evidence = np.empty(errors.shape)
    with np.errstate(over="ignore"):
        for column in range(errors.shape[1]):
            n_labels = n_before + column + 1
            entering = 1 / (n_labels * (n_labels + 1) * len(EXCESS_RATES))
            payoff = if_right + errors[:, column, None] * (if_wrong - if_right)
            wealth = payoff * (wealth + entering)
            evidence[:, column] = wealth.sum(1) + 1 / (n_labels + 1)
    return wealth, evidence


def bet_on_dependence(
    wealth: np.ndarray, previous_ranks: np.ndarray, ranks: np.ndarray
) -> np.ndarray:
    """Bet that ranks [streams, n] follow the rank before them.

    `previous_ranks` [streams, WINDOW + 1] end where `ranks` begin. Returns the wealth
    [streams, n, stakes] after each rank.
    """
    history = np.concatenate([previous_ranks, ranks[:, :-1]], axis=1)
    sums = np.cumsum(np.rint(history * SUM_SCALE).astype(np.int64), axis=1)
    sums = np.concatenate([np.zeros_like(sums[:, :1]), sums], axis=1)
    usual = (sums[:, WINDOW:-1] - sums[:, : -WINDOW - 1]) / (SUM_SCALE * WINDOW)
    signal = np.clip(history[:, WINDOW:] - usual, -0.5, 0.5)
    payoffs = 1 + DEPENDENCE_STAKES * ((ranks - 0.5) * signal)[:, :, None]
    payoffs[:, 0] *= wealth
    with np.errstate(over="ignore"):
        return np.multiply.accumulate(payoffs, axis=1)
