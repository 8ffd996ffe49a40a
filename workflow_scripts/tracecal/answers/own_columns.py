"""The user's own columns: numbers that files of answers hold beside the trace.

Answers hold them as the list `also` (see `record.RECORDS`); a calibrator calls them `also.<name>`.
"""

import polars as pl

ALSO = "also."  # before the name of an own column


def own_column(name: str) -> pl.Expr:
    """The value of the own column `name`, missing where the answer has none.

    >>> also = [[{"name": "judge", "path": "judge.score", "value": 0.5}], []]
    >>> pl.DataFrame({"also": also}).select(own_column("judge")).to_series().to_list()
    [0.5, None]
    """
    has_name = pl.element().struct.field("name") == name
    values = pl.element().filter(has_name).struct.field("value")
    return pl.col("also").list.eval(values).list.first()


def own_column_paths(answers: pl.DataFrame) -> dict[str, str]:
    """The paths of the own columns of answers, by their names."""
    columns = answers.select(pl.col("also").explode()).unnest("also").drop_nulls("name")
    return dict(
        columns.unique("name", keep="first", maintain_order=True).select("name", "path").rows()
    )
