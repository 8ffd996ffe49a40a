"""Seeded randomness: the same for the same names, whatever else was drawn before."""

import hashlib

import numpy as np


def seeded(*names: object) -> np.random.Generator:
    """A generator that depends on `names` alone."""
    digest = hashlib.sha256(":".join(map(str, names)).encode()).digest()
    return np.random.default_rng(list(digest))
