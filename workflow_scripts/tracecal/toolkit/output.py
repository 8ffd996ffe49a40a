"""Scored answers as a file, or on the standard output."""

import sys
from pathlib import Path

import polars as pl

from tracecal.errors import InputError
from tracecal.storage.files import write_parquet, write_text

# What a spreadsheet would execute at the beginning of a cell.
FORMULA = r"^[=+\-@\t\r]"


def write_scored(scored: pl.DataFrame, output: str | None) -> None:
    """Write scored answers as .jsonl, .csv or .parquet; null: JSON Lines to the standard output.

    In CSV, which has no lists, each of an answer's `parts` is a row.
    """
    suffix = Path(output).suffix if output else ".jsonl"
    if output and suffix == ".parquet":
        write_parquet(scored, output)
    elif suffix not in (".jsonl", ".csv"):
        raise InputError(f"{output}: expected a name that ends in .jsonl, .csv or .parquet.")
    elif not output:
        sys.stdout.write(scored.write_ndjson())
    elif suffix == ".csv":
        if "parts" in scored.columns:
            answers = scored.rename({"reason": "without_parts"})
            scored = answers.explode("parts").unnest("parts")
        guarded = pl.col(pl.String).str.replace(f"({FORMULA})", "'${1}")
        write_text(scored.with_columns(guarded).write_csv(), output)
    else:
        write_text(scored.write_ndjson(), output)
