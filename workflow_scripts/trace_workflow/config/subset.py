"""A seeded subset of a task's evaluation rows, for the costliest estimators."""

import hashlib

import polars as pl


def draw_subset(rows: pl.DataFrame, seed: int, count: int) -> pl.DataFrame:
    """`rows` (`example_id`, `role`, …) with at most `count` evaluation rows.

    The other evaluation rows get the role 'outside'. A larger subset holds every smaller one, and a
    row's rank does not depend on the other rows.
    """

    def rank(example_id: str) -> str:
        return hashlib.sha256(f"{seed}:{example_id}".encode()).hexdigest()

    evaluated = rows.filter(role="evaluation")["example_id"].to_list()
    subset = sorted(evaluated, key=rank)[:count]
    outside = (pl.col("role") == "evaluation") & ~pl.col("example_id").is_in(subset)
    return rows.with_columns(role=pl.when(outside).then(pl.lit("outside")).otherwise("role"))
