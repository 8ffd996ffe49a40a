"""Does a threshold hold for the answers that it decides about, if labels mix kinds of entropies?

Most answers list the eight likeliest tokens and others six to ten, or most have exact entropies and
others those of eight tokens. Entropies of 7 to 9 tokens count as one kind. The commonest kind has a
few more errors than the target allows, whatever the score, and the other kinds nearly none. So every
threshold is false.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from simulations.claims import Claim
from support.labelled_answers import answers, stored

CONFIDENCE, RATE = 0.9, 0.2
# By the number of listed tokens (0: exact): the share of answers, and their error rate.
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


def draw_answers(
    rng: np.random.Generator, seed: int, kinds: Mapping[int, tuple[float, float]]
) -> pl.DataFrame:
    """Draw labelled answers whose entropies have equal bounds, or are exact."""
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


def count_broken(runs: int, seed: int, kinds: Mapping[int, tuple[float, float]]) -> int:
    """Count the runs with a threshold."""
    rng = np.random.default_rng(seed)
    control = {"error_rates": [RATE], "confidence": CONFIDENCE}
    calibrators = (
        stored(draw_answers(rng, run, kinds), risk_control=control) for run in range(runs)
    )
    guarantees = (
        file[file["fitted_on"]["estimator"]]["risk_control"]["thresholds"][0]
        for file in calibrators
    )
    return sum(guarantee["threshold"] is not None for guarantee in guarantees)


def claims(runs: int) -> Iterator[Claim]:
    """A twentieth of the runs, as each fits every estimator."""
    tries = max(5, runs // 20)
    for name, kinds in KINDS.items():
        claim = f"error rate ≤ {RATE:g}: {name}"
        yield Claim(claim, tries, count_broken(tries, 1, kinds), 1 - CONFIDENCE)
