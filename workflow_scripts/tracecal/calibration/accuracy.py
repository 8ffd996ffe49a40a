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
    """One row of counts over evaluation answers with a Boolean column `correct`.

    `questions` are the task's rows: those that answers from a file leave out, and parts that
    answers lack, have the role 'unanswered'; of these `counts_as_wrong` are among the `n`. `lacks`
    says why an answer has no entropies.
    """
    n, correct = labelled.height, int(labelled["correct"].sum())
    without = questions.filter(role="unanswered")
    unanswered = without.height
    n += int(without["counts_as_wrong"].sum()) if "counts_as_wrong" in questions.columns else 0
    lacking = questions.filter(role="evaluation")["lacks"].count() if "lacks" in questions else 0
    row = (model, task, n, correct, correct / n, unanswered, lacking)
    return pl.DataFrame([row], schema=ACCURACY, orient="row")


def accuracy_by_language(
    labelled: pl.DataFrame, languages: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """`accuracy_row` for each `language`; no row where there is only one language.

    `languages` are the task's rows with `example_id`, `role` and `language`.
    """
    with_language = labelled.join(
        languages.select("example_id", "language"), on="example_id", validate="1:1"
    )
    parts = with_language.partition_by("language", as_dict=True)
    rows = [
        accuracy_row(
            parts[language,], languages.filter(language=language), model, task
        ).with_columns(language=pl.lit(language))
        for (language,) in sorted(parts)
        if len(parts) > 1
    ]
    return pl.concat([pl.DataFrame(schema=ACCURACY | {"language": pl.String}), *rows])
