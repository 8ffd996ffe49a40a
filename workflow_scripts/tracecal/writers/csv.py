"""A table as CSV: its whole frame at full precision."""

import csv
import io
from pathlib import Path

from tracecal.storage.files import read_checked
from tracecal.writers.table import Table


def render(table: Table) -> str:
    """One header line, one line per row; null is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.frame.columns)
    writer.writerows(table.frame.iter_rows())
    return text.getvalue()


def columns(path: str | Path) -> list[str]:
    """The names of a table's columns."""
    return next(csv.reader(io.StringIO(read_checked(path), newline="")))


def read(path: str | Path) -> list[dict[str, str]]:
    """The lines of a table's CSV as text by column; null is empty."""
    return list(csv.DictReader(io.StringIO(read_checked(path), newline="")))
