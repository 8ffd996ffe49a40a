"""Groups of answers to one question, which a fit, a split or a draw keeps together."""

import numpy as np
import polars as pl

from tracecal.answers.record import FLOATS, QUESTION
from tracecal.errors import InputError

# A trace with fewer distinct numbers may equal another question's by chance. Numbers of one or two
# digits do not count: of sure tokens logs with four decimals hold few others.
MIN_DISTINCT_VALUES, MAX_CHANCE_DIGITS = 3, 2
TRACE_COLUMNS = ("answer", "surprisal", "entropy")


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
