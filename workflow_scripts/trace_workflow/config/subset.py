"""A seeded subset of a task's evaluation rows, for the estimators that cost most."""

import hashlib

import polars as pl


def draw_subset(rows: pl.DataFrame, seed: int, count: int) -> pl.DataFrame:
    """`rows` (`example_id`, `role`, …), of which `count` are evaluated; all where there are fewer.

    The other evaluation rows get the role 'outside'. A larger subset holds every smaller one, and
    no row's place depends on the others.
    """

    def place(example_id: str) -> str:
        return hashlib.sha256(f"{seed}:{example_id}".encode()).hexdigest()

    evaluated = rows.filter(role="evaluation")["example_id"].to_list()
    drawn = sorted(evaluated, key=place)[:count]
    outside = (pl.col("role") == "evaluation") & ~pl.col("example_id").is_in(drawn)
    return rows.with_columns(role=pl.when(outside).then(pl.lit("outside")).otherwise("role"))
