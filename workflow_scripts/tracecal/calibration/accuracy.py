"""A model's accuracy on a task: a row of counts, for the task or for each of its languages."""

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
    """Count evaluation answers with a Boolean column `correct` (columns of `ACCURACY`).

    `questions` are the task's rows. Those without an answer in the file, and parts that answers
    lack, have the role 'unanswered'; they are among the `n` where `counts_as_wrong`. `lacks` says
    why an answer has no entropies.
    """
    unanswered = questions.filter(role="unanswered")
    n, correct = labelled.height, int(labelled["correct"].sum())
    if "counts_as_wrong" in questions.columns:
        n += int(unanswered["counts_as_wrong"].sum())
    n_lacking = 0
    if "lacks" in questions.columns:
        n_lacking = questions.filter(role="evaluation")["lacks"].count()
    row = (model, task, n, correct, correct / n, unanswered.height, n_lacking)
    return pl.DataFrame([row], schema=ACCURACY, orient="row")


def accuracy_by_language(
    labelled: pl.DataFrame, questions: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """`accuracy_row` of each `language`; no row where there is only one.

    `questions` are the task's rows with `example_id`, `role` and `language`.
    """
    languages = questions.select("example_id", "language")
    labelled = labelled.join(languages, on="example_id", validate="1:1")
    by_language = labelled.partition_by("language", as_dict=True)
    rows = [pl.DataFrame(schema=ACCURACY | {"language": pl.String})]
    for (language,) in sorted(by_language) if len(by_language) > 1 else ():
        in_language = questions.filter(language=language)
        row = accuracy_row(by_language[language,], in_language, model, task)
        rows.append(row.with_columns(language=pl.lit(language)))
    return pl.concat(rows)
