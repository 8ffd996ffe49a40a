"""Groups of answers to one question, which a fit, a split or a draw keeps together.

1. `group_answers` names the group of each answer, by question, distinctive trace or group id.
2. `fingerprints` are short digests of question, answer and trace, which show no text and tell
   whether an answer is the same.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import polars as pl

from tracecal.answers.record import FLOATS, QUESTION
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

# A trace with fewer distinct numbers may equal another question's by chance. Numbers of one or two
# digits do not count: of sure tokens logs with four decimals hold few others.
MIN_DISTINCT_VALUES, MAX_CHANCE_DIGITS = 3, 2
TRACE_COLUMNS = ("answer", "surprisal", "entropy")
KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def group_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Return `example_id` and `group_id` of answers (columns of `RECORDS`).

    Answers with a common group id, question or distinctive trace form one group, named after its
    first answer by id. Raises `InputError` if equal answers to one question differ in `correct`.
    """
    answers = answers.sort("example_id")
    answers = answers.with_columns(question=QUESTION, trace=_trace_keys(answers))
    for key in (["question", "answer"], ["trace"]):
        _require_agreement(answers.drop_nulls(key), key)
    n = answers.height
    edges = [np.empty((2, 0), dtype=np.int64)]
    for column in ("group_id", "question", "trace"):
        members = answers.select(column, index=pl.int_range(n)).drop_nulls(column)
        pairs = members.select(first=pl.col("index").min().over(column), second="index")
        edges.append(pairs.to_numpy().T)
    first, second = np.concatenate(edges, axis=1)
    # Slow to load, and not needed by all that import this module.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    component = pl.Series(connected_components(graph, directed=False)[1])
    return answers.select("example_id", group_id=pl.col("example_id").min().over(component))


def has_distinctive_trace(answers: pl.DataFrame) -> pl.Series:
    """Find the answers with traces that cannot be equal by chance, bool [n].

    >>> traces = {"surprisal": [[0.0, 1e-4, 2e-4], [0.1234, 1.01, 2.345]], "entropy": [None] * 2}
    >>> has_distinctive_trace(pl.DataFrame(traces)).to_list()
    [False, True]
    """
    lists = pl.col("surprisal", "entropy").cast(FLOATS).fill_null([])
    numbers = pl.concat_list(lists).list.eval(
        pl.element().filter(pl.element() != pl.element().round_sig_figs(MAX_CHANCE_DIGITS))
    )
    is_distinctive = numbers.list.n_unique() >= MIN_DISTINCT_VALUES
    return answers.select(distinctive=is_distinctive).to_series()


def _trace_keys(answers: pl.DataFrame) -> pl.Series:
    """Grouping key; None for traces that may be equal by chance."""
    key = pl.struct(TRACE_COLUMNS).struct.json_encode()
    return answers.select(pl.when(has_distinctive_trace(answers)).then(key)).to_series()


def _require_agreement(answers: pl.DataFrame, key: list[str]) -> None:
    # Equal answers to different questions may be right and wrong.
    one_question = pl.col("question").drop_nulls().n_unique().over(key) <= 1
    verdicts = pl.col("correct").drop_nulls().n_unique().over(key)
    contradictory = answers.filter((verdicts > 1) & one_question)
    if contradictory.is_empty():
        return
    contradictory = contradictory.sort(*key, "example_id")
    first = contradictory.filter(pl.struct(key) == pl.struct(key).first())
    right, wrong = (first.filter(correct=value)["example_id"][0] for value in (True, False))
    raise InputError(
        f"the same answer to the same question is labelled correct in {right!r} and incorrect "
        f"in {wrong!r}: correct the labels, or leave both rows out."
    )


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
