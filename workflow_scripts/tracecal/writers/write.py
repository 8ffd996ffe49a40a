"""A table into its three files."""

from pathlib import Path

from tracecal.storage.files import write_checked, write_text
from tracecal.writers import csv, html, latex
from tracecal.writers.table import Table


def write_table(table: Table, tex: str | Path, csv_file: str | Path, page: str | Path) -> None:
    """Write LaTeX, CSV and HTML, each whole or not at all."""
    write_text(latex.render(table), tex)
    write_checked(csv.render(table), csv_file)
    write_text(html.render(table), page)
