"""How often a model is right on a task."""

import polars as pl

ACCURACY = {
    "model": pl.String,
    "task": pl.String,
    "n": pl.Int64,
    "correct": pl.Int64,
    "accuracy": pl.Float64,
}


def accuracy_row(judged: pl.DataFrame, model: str, task: str) -> pl.DataFrame:
    """Counts over evaluation answers with a Boolean column `correct`; one row."""
    n, correct = judged.height, int(judged["correct"].sum())
    return pl.DataFrame([(model, task, n, correct, correct / n)], schema=ACCURACY, orient="row")


def accuracy_by_language(
    judged: pl.DataFrame, languages: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """As `accuracy_row` for each `language`; no row where `languages` (by `example_id`) has one."""
    told = judged.join(languages.select("example_id", "language"), on="example_id", validate="1:1")
    parts = sorted(told.partition_by("language"), key=lambda part: part["language"][0])
    rows = [
        accuracy_row(part, model, task).with_columns(language=pl.lit(part["language"][0]))
        for part in parts
        if len(parts) > 1
    ]
    return pl.concat([pl.DataFrame(schema=ACCURACY | {"language": pl.String}), *rows])
