"""Answers from files as the traces of a task, which the rest of the workflow reads like its own."""

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from tracecal.decode.traces import SCHEMA_VERSION, TRACES, write_table
from tracecal.errors import InputError
from tracecal.logs.options import Reading
from tracecal.logs.read import listed, read_answers
from tracecal.progress import LOGGER
from tracecal.storage.files import read_parquet

# Beside the columns of all traces; null where there is nothing to say.
MORE = {
    "entropy_lower": pa.list_(pa.float32()),
    "entropy_upper": pa.list_(pa.float32()),
    "correct": pa.bool_(),
}
NO_TEXT = "·"


def of_task(path: str, task: str, reading: Reading) -> pl.DataFrame:
    """A file's answers to a task's examples, columns of `RECORDS`.

    Raises `InputError` where an evaluated example has no answer.
    """
    examples = read_parquet(task, ["example_id", "role"])
    answers = read_answers(path, reading, set(examples["example_id"]))
    if answers.wrong:
        LOGGER.warning("%s: left out %s", path, listed(answers.wrong))
    evaluated = examples.filter(role="evaluation")
    missing = evaluated.join(answers.frame, on="example_id", how="anti")["example_id"].sort()
    if len(missing):
        raise InputError(
            f"{path} holds no answer to {len(missing)} of {evaluated.height} examples of the task, "
            f"such as {missing[0]!r}. Add their answers, or take the examples out of the task."
        )
    return answers.frame


def write_foreign(
    answers: pl.DataFrame, made: Mapping[str, str], reading: Reading, path: str
) -> None:
    """Write answers as a traces file that says of which kind they are.

    Raises `InputError` where an answer has no surprisals or entropies, or where they are of
    several kinds.
    """
    traced = pl.col("surprisal").is_not_null() & pl.col("entropy").is_not_null()
    if (lacking := answers.filter(~traced)).height:
        raise InputError(
            f"{lacking.height} answer(s), such as {lacking['example_id'][0]!r}, have no whole "
            f"trace ({lacking['lacks'][0]}). Give log-probabilities of the likeliest tokens and "
            "'reading: {vocabulary: …}', or the model as well, to replay them."
        )
    bounded = answers["entropy_upper"].is_not_null().any()
    told = {
        "schema_version": SCHEMA_VERSION,
        "stop_token": _kind(answers, "stop_token") or "none",
        "processed": _kind(answers, "processed") or "unknown",
        "entropy": "top-k" if bounded else "exact",
    }
    if named := answers["model"].drop_nulls().unique().sort().to_list():
        told["known_as"] = "\n".join(named)
    if reading.vocabulary is not None:
        told["vocabulary"] = str(reading.vocabulary)
    marks = pl.col("surprisal").list.eval(pl.lit(NO_TEXT)).alias("tokens")
    whole = answers.with_columns(
        pl.col("answer", "prompt", "finish_reason").fill_null(""),
        pl.coalesce("tokens", marks),
    )
    table = pa.Table.from_pylist(
        whole.select(*TRACES.names, *MORE).to_dicts(),
        schema=pa.schema([*TRACES, *MORE.items()]),
    )
    write_table(table, dict(made) | told, path)


def _kind(answers: pl.DataFrame, column: str) -> str | None:
    """The one kind that answers are of; null where none says."""
    kinds = answers.filter(pl.col(column) != "none")[column].unique().sort().to_list()
    if len(kinds) > 1:
        raise InputError(
            f"answers are of several kinds ({column}: {', '.join(kinds)}), which no calibrator is "
            f"for. State one with 'reading: {{{column}: …}}', or give answers of one kind."
        )
    return kinds[0] if kinds else None
