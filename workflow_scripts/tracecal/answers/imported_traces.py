"""Answers from files as a traces file: its rows, and its metadata on their kind and entropies."""

import polars as pl
import pyarrow as pa

from tracecal.answers.reading import Reading
from tracecal.answers.record import ENTROPY_KIND
from tracecal.answers.trace import vocabulary_used
from tracecal.errors import InputError
from tracecal.io.journal import Row
from tracecal.io.log import LOGGER
from tracecal.io.traces import SCHEMA_VERSION, TRACES, WITHOUT_ENTROPY

# Columns that only imported traces have; missing if unknown.
EXTRA_COLUMNS = {
    "entropy_lower": pa.list_(pa.float32()),
    "entropy_upper": pa.list_(pa.float32()),
    "correct": pa.bool_(),
}
IMPORTED = pa.schema([*TRACES, *EXTRA_COLUMNS.items()])
NO_TEXT = "·"


def trace_rows(answers: pl.DataFrame) -> list[Row]:
    """The rows of a traces file (columns of `IMPORTED`) from answers (columns of `RECORDS`)."""
    placeholders = pl.col("surprisal").list.eval(pl.lit(NO_TEXT)).alias("tokens")
    complete = answers.with_columns(
        pl.col("answer", "prompt", "finish_reason").fill_null(""),
        pl.coalesce("tokens", placeholders),
    )
    return complete.select(IMPORTED.names).to_dicts()


def kind_metadata(answers: pl.DataFrame) -> dict[str, str]:
    """Metadata on the kind of the answers. Raises `InputError` where they are of several kinds."""
    metadata = {
        "schema_version": SCHEMA_VERSION,
        "stop_token": _common_kind(answers, "stop_token"),
        "processed": _common_kind(answers, "processed"),
    }
    if (reasoning := _common_kind(answers, "reasoning")) != "none":
        metadata["reasoning"] = reasoning
    if models := answers["model"].drop_nulls().unique().sort().to_list():
        metadata["known_as"] = "\n".join(models)
    return metadata


def entropy_metadata(answers: pl.DataFrame, reading: Reading) -> dict[str, str]:
    """Metadata on the entropies of the answers: how they are known, and how many are not."""
    kinds = set(answers.select(ENTROPY_KIND).to_series())
    metadata = {"entropy": next((kind for kind in ("top-k", "exact") if kind in kinds), "none")}
    if (top_k := answers["top_k"].drop_nulls().mode().min()) is not None:
        metadata["top_k"] = str(top_k)
    size, whence = vocabulary_used(answers, reading.vocabulary)
    if size is not None:
        metadata |= {"vocabulary": str(size), "vocabulary_from": whence}
    if (without := answers.filter(pl.col("entropy").is_null())).height:
        reasons = "; ".join(without["lacks"].unique().sort())
        metadata[WITHOUT_ENTROPY] = f"{without.height} of {answers.height} answers: {reasons}"
        LOGGER.warning(
            "scores that need entropy, such as TRACE, are null for %s", metadata[WITHOUT_ENTROPY]
        )
    return metadata


def _common_kind(answers: pl.DataFrame, column: str) -> str:
    """The kind of all answers that have one.

    To have no reasoning is a kind, too, except beside traces of whole texts.
    """
    kinds = {*answers[column]}
    remedy = f"State it with 'reading: {{{column}: …}}'"
    if column == "reasoning":
        remedy = "Read reasoning and answer as one (reading: {reasoning: within})"
    if column != "reasoning" or "within" in kinds:
        kinds -= {"none"}
    if len(kinds) > 1:
        raise InputError(
            f"answers are of several kinds ({column}: {', '.join(sorted(kinds))}), and a "
            f"calibrator is for one. {remedy}, or give answers of one kind."
        )
    return next(iter(kinds), "none")
