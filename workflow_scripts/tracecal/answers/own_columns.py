"""Columns of a user's own in answers."""

import polars as pl

# The folder of a user's own columns, which answers hold as `also`.
ALSO = "also."


def own_column(name: str) -> pl.Expr:
    """The value of a user's own column."""
    own = pl.element().struct.field("name") == name
    values = pl.element().filter(own).struct.field("value")
    return pl.col("also").list.eval(values).list.first()


def also_in(answers: pl.DataFrame) -> dict[str, str]:
    """The further columns of answers by name, with their paths in a row."""
    told = answers.select(pl.col("also").explode()).unnest("also").drop_nulls("name")
    return dict(
        told.unique("name", keep="first", maintain_order=True).select("name", "path").rows()
    )
