"""Seeded randomness that depends on names alone, not on earlier draws."""

import hashlib

import numpy as np


def seeded(*names: object) -> np.random.Generator:
    """A generator seeded by the SHA-256 of `names`."""
    digest = hashlib.sha256(":".join(map(str, names)).encode()).digest()
    return np.random.default_rng(np.array(list(digest), dtype=np.uint32))
