"""A model's accuracy on a task."""

import polars as pl

ACCURACY = {
    "model": pl.String,
    "task": pl.String,
    "n": pl.Int64,
    "correct": pl.Int64,
    "accuracy": pl.Float64,
    "unanswered": pl.Int64,
    "without_entropy": pl.Int64,
}


def accuracy_row(
    labelled: pl.DataFrame, questions: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """Counts over evaluation answers with a Boolean column `correct`; one row.

    `questions` are the task's rows: those that answers from a file leave out have the role
    'unanswered', and `lacks` says why an answer has no entropies.
    """
    n, correct = labelled.height, int(labelled["correct"].sum())
    unanswered = questions.filter(role="unanswered").height
    lacking = questions.filter(role="evaluation")["lacks"].count() if "lacks" in questions else 0
    row = (model, task, n, correct, correct / n, unanswered, lacking)
    return pl.DataFrame([row], schema=ACCURACY, orient="row")


def accuracy_by_language(
    labelled: pl.DataFrame, languages: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """As `accuracy_row` for each `language`; no row where there is only one language.

    `languages` are the task's rows with `example_id`, `role` and `language`.
    """
    with_language = labelled.join(
        languages.select("example_id", "language"), on="example_id", validate="1:1"
    )
    parts = sorted(with_language.partition_by("language"), key=lambda part: part["language"][0])
    rows = [
        accuracy_row(
            part, languages.filter(language=part["language"][0]), model, task
        ).with_columns(language=pl.lit(part["language"][0]))
        for part in parts
        if len(parts) > 1
    ]
    return pl.concat([pl.DataFrame(schema=ACCURACY | {"language": pl.String}), *rows])
