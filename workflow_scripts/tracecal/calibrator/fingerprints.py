"""Fingerprints of answers: short digests that show no text."""

import hashlib

import numpy as np
import polars as pl

KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """A short digest of each answer's question and trace; None without a trace."""
    columns = ("example_id", "prompt", "surprisal")
    return pl.Series(
        [
            None if surprisal is None else _digest(prompt or example_id, surprisal)
            for example_id, prompt, surprisal in answers.select(columns).iter_rows()
        ],
        dtype=pl.String,
    )


def _digest(question: str, surprisal: list[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    return hashlib.blake2b(question.encode() + b"\0" + trace, digest_size=6).hexdigest()
