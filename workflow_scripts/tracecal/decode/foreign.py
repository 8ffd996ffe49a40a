"""Answers from files as the traces of a task, which the rest of the workflow reads like its own."""

from typing import Any

import polars as pl
import pyarrow as pa

from tracecal.decode.traces import SCHEMA_VERSION, TRACES, WITHOUT_ENTROPY
from tracecal.errors import InputError
from tracecal.logs.options import Reading
from tracecal.logs.read import listed, read_answers
from tracecal.logs.record import entropy_kind
from tracecal.progress import LOGGER
from tracecal.storage.digest import digest
from tracecal.storage.files import read_parquet

# Beside the columns of all traces; null where there is nothing to say.
MORE = {
    "entropy_lower": pa.list_(pa.float32()),
    "entropy_upper": pa.list_(pa.float32()),
    "correct": pa.bool_(),
}
FOREIGN = pa.schema([*TRACES, *MORE.items()])
NO_TEXT = "·"
Row = dict[str, Any]
# Why an answer is not usable, null where it is: as it stands, and where it is replayed.
UNTRACED = (
    pl.when(pl.col("surprisal").is_null())
    .then("lacks")
    .when(pl.all_horizontal(pl.col("answer", "correct").is_null()))
    .then(pl.lit("it has no text to judge, and no verdict"))
)
UNREAD = (
    pl.when(pl.all_horizontal(pl.col("prompt", "prompt_token_ids").is_null()))
    .then(pl.lit("it holds neither a prompt nor prompt_token_ids"))
    .when(pl.col("token_ids").is_null() & (pl.col("answer").fill_null("") == ""))
    .then(pl.lit("it has no tokens"))
)


def of_task(
    path: str, held: str, task: str, reading: Reading, unusable: pl.Expr = UNTRACED
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A file's answers to a task's examples (columns of `RECORDS`), and the task's rows.

    `held` is the digest that the file had when the run started. `unusable` says why an answer is
    wrong for what is to be done with it. Where `reading` goes on without wrong rows, questions that
    no answer is left to have the role 'unanswered'; otherwise `InputError` names the first of them.
    Of the others `lacks` says why entropies are not known.
    """
    rows = read_parquet(task, ["example_id", "role"])
    answers = read_answers(path, reading, set(rows["example_id"]))
    if digest(path) != held:
        raise InputError(f"{path} was changed after this run had started; start snakemake again.")
    judged = answers.frame.with_columns(why=unusable)
    why = judged.drop_nulls("why").select("example_id", "why").iter_rows()
    wrong = [*answers.wrong, *(f"the answer {name!r}: {reason}" for name, reason in why)]
    usable = judged.filter(pl.col("why").is_null()).drop("why")
    asked = rows.filter(role="evaluation")["example_id"].sort()
    missing = asked.filter(~asked.is_in(usable["example_id"].implode()))
    if len(missing) == len(asked) or (reading.wrong_rows == "stop" and len(missing)):
        raise InputError(_refusal(path, missing, len(asked), wrong))
    if len(missing) or wrong:
        LOGGER.warning(
            "%s answers %d of %d questions. %s",
            path,
            len(asked) - len(missing),
            len(asked),
            listed(wrong) if wrong else "The others have no row.",
        )
    left_out = pl.col("example_id").is_in(missing.implode())
    role = pl.when(left_out).then(pl.lit("unanswered")).otherwise("role")
    lacks = usable.select("example_id", pl.when(pl.col("entropy").is_null()).then("lacks"))
    return usable, rows.with_columns(role=role).join(lacks, on="example_id", how="left")


def _refusal(path: str, missing: pl.Series, asked: int, wrong: list[str]) -> str:
    sentence = (
        f"{path} holds no usable answer to {len(missing)} of {asked} questions of the task, such "
        f"as {missing[0]!r}."
    )
    if wrong:
        sentence += f" {listed(wrong)}."
    return sentence + (
        " An answer needs log-probabilities, or the model in 'source' as well, which then replays "
        "it. Mend the file, take the examples out of the task, or go on without them (reading: "
        "{wrong_rows: skip})."
    )


def as_traces(answers: pl.DataFrame) -> list[Row]:
    """Answers as the rows of a traces file, columns of FOREIGN."""
    marks = pl.col("surprisal").list.eval(pl.lit(NO_TEXT)).alias("tokens")
    whole = answers.with_columns(
        pl.col("answer", "prompt", "finish_reason").fill_null(""),
        pl.coalesce("tokens", marks),
    )
    return whole.select(FOREIGN.names).to_dicts()


def kind_of(answers: pl.DataFrame) -> dict[str, str]:
    """What a traces file says of the kind of its answers.

    Raises `InputError` where they are of several kinds.
    """
    stated = {
        "schema_version": SCHEMA_VERSION,
        "stop_token": _kind(answers, "stop_token") or "none",
        "processed": _kind(answers, "processed") or "unknown",
    }
    if named := answers["model"].drop_nulls().unique().sort().to_list():
        stated["known_as"] = "\n".join(named)
    return stated


def entropies_of(answers: pl.DataFrame, reading: Reading) -> dict[str, str]:
    """What a traces file says of its entropies: how they are known, and where not."""
    stated = {"entropy": entropy_kind(answers)}
    if reading.vocabulary is not None:
        stated["vocabulary"] = str(reading.vocabulary)
    if (without := answers.filter(pl.col("entropy").is_null())).height:
        reasons = "; ".join(without["lacks"].unique().sort())
        stated[WITHOUT_ENTROPY] = f"{without.height} of {answers.height} answers: {reasons}"
        LOGGER.warning("null is what needs entropy, as TRACE does, of %s", stated[WITHOUT_ENTROPY])
    return stated


def _kind(answers: pl.DataFrame, column: str) -> str | None:
    """The one kind that answers are of; null where none says."""
    kinds = answers.filter(pl.col(column) != "none")[column].unique().sort().to_list()
    if len(kinds) > 1:
        raise InputError(
            f"answers are of several kinds ({column}: {', '.join(kinds)}), which no calibrator is "
            f"for. State one with 'reading: {{{column}: …}}', or give answers of one kind."
        )
    return kinds[0] if kinds else None
