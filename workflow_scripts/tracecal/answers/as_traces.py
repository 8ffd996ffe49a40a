"""Answers from files as traces, with the columns of the traces that are decoded here."""

import polars as pl
import pyarrow as pa

from tracecal.answers.read import listed, read_answers
from tracecal.answers.record import ALSO, entropy_kind, own_column
from tracecal.answers.settings import Reading
from tracecal.errors import InputError
from tracecal.io.checksums import digest
from tracecal.io.files import read_parquet
from tracecal.io.journal import Row
from tracecal.io.log import LOGGER
from tracecal.io.traces import SCHEMA_VERSION, TRACES, WITHOUT_ENTROPY

# Columns besides those of all traces; null where unknown
EXTRA_COLUMNS = {
    "entropy_lower": pa.list_(pa.float32()),
    "entropy_upper": pa.list_(pa.float32()),
    "correct": pa.bool_(),
}
IMPORTED = pa.schema([*TRACES, *EXTRA_COLUMNS.items()])
NO_TEXT = "·"
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


def as_traces(answers: pl.DataFrame) -> list[Row]:
    """Answers as rows of a traces file (columns of IMPORTED)."""
    marks = pl.col("surprisal").list.eval(pl.lit(NO_TEXT)).alias("tokens")
    complete = answers.with_columns(
        pl.col("answer", "prompt", "finish_reason").fill_null(""),
        pl.coalesce("tokens", marks),
    )
    return complete.select(IMPORTED.names).to_dicts()


def kind_of(answers: pl.DataFrame) -> dict[str, str]:
    """Metadata of a traces file on the kind of its answers.

    Raises `InputError` where they are of several kinds.
    """
    metadata = {
        "schema_version": SCHEMA_VERSION,
        "stop_token": _kind(answers, "stop_token") or "none",
        "processed": _kind(answers, "processed") or "unknown",
    }
    if (reasoning := _reasoning(answers)) != "none":
        metadata["reasoning"] = reasoning
    if models := answers["model"].drop_nulls().unique().sort().to_list():
        metadata["known_as"] = "\n".join(models)
    return metadata


def entropies_of(answers: pl.DataFrame, reading: Reading) -> dict[str, str]:
    """Metadata of a traces file on its entropies: how they are known, and where they are not."""
    metadata = {"entropy": entropy_kind(answers)}
    if (top_k := answers["top_k"].drop_nulls().mode().min()) is not None:
        metadata["top_k"] = str(top_k)
    if reading.vocabulary is not None:
        metadata["vocabulary"] = str(reading.vocabulary)
    if (without := answers.filter(pl.col("entropy").is_null())).height:
        reasons = "; ".join(without["lacks"].unique().sort())
        metadata[WITHOUT_ENTROPY] = f"{without.height} of {answers.height} answers: {reasons}"
        LOGGER.warning(
            "scores that need entropy, such as TRACE, are null for %s", metadata[WITHOUT_ENTROPY]
        )
    return metadata


def _reasoning(answers: pl.DataFrame) -> str:
    """Of which tokens all traces are. Traces of whole texts may be of answers without reasoning."""
    kinds = {*answers["reasoning"]}
    kinds -= {"none"} if "within" in kinds else set()
    if len(kinds) > 1:
        raise InputError(
            f"answers are of several kinds (reasoning: {', '.join(sorted(kinds))}), and a "
            "calibrator is for one. Read reasoning and answer as one (reading: {reasoning: "
            "within}), or give answers of one kind."
        )
    return kinds.pop()


def _kind(answers: pl.DataFrame, column: str) -> str | None:
    """The kind of all answers that state one; None where none does."""
    kinds = answers.filter(pl.col(column) != "none")[column].unique().sort().to_list()
    if len(kinds) > 1:
        raise InputError(
            f"answers are of several kinds ({column}: {', '.join(kinds)}), and a calibrator is for "
            f"one. State it with 'reading: {{{column}: …}}', or give answers of one kind."
        )
    return kinds[0] if kinds else None
