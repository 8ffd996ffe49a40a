"""Evidence that something changed, in two forms that may be looked at after every answer.

- `detect` (without labels): a Shiryaev-Roberts e-detector (Shin, Ramdas and Rinaldo 2023). A wealth
  of 1 is laid on every answer anew and then bets 1 + e (p - 1/2) on the ranks p, with each e of
  `BETS`; `MOVED` of it is spread evenly over them before each bet, as a change may be told best by
  another bet than what came before. While ranks are uniform and independent the sum less the number
  of answers is a martingale: P(sum reaches L within n answers) <= n / L, and it takes L answers or
  more on average.
- `bet` (with labels): the test that a bounded loss has an expectation above its target, by betting
  (Podkopaev and Ramdas 2022; Waudby-Smith and Ramdas 2024). A bet on a true error rate of q pays
  q / r for a wrong answer and (1 - q) / (1 - r) for a right one: a supermartingale while the error
  rate is at most r, whatever came before. A share 1 / (k (k + 1)) of the initial 1 starts to bet at
  label k, so that a long good record does not use up what a later change is found with; all of it
  is one e-process, which reaches 1 / delta with a probability of at most delta, ever (Ville).
"""

import numpy as np

BETS = np.array([-1.8, -0.9, 0.0, 0.9, 1.8])
MOVED = 0.01
# The error rates bet on, as shares of the way from the target to 1.
ABOVE = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2])


def detect(wealth: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The wealth [streams, bets] after ranks [streams, n], and its sum [streams, n] at each one.

    One after the other, so that a batch leaves exactly what its answers would one by one.
    """
    sums = np.empty(ranks.shape)
    with np.errstate(over="ignore"):  # a wealth beyond all numbers is an alarm all the same
        for place in range(ranks.shape[1]):
            shared = (1 + MOVED * wealth.sum(1, keepdims=True)) / len(BETS)
            paid = 1 + BETS * (ranks[:, place, None] - 0.5)
            wealth = paid * (shared + (1 - MOVED) * wealth)
            sums[:, place] = wealth.sum(1)
    return wealth, sums


def bet(
    wealth: np.ndarray, wrong: np.ndarray, error_rate: float, before: int
) -> tuple[np.ndarray, np.ndarray]:
    """The wealth [streams, bets] after labels `wrong` [streams, n], and the e-process [streams, n].

    `before` labels were bet on already.
    """
    q = error_rate + (1 - error_rate) * ABOVE
    pays = np.stack([(1 - q) / (1 - error_rate), q / error_rate])
    found = np.empty(wrong.shape)
    with np.errstate(over="ignore"):
        for place in range(wrong.shape[1]):
            label = before + place + 1
            entering = 1 / (label * (label + 1) * len(ABOVE))
            wealth = pays[wrong[:, place].astype(int)] * (wealth + entering)
            found[:, place] = wealth.sum(1) + 1 / (label + 1)
    return wealth, found
