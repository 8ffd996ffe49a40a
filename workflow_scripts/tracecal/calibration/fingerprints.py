"""Fingerprints of answers: short digests of question, answer and trace that show no text."""

import hashlib
from collections.abc import Iterable

import numpy as np
import polars as pl

from tracecal.answers.record import question_keys
from tracecal.calibration.groups import has_distinctive_trace

KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """Compute a short digest of each answer's question, text and trace; None without a trace.

    Ids do not count: different files use the same numbers for different answers.
    """
    return _digests(answers, question_keys(answers))


def are_among(answers: pl.DataFrame, labelled: Iterable[str]) -> pl.Series:
    """Find the answers with one of the fingerprints `labelled`, bool [n].

    An answer to an unknown question counts only if its trace is too long for a match by chance.
    """
    questions = question_keys(answers)
    is_certain = questions.is_not_null() | has_distinctive_trace(answers)
    return _digests(answers, questions).is_in(list(labelled)).fill_null(False) & is_certain


def _digests(answers: pl.DataFrame, questions: pl.Series) -> pl.Series:
    rows = answers.select(questions, "answer", "surprisal").iter_rows()
    digests = [None if row[-1] is None else _digest(*row) for row in rows]
    return pl.Series(digests, dtype=pl.String)


def _digest(question: str | None, answer: str | None, surprisal: list[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    content = b"\0".join([(question or "").encode(), (answer or "").encode(), trace])
    return hashlib.blake2b(content, digest_size=6).hexdigest()
