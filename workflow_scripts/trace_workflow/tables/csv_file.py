"""A table as CSV: its whole frame at full precision."""

import csv
import io
from pathlib import Path

from trace_workflow.tables.table import Table
from tracecal.io.files import read_checked
from tracecal.io.spreadsheet_cells import escape_formula


def render_csv(table: Table) -> str:
    """A header and a line per row; an undefined value is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.frame.columns)
    writer.writerows(map(escape_formula, row) for row in table.frame.iter_rows())
    return text.getvalue()


def read_rows(path: str | Path) -> list[dict[str, str]]:
    """The lines of a table's CSV as text by column; an undefined value is empty."""
    return list(csv.DictReader(io.StringIO(read_checked(path), newline="")))
