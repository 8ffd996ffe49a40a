"""A table as one self-contained HTML page, for reading and for the report."""

from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.table import Table, header_spans
from tracecal.calibrator.page_frame import render_page

TEMPLATE = Path(__file__).with_name("table.html")


def render_html(table: Table) -> str:
    """The page, every label escaped, with a link that saves the CSV."""
    page = render_page(
        TEMPLATE,
        table.title,
        table=table,
        head=_header(table),
        narrow_head=_header(table.narrow),
        further=len(table.narrow.columns) < len(table.columns),
        data=f"data:text/csv;charset=utf-8,{quote(render_csv(table))}",
    )
    return f"{page}\n"


def _header(table: Table) -> list[list[dict[str, Any]]]:
    """The header's lines: one, or two where columns are grouped."""
    columns = table.columns
    if not any(column.group for column in columns):
        return [[_heading(column.heading, column.align) for column in columns]]
    spans = header_spans(columns)
    starts = accumulate((width for _, width in spans), initial=0)
    above = [
        _heading(group, "center", across=width, spans=True)
        if group
        else _heading(columns[start].heading, columns[start].align, down=2)
        for (group, width), start in zip(spans, starts, strict=False)
    ]
    return [above, [_heading(column.heading, column.align) for column in columns if column.group]]


def _heading(
    text: str, align: str, across: int = 1, down: int = 1, spans: bool = False
) -> dict[str, Any]:
    return {"text": text, "align": align, "across": across, "down": down, "spans": spans}
