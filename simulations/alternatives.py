"""Does a threshold hold for what it decides about, where labels have entropies of several kinds?

Most answers list eight of the likeliest tokens, others six to ten; or most have exact entropies and
others such from eight tokens. The entropies of 7 to 9 tokens count as of one kind. Of the commonest
kind a few more are wrong than the target allows, whatever their score; of the others nearly none is.
So every threshold is a false one.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from simulations.claims import Claim
from support.labelled_answers import answers, stored

CONFIDENCE, RATE = 0.9, 0.2
# By the number of listed tokens (0: exact) how many have so many, and how many of these are wrong.
KINDS = {
    "labels of 6 to 10 listed tokens, those of 7 to 9 decided about": {
        6: (0.2, 0.02),
        7: (0.1, 0.22),
        8: (0.4, 0.22),
        9: (0.1, 0.22),
        10: (0.2, 0.02),
    },
    "exact entropies and some of 8 listed tokens, exact ones decided about": {
        0: (0.6, 0.22),
        8: (0.4, 0.02),
    },
}
ANSWERS = 240


def drawn(
    rng: np.random.Generator, seed: int, kinds: Mapping[int, tuple[float, float]]
) -> pl.DataFrame:
    """Labelled answers whose entropies are between the same bounds, or exact."""
    frame = answers(ANSWERS, seed=seed)
    sizes = rng.choice([*kinds], ANSWERS, p=[share for share, _ in kinds.values()])
    risk = np.array([kinds[size][1] for size in sizes.tolist()])
    listed = pl.Series(sizes, dtype=frame.schema["top_k"])
    bound = pl.when(listed > 0).then("entropy")
    return frame.with_columns(
        entropy_lower=bound,
        entropy_upper=bound,
        top_k=listed.replace(0, None),
        correct=pl.Series(rng.random(ANSWERS) >= risk),
    )


def broken(runs: int, seed: int, kinds: Mapping[int, tuple[float, float]]) -> int:
    """In how many of the runs a threshold is given."""
    rng = np.random.default_rng(seed)
    control = {"error_rates": [RATE], "confidence": CONFIDENCE}
    found = (
        stored(drawn(rng, run, kinds), splits={"count": 1}, risk_control=control)
        for run in range(runs)
    )
    return sum(
        one["trace_plus"]["risk_control"]["thresholds"][0]["threshold"] is not None for one in found
    )


def claims(runs: int) -> Iterator[Claim]:
    """Fewer runs than of others, as each fits every estimator."""
    tries = max(5, runs // 20)
    for name, kinds in KINDS.items():
        claim = f"error rate ≤ {RATE:g}: {name}"
        yield Claim(claim, tries, broken(tries, 1, kinds), 1 - CONFIDENCE)
