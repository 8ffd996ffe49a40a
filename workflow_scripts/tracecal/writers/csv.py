"""A table as CSV: its whole frame at full precision."""

import csv
import io
import re
from pathlib import Path

from tracecal.storage.files import read_checked
from tracecal.writers.table import Table

# What a spreadsheet would execute; such a text gets an apostrophe in front.
FORMULA = re.compile(r"[=+\-@\t\r]")


def render(table: Table) -> str:
    """One header line, one line per row; null is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.frame.columns)
    writer.writerows([_guarded(value) for value in row] for row in table.frame.iter_rows())
    return text.getvalue()


def _guarded(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def columns(path: str | Path) -> list[str]:
    """The names of a table's columns."""
    return next(csv.reader(io.StringIO(read_checked(path), newline="")))


def read(path: str | Path) -> list[dict[str, str]]:
    """The lines of a table's CSV as text by column; null is empty."""
    return list(csv.DictReader(io.StringIO(read_checked(path), newline="")))
