"""Answers from a file to the examples of a task.

The rules `read_answers` and `replay_answers` call `answers_to` with what makes an answer unusable
to each of them.
"""

import polars as pl

from tracecal.answers.answers import read_file
from tracecal.answers.reading import Reading
from tracecal.answers.record import ALSO, own_column
from tracecal.errors import InputError, describe_wrong_rows
from tracecal.io.digests import digest
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER

# Why an answer cannot be used, null where it can: as it is, and for a replay.
NOT_USABLE = (
    pl.when(pl.col("surprisal").is_null())
    .then("lacks")
    .when(pl.all_horizontal(pl.col("answer", "correct").is_null()))
    .then(pl.lit("it has no text to judge, and no verdict"))
)
NOT_REPLAYABLE = (
    pl.when(pl.all_horizontal(pl.col("prompt", "prompt_token_ids").is_null()))
    .then(pl.lit("it holds neither a prompt nor prompt_token_ids"))
    .when(pl.col("no_answer").is_not_null())
    .then("no_answer")
    .when(pl.col("token_ids").is_null() & (pl.col("answer").fill_null("") == ""))
    .then(pl.lit("it has no tokens"))
    .when(pl.col("reasoning").is_in(["apart", "alone"]))
    .then(pl.lit("reasoning precedes it, which is not read (reasoning: within reads both)"))
)


def answers_to(
    task: str, path: str, checksum: str, reading: Reading, unusable: pl.Expr = NOT_USABLE
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers of a file to the examples of a task, and the rows of the task.

    Examples without a usable answer get the role 'unanswered' where `reading` skips wrong rows;
    otherwise `InputError` names the first one.

    Parameters
    ----------
    task, path
        The file of the task's rows, and the file of answers.
    checksum
        Of the file of answers, when the run started.
    unusable
        Why an answer cannot be used; missing where it can.

    Returns
    -------
    answers, rows
        Columns of `RECORDS`; and the rows with `lacks`, why entropies are unknown, and the user's
        own columns as `also.<name>`.
    """
    rows = read_parquet(task, needed=["example_id", "role"])
    answers = read_file(path, reading, set(rows["example_id"]))
    if digest(path) != checksum:
        raise InputError(f"{path} was changed after this run had started; start snakemake again.")
    checked = answers.frame.with_columns(reason=unusable)
    reasons = checked.drop_nulls("reason").select("example_id", "reason").iter_rows()
    wrong_rows = [*answers.wrong_rows, *(f"the answer {name!r}: {why}" for name, why in reasons)]
    usable = checked.filter(pl.col("reason").is_null()).drop("reason")
    examples = rows.filter(role="evaluation")["example_id"].sort()
    missing = examples.filter(~examples.is_in(usable["example_id"].implode()))
    if len(missing) == len(examples) or (reading.wrong_rows == "stop" and len(missing)):
        raise InputError(_refusal(path, missing, len(examples), wrong_rows))
    if len(missing) or wrong_rows:
        LOGGER.warning(
            "%s answers %d of %d questions. %s",
            path,
            len(examples) - len(missing),
            len(examples),
            describe_wrong_rows(wrong_rows) if wrong_rows else "The others have no row.",
        )
    unanswered = pl.col("example_id").is_in(missing.implode())
    role = pl.when(unanswered).then(pl.lit("unanswered")).otherwise("role")
    columns = usable.select(
        "example_id",
        pl.when(pl.col("entropy").is_null()).then("lacks"),
        *(own_column(name).alias(f"{ALSO}{name}") for name in reading.also),
    )
    return usable, rows.with_columns(role=role).join(columns, on="example_id", how="left")


def _refusal(path: str, missing: pl.Series, n_examples: int, wrong_rows: list[str]) -> str:
    sentence = (
        f"{path} holds no usable answer to {len(missing)} of {n_examples} questions of the task, "
        f"such as {missing[0]!r}."
    )
    if wrong_rows:
        sentence += f" {describe_wrong_rows(wrong_rows)}."
    return sentence + (
        " An answer needs log-probabilities, or a model in 'source' that replays it. Correct the "
        "file, take the examples out of the task, or skip them (reading: {wrong_rows: skip})."
    )
