"""Places of parts in their answers, so that a page holds the tokens of an answer once."""

from typing import Any

import polars as pl

from tracecal.explorer.columns import ANSWER, OF_PARENT


def split_tokens(
    answers: pl.DataFrame, parents: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Remove from `answers` (with the columns PLACE) the tokens that their `parents` hold.

    Also returns where they are: the row of an answer, the row of its parent, the name of the part,
    and its tokens [start, end) there. The last three are None for the parent itself.
    """
    places = answers.with_row_index("row").select(
        "row",
        "model",
        "part",
        "start",
        "end",
        task=pl.coalesce("parent_task", "task"),
        example_id=pl.coalesce("parent_id", "example_id"),
    )
    parent_rows = parents.select(ANSWER).with_row_index("parent")
    places = places.join(parent_rows, on=ANSWER, maintain_order="left")
    in_parent = pl.int_range(pl.len()).is_in(places["row"].implode())
    remaining = [pl.when(~in_parent).then(name).alias(name) for name in OF_PARENT]
    columns = places.select("row", "parent", "part", "start", "end")
    return answers.with_columns(remaining), columns.to_dict(as_series=False)
