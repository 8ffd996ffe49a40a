"""Does a threshold hold for what it decides about, where labels list different numbers of tokens?

Most answers list eight of the likeliest tokens, others six to ten. The entropies of those with 7 to 9
count as of one kind, and of these a few more are wrong than the target allows, whatever their score;
of the others nearly none is. So every threshold is a false one.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from simulations.claims import Claim
from support.made import answers, stored

CONFIDENCE, RATE = 0.9, 0.2
SIZES, SHARES = (6, 7, 8, 9, 10), (0.2, 0.1, 0.4, 0.1, 0.2)
WRONG = {7: 0.22, 8: 0.22, 9: 0.22}
OTHERS_WRONG = 0.02
ANSWERS = 240


def drawn(rng: np.random.Generator, seed: int) -> pl.DataFrame:
    """Labelled answers whose entropies are between the same bounds."""
    frame = answers(ANSWERS, seed=seed)
    sizes = rng.choice(SIZES, ANSWERS, p=SHARES)
    risk = np.array([WRONG.get(size, OTHERS_WRONG) for size in sizes.tolist()])
    return frame.with_columns(
        entropy_lower="entropy",
        entropy_upper="entropy",
        top_k=pl.Series(sizes, dtype=frame.schema["top_k"]),
        correct=pl.Series(rng.random(ANSWERS) >= risk),
    )


def broken(runs: int, seed: int) -> int:
    """In how many of the runs a threshold is given."""
    rng = np.random.default_rng(seed)
    control = {"error_rates": [RATE], "confidence": CONFIDENCE}
    found = (
        stored(drawn(rng, run), splits={"count": 1}, risk_control=control) for run in range(runs)
    )
    return sum(
        one["trace_plus"]["risk_control"]["thresholds"][0]["threshold"] is not None for one in found
    )


def claims(runs: int) -> Iterator[Claim]:
    """Fewer runs than of others, as each fits every estimator."""
    tries = max(5, runs // 20)
    claim = f"error rate ≤ {RATE:g}: labels of 6 to 10 listed tokens, those of 7 to 9 decided about"
    yield Claim(claim, tries, broken(tries, 1), 1 - CONFIDENCE)
