"""Fingerprints of answers: short digests of question, answer and trace that show no text."""

import hashlib
from collections.abc import Iterable

import numpy as np
import polars as pl

from tracecal.answers.record import question_keys
from tracecal.calibration.groups import has_distinctive_trace

KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """A short digest of each answer's question, text and trace; None without a trace.

    An id is no part of it: other files number other answers alike.
    """
    rows = answers.select(question_keys(answers), "answer", "surprisal").iter_rows()
    digests = [None if row[-1] is None else _digest(*row) for row in rows]
    return pl.Series(digests, dtype=pl.String)


def _digest(question: str | None, answer: str | None, surprisal: list[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    content = b"\0".join([(question or "").encode(), (answer or "").encode(), trace])
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def are_among(answers: pl.DataFrame, labelled: Iterable[str]) -> pl.Series:
    """Whether each answer is one of those with the fingerprints `labelled`, bool [n].

    Where its question is not known, an answer with a trace that may be another's by chance is none.
    """
    is_certain = question_keys(answers).is_not_null() | has_distinctive_trace(answers)
    return fingerprints(answers).is_in(list(labelled)).fill_null(False) & is_certain
