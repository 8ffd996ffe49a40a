"""A check that weights belong to the tokens of their answers."""

import polars as pl

from tracecal.errors import InputError


def require_aligned(answers: pl.DataFrame, column: str) -> None:
    """Raise `InputError` unless the list `column` has one entry per token of its answer."""
    unequal = answers.filter(pl.col(column).list.len() != pl.col("surprisal").list.len())
    if unequal.height:
        raise InputError(
            f"the weights of example {unequal['example_id'][0]!r} belong to another answer, with "
            "another number of tokens. Recreate the file under weights/ with snakemake --force."
        )
