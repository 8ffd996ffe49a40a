"""The three files of a table: LaTeX, CSV and HTML."""

from pathlib import Path

from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.html_page import render_html
from trace_workflow.tables.latex import render_latex
from trace_workflow.tables.table import Table
from tracecal.io.files import write_checked, write_text


def write_table(table: Table, tex: str | Path, csv_path: str | Path, page: str | Path) -> None:
    """Write the files, each as a whole or not at all."""
    write_text(render_latex(table), tex)
    write_checked(render_csv(table), csv_path)
    write_text(render_html(table), page)
