"""Scored answers as a file, or on the standard output."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.errors import InputError
from tracecal.io.files import write_parquet, write_text

# Names of models and ids of answers come from elsewhere: they must not move a terminal's cursor,
# recolour or reverse what it shows.
_UNSEEN = [
    *range(9),
    *range(11, 32),
    *range(127, 160),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
_SHOWN = {code: chr(code).encode("unicode_escape").decode() for code in _UNSEEN}
# What a spreadsheet would execute at the beginning of a cell.
FORMULA = r"^[=+\-@\t\r]"


class Printable(logging.Formatter):
    """Formats records as `printable` text."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def printable(text: str) -> str:
    """Text in which characters that control a terminal are written out, as Python would."""
    return text.translate(_SHOWN)


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


def write_beside(
    scored: pl.DataFrame, ids: Sequence[str], rows: Sequence[Mapping[str, Any]], output: str | None
) -> int:
    """Write `rows` of answers with these `ids`, each with its `confidence` of `scored` or null, as
    JSON Lines; `output` null: to the standard output. Returns for how many it is null.
    """
    if output and Path(output).suffix != ".jsonl":
        raise InputError(f"{output}: expected a name that ends in .jsonl.")
    known = {row.pop("example_id"): row for row in scored.iter_rows(named=True)}
    found = [known.get(example_id) for example_id in ids]
    lines = [
        json.dumps({**row, "confidence": one}, ensure_ascii=False) + "\n"
        for row, one in zip(rows, found, strict=True)
    ]
    if output:
        write_text("".join(lines), output)
    else:
        sys.stdout.write("".join(lines))
    return found.count(None)
