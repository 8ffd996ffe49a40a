"""Fingerprints of answers: short digests of question, answer and trace that show no text."""

import hashlib
from collections.abc import Iterable

import numpy as np
import polars as pl

from tracecal.answers.record import QUESTION
from tracecal.calibration.groups import has_distinctive_trace
from tracecal.io.log import LOGGER

KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """Compute a short digest of each answer's question, text and trace; None without a trace.

    Ids do not count: different files use the same numbers for different answers.
    """
    rows = answers.select(QUESTION, "answer", "surprisal").iter_rows()
    digests = [None if row[-1] is None else _digest(*row) for row in rows]
    return pl.Series(digests, dtype=pl.String)


def with_unlabelled(answers: pl.DataFrame, unlabelled: pl.DataFrame) -> pl.DataFrame:
    """Add the answers of `unlabelled` without their labels, except for duplicates.

    `answers` have a column `fingerprint`. Duplicates have equal questions, texts and traces. Ids
    that occur twice get a mark.
    """
    is_known = are_among(unlabelled, answers["fingerprint"].drop_nulls())
    if n_known := int(is_known.sum()):
        LOGGER.info("%d of %d unlabelled answers are among the others", n_known, unlabelled.height)
    is_taken = pl.col("example_id").is_in(answers["example_id"].implode())
    renamed = pl.when(is_taken).then(pl.col("example_id") + "+").otherwise("example_id")
    rows = unlabelled.filter(~is_known).with_columns(
        example_id=renamed, correct=pl.lit(None, pl.Boolean)
    )
    return pl.concat([answers, rows], how="diagonal_relaxed")


def _digest(question: str | None, answer: str | None, surprisal: list[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    content = b"\0".join([(question or "").encode(), (answer or "").encode(), trace])
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def are_among(answers: pl.DataFrame, labelled: Iterable[str]) -> pl.Series:
    """Find the answers with one of the fingerprints `labelled`, bool [n].

    An answer to an unknown question counts only if its trace is too long for a match by chance.
    """
    is_certain = answers.select(QUESTION.is_not_null()).to_series() | has_distinctive_trace(answers)
    return fingerprints(answers).is_in(list(labelled)).fill_null(False) & is_certain
