"""Bold and underlined values: the best and second best of a column, or the best of a row."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from trace_workflow.tables.table import Better, Column, Emphasis, Value

BEST_OF_COLUMN = (
    "Bold: best of the column; underlined: second best; ties, as printed, share the mark."
)


def rank_values(values: Sequence[Value], better: Better, decimals: int) -> list[Emphasis | None]:
    """The best and second best values as printed; ties, as printed, share the rank.

    No value has a rank where fewer than two different ones print.

    >>> rank_values([0.1234, 0.1229, 0.2, 0.3], "lower", 3)
    ['best', 'best', 'second', None]
    """
    printed = [_comparable(value, decimals) for value in values]
    order = sorted({value for value in printed if value is not None}, reverse=better == "higher")
    if len(order) < 2:
        return [None] * len(printed)
    return [{order[0]: "best", order[1]: "second"}.get(value) for value in printed]


def rank_columns(
    columns: Sequence[Column], compared_rows: pl.Expr | None = None
) -> tuple[Column, ...]:
    """The columns, with the best and second best value marked in those with a direction.

    Only rows that meet `compared_rows` compete.
    """

    def with_ranks(column: Column) -> Column:
        value = pl.col(column.keys[0])
        compared = value if compared_rows is None else pl.when(compared_rows).then(value)

        def emphases(values: pl.Series) -> pl.Series:
            ranks = rank_values(values.to_list(), column.better, column.decimals)
            return pl.Series(ranks, dtype=pl.String)

        return replace(column, emphasis=compared.map_batches(emphases, return_dtype=pl.String))

    return tuple(with_ranks(column) if column.better else column for column in columns)


def mark_best_of_row(columns: Sequence[Column], better: pl.Expr | None = None) -> list[Column]:
    """The columns, with the best value of each row, as printed, marked.

    `better` is the direction row by row; without it the first column's holds for all.
    """
    first = columns[0]
    keys = [column.keys[0] for column in columns]
    direction = pl.lit(first.better) if better is None else better

    def best(index: int) -> pl.Expr:
        def emphasis(row: Mapping[str, Value]) -> Emphasis | None:
            *values, side = row.values()
            rank = rank_values(values, side, first.decimals)[index]
            return rank if rank == "best" else None

        values = pl.struct(*keys, direction.alias("better"))
        return values.map_elements(emphasis, return_dtype=pl.String)

    return [replace(column, emphasis=best(index)) for index, column in enumerate(columns)]


def _comparable(value: Value, decimals: int) -> float | None:
    finite = isinstance(value, int | float) and math.isfinite(value)
    return float(f"{value:.{decimals}f}") if finite else None
