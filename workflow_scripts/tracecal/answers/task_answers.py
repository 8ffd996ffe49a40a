"""The answers of a file to the examples of a task."""

import polars as pl

from tracecal.answers.own_columns import ALSO, own_column
from tracecal.answers.read import read_answers
from tracecal.answers.reading import Reading
from tracecal.answers.wrong_row import listed
from tracecal.errors import InputError
from tracecal.io.digests import digest
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER

# Why an answer cannot be used, null where it can: as it is, and for a replay
NOT_USABLE = (
    pl.when(pl.col("surprisal").is_null())
    .then("lacks")
    .when(pl.all_horizontal(pl.col("answer", "correct").is_null()))
    .then(pl.lit("it has no text to judge, and no verdict"))
)
NOT_REPLAYABLE = (
    pl.when(pl.all_horizontal(pl.col("prompt", "prompt_token_ids").is_null()))
    .then(pl.lit("it holds neither a prompt nor prompt_token_ids"))
    .when(pl.col("token_ids").is_null() & (pl.col("answer").fill_null("") == ""))
    .then(pl.lit("it has no tokens"))
    .when(pl.col("reasoning").is_in(["apart", "alone"]))
    .then(pl.lit("reasoning precedes it, which is not read (reasoning: within reads both)"))
)


def answers_to(
    task: str, path: str, checksum: str, reading: Reading, unusable: pl.Expr = NOT_USABLE
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers in file `path` to a task's examples (columns of `RECORDS`), and the task's rows.

    `checksum` is the file's when the run started. `unusable` says why an answer cannot be used, or
    is null. Examples without a usable answer get the role 'unanswered' where `reading` skips wrong
    rows; otherwise `InputError` names the first of them. The column `lacks` of the task's rows says
    why an answer's entropies are unknown; `also.<name>` is the value of a column of a user's own.
    """
    rows = read_parquet(task, needed=["example_id", "role"])
    answers = read_answers(path, reading, set(rows["example_id"]))
    if digest(path) != checksum:
        raise InputError(f"{path} was changed after this run had started; start snakemake again.")
    checked = answers.frame.with_columns(why=unusable)
    reasons = checked.drop_nulls("why").select("example_id", "why").iter_rows()
    wrong = [*answers.wrong, *(f"the answer {name!r}: {why}" for name, why in reasons)]
    usable = checked.filter(pl.col("why").is_null()).drop("why")
    examples = rows.filter(role="evaluation")["example_id"].sort()
    missing = examples.filter(~examples.is_in(usable["example_id"].implode()))
    if len(missing) == len(examples) or (reading.wrong_rows == "stop" and len(missing)):
        raise InputError(_refusal(path, missing, len(examples), wrong))
    if len(missing) or wrong:
        LOGGER.warning(
            "%s answers %d of %d questions. %s",
            path,
            len(examples) - len(missing),
            len(examples),
            listed(wrong) if wrong else "The others have no row.",
        )
    unanswered = pl.col("example_id").is_in(missing.implode())
    role = pl.when(unanswered).then(pl.lit("unanswered")).otherwise("role")
    told = usable.select(
        "example_id",
        pl.when(pl.col("entropy").is_null()).then("lacks"),
        *(own_column(name).alias(f"{ALSO}{name}") for name in reading.also),
    )
    return usable, rows.with_columns(role=role).join(told, on="example_id", how="left")


def _refusal(path: str, missing: pl.Series, count: int, wrong: list[str]) -> str:
    sentence = (
        f"{path} holds no usable answer to {len(missing)} of {count} questions of the task, such "
        f"as {missing[0]!r}."
    )
    if wrong:
        sentence += f" {listed(wrong)}."
    return sentence + (
        " An answer needs log-probabilities, or a model in 'source' that replays it. Correct the "
        "file, take the examples out of the task, or skip them (reading: {wrong_rows: skip})."
    )
