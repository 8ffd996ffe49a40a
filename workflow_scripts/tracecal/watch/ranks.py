"""Ranks of answers among everything seen so far, as independent uniform numbers.

While nothing changes, an answer and those before it are exchangeable, and the smoothed rank of the
newest among all of them is uniform and independent of the earlier ranks, however many there are
(Vovk, Gammerman and Shafer 2005). That of ranks within a fixed sample is not: a long stream finds
out the sample's error. What is ranked is the bin of a value in bins that are fixed beforehand, so
that a state stays as small however long it watches; ties are broken at random.
"""

import numpy as np

from tracecal.jobs.randomness import seeded

# Logits of probabilities are told apart between -12 and 12, in steps of 0.024.
LARGEST_LOGIT, PROBABILITIES = 12.0, 1000
# Lengths are told apart up to EXACT tokens, and from there on in STEPS for each doubling.
EXACT, STEPS, DOUBLINGS = 64, 32, 14
BLOCK = 64


def bins_of_probability(probability: np.ndarray) -> np.ndarray:
    """The bins [n], below PROBABILITIES, of probabilities [n] in [0, 1]."""
    with np.errstate(divide="ignore"):
        logit = np.log(probability) - np.log1p(-probability)
    share = (np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT) / LARGEST_LOGIT + 1) / 2
    return np.minimum((share * PROBABILITIES).astype(int), PROBABILITIES - 1)


def bins_of_length(length: np.ndarray) -> np.ndarray:
    """The bins [n], at most EXACT + STEPS * DOUBLINGS, of lengths [n], at least 1 token."""
    beyond = np.log2(np.maximum(length, EXACT) / EXACT)
    further = np.minimum((STEPS * beyond).astype(int), STEPS * DOUBLINGS)
    return np.minimum(length, EXACT).astype(int) + further


def bins_of_flag(flag: np.ndarray) -> np.ndarray:
    """0 or 1."""
    return flag.astype(int)


# How a signal's values are put in bins, and into how many.
BINS = {
    "probability": (bins_of_probability, PROBABILITIES),
    "length": (bins_of_length, EXACT + STEPS * DOUBLINGS + 1),
    "kept": (bins_of_flag, 2),
    "unknown": (bins_of_flag, 2),
}


def uniform(name: str, seed: int, start: int, count: int) -> np.ndarray:
    """Numbers `start` to `start + count` of a monitor's own sequence, uniform in [0, 1)."""
    generator = seeded("watch", name, seed)
    generator.bit_generator.advance(start)
    return generator.random(count)


def smoothed_ranks(counts: np.ndarray, bins: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """The share [n] of the values so far that are below each value, itself and ties by `ties` [n].

    `counts` [bins] are the values seen before; `bins` [n] are ranked in their order, and each
    belongs to what the next is ranked among.
    """
    counts, ranks = counts.copy(), np.empty(len(bins))
    for start in range(0, len(bins), BLOCK):
        own = bins[start : start + BLOCK]
        earlier = np.tri(len(own), k=-1, dtype=bool)
        below = np.cumsum(counts)[own] - counts[own]
        below += (earlier & (own[None] < own[:, None])).sum(1)
        equal = counts[own] + (earlier & (own[None] == own[:, None])).sum(1) + 1
        total = counts.sum() + np.arange(1, len(own) + 1)
        ranks[start : start + BLOCK] = (below + ties[start : start + BLOCK] * equal) / total
        counts += np.bincount(own, minlength=len(counts))
    return ranks
