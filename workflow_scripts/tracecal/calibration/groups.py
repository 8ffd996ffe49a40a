"""Groups of answers that belong together: to one question, or with equal prompts or traces."""

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tracecal.errors import InputError

# A trace of fewer different numbers may equal another question's by chance.
MIN_DISTINCT_VALUES = 3
TRACE_COLUMNS = ("answer", "surprisal", "entropy")


def group_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `group_id` of answers (columns of `RECORDS`).

    Answers with equal group ids, prompts or traces are of one group, whose id is that of its first
    answer by id. Raises `InputError` where equal answers to one question differ in `correct`.
    """
    keyed = answers.sort("example_id").with_columns(trace=_trace_keys(answers.sort("example_id")))
    for same in (["prompt", "answer"], ["trace"]):
        _require_agreement(keyed.drop_nulls(same), same)
    n = keyed.height
    edges = [np.empty((2, 0), dtype=np.int64)]
    for column in ("group_id", "prompt", "trace"):
        known = keyed.select(column, place=pl.int_range(n)).drop_nulls(column)
        first = known.select(first=pl.col("place").min().over(column), place="place")
        edges.append(first.to_numpy().T)
    first, second = np.concatenate(edges, axis=1)
    linked = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    component = pl.Series(connected_components(linked, directed=False)[1])
    return keyed.select("example_id", group_id=pl.col("example_id").min().over(component))


def _trace_keys(answers: pl.DataFrame) -> pl.Series:
    """A text that is equal for equal traces; null where these may be equal by chance."""
    numbers = pl.concat_list("surprisal", pl.col("entropy").fill_null([])).list.n_unique()
    key = pl.struct(TRACE_COLUMNS).struct.json_encode()
    telling = pl.col("surprisal").is_not_null() & (numbers >= MIN_DISTINCT_VALUES)
    return answers.select(pl.when(telling).then(key)).to_series()


def _require_agreement(answers: pl.DataFrame, same: list[str]) -> None:
    split = answers.filter(pl.col("correct").n_unique().over(same) > 1).sort(*same, "example_id")
    if split.height:
        first = split.filter(pl.struct(same) == pl.struct(same).first())
        right, wrong = (first.filter(correct=value)["example_id"][0] for value in (True, False))
        raise InputError(
            f"the same answer to the same question is labelled correct in {right!r} and incorrect "
            f"in {wrong!r}: correct the labels, or leave both rows out."
        )
