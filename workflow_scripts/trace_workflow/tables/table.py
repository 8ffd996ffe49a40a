"""A table: a frame, which is its CSV, and the columns that LaTeX and HTML print of it.

1. Put every number at full precision into a frame, a row of it per row of the table.
2. Describe the printed columns. One may join several of the frame's ("2/3", "0.77 ± 0.01"); a
   column of the frame that none prints is in the CSV alone.
3. Build `Table(frame=..., columns=...)`; `latex`, `csv_file` and `html_page` write it.

Labels are plain text with Unicode symbols; each writer escapes them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple

import polars as pl

Value = float | int | str | None
Better = Literal["lower", "higher"]
Emphasis = Literal["best", "second"]

ARROWS: dict[Better, str] = {"lower": "↓", "higher": "↑"}
ABSENT = "–"
MINUS = "−"
# Ends of an interval by the end of a column's name, and the width beyond which nothing is printed.
ENDS, WIDEST = ("_low", "_high"), 0.5
WIDE_NOTE = f"{ABSENT} Not printed where its interval is wider than {WIDEST}: too few answers."
# A table with more printed columns prints only the paper's, so that added ones do not hide them.
WIDE = 12


@dataclass(frozen=True)
class Column:
    """A printed column, made from one or several columns of the frame.

    Row by row, `emphasis` is 'best' (bold), 'second' (underlined) or None, `mark` a footnote mark
    or None, `cite` citation keys or None; `decimals` and `signed` may be expressions. `printed`
    replaces the values in print. The paper's table lacks an `added` column and an `added_mark`.
    Text breaks into lines at a width of `wrap` points. A dash stands where the interval of a value
    is too wide, in the frame's columns or as `too_wide` says.
    """

    keys: tuple[str, ...]
    label: str = ""
    group: str = ""
    better: Better | None = None
    decimals: int | pl.Expr = 3
    signed: bool | pl.Expr = False
    joint: str = "/"
    align: Literal["left", "center", "right"] = "center"
    heading_mark: str = ""
    printed: pl.Expr | None = None
    emphasis: pl.Expr | None = None
    mark: pl.Expr | None = None
    cite: pl.Expr | None = None
    added: bool = False
    added_mark: pl.Expr | None = None
    wrap: int = 0
    too_wide: pl.Expr | None = None

    @property
    def heading(self) -> str:
        arrow = f" {ARROWS[self.better]}" if self.better else ""
        return self.label + arrow + self.heading_mark


class Cell(NamedTuple):
    """A printed cell before escaping."""

    text: str
    emphasis: Emphasis | None = None
    mark: str = ""
    citation: str = ""


Cells = tuple[Cell, ...]  # of one row


class RowGroup(NamedTuple):
    """Rows between two rules; the title may be empty."""

    title: str
    rows: list[Cells]


@dataclass(frozen=True)
class Table:
    """A frame and its printed columns, with rules, titles and notes.

    A rule separates rows where `section` changes; `titles` name sections. `emphasis` explains bold
    and underlined values, `footnotes` explain marks, dashes and missing results, `notes` say more.
    Rows with `added` are not in the paper's table. A wide table prints the columns whose first
    keys are in `first`, in that order, or, without `first`, those that are not `added`. The caller
    may set `name`, `title` and `caption` later. `in_paper`: see `as_in_paper`. Raises `ValueError`
    where the frame lacks a printed column.

    >>> frame = pl.DataFrame({"label": ["TRACE"], "brier": [0.1234]})
    >>> table = Table(frame, (Column(("label",)), Column(("brier",), "Brier", better="lower")))
    >>> [cell.text for cell in table.rows[0]]
    ['TRACE', '0.123']
    >>> table.legend
    ('↓ lower is better.',)
    """

    frame: pl.DataFrame
    columns: tuple[Column, ...]
    section: pl.Expr | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    emphasis: str = ""
    footnotes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    added: pl.Expr | None = None
    first: tuple[str, ...] = ()
    name: str = ""
    title: str = ""
    caption: str = ""
    in_paper: bool = False

    def __post_init__(self) -> None:
        lacking = {key for column in self.columns for key in column.keys} - set(self.frame.columns)
        if lacking:
            raise ValueError(f"the frame of a table lacks {', '.join(sorted(lacking))}")

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The printed rows by section."""
        cells = [_cells(column, self.frame) for column in self.columns]
        sections = _values(self.frame, pl.lit("") if self.section is None else self.section)
        parts = groupby(zip(sections, zip(*cells, strict=True), strict=True), lambda pair: pair[0])
        return tuple(
            RowGroup(self.titles.get(section, ""), [row for _, row in part])
            for section, part in parts
        )

    @property
    def narrow(self) -> "Table":
        """This table, reduced to its first columns where it is wide."""
        if len(self.columns) <= WIDE:
            return self
        if self.first:
            by_key = {column.keys[0]: column for column in self.columns}
            return replace(self, columns=tuple(by_key[key] for key in self.first))
        return replace(self, columns=tuple(column for column in self.columns if not column.added))

    @property
    def rows(self) -> list[Cells]:
        return [row for group in self.groups for row in group.rows]

    @property
    def legend(self) -> tuple[str, ...]:
        """The text below the table: arrows and emphasis, then footnotes and notes."""
        if self.in_paper:
            return self.footnotes
        wide = [WIDE_NOTE] * any(any(_are_too_wide(c, self.frame)) for c in self.columns)
        return (*filter(None, [self._reading()]), *self.footnotes, *wide, *self.notes)

    def _reading(self) -> str:
        directions = {column.better for column in self.columns} - {None}
        arrows = [f"{ARROWS[side]} {side} is better" for side in sorted(directions, reverse=True)]
        emphasised = any(cell.emphasis for row in self.rows for cell in row)
        parts = [f"{', '.join(arrows)}."] * bool(arrows) + [self.emphasis] * emphasised
        return " ".join(parts).strip()


def as_in_paper(table: Table) -> Table:
    """The table without its additions to the paper's; of the notes it has only the footnotes."""
    columns = [replace(column, added_mark=None) for column in table.columns if not column.added]
    frame = table.frame if table.added is None else table.frame.filter(~table.added)
    return replace(table, frame=frame, columns=tuple(columns), in_paper=True)


def format_number(value: Value, decimals: int, signed: bool = False) -> str:
    """A value as text; a number that rounds to zero has no sign, an undefined value is a dash.

    >>> [format_number(value, 2, signed=True) for value in (0.126, -0.001, None, 3)]
    ['+0.13', '0.00', '–', '3']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ABSENT
    if not isinstance(value, float):
        return str(value)
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", MINUS)


def header_spans(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Neighbouring columns of a group as (group, width); each column without a group by itself.

    >>> header_spans([Column(("a",)), Column(("b",), "B", "Main"), Column(("c",), "C", "Main")])
    [('', 1), ('Main', 2)]
    """
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and column.group and spans[-1][0] == column.group:
            spans[-1] = (column.group, spans[-1][1] + 1)
        else:
            spans.append((column.group, 1))
    return spans


def _cells(column: Column, frame: pl.DataFrame) -> list[Cell]:
    if column.printed is None:
        rows = frame.select(column.keys).rows()
    else:
        rows = [(value,) for value in _values(frame, column.printed)]
    styles = (
        *(column.decimals, column.signed, column.emphasis),
        *(column.mark, column.added_mark, column.cite),
    )
    return [
        Cell(ABSENT)
        if too_wide
        else Cell(
            _text(column, row, decimals, signed),
            emphasis,
            (mark or "") + (added_mark or ""),
            citation or "",
        )
        for row, too_wide, decimals, signed, emphasis, mark, added_mark, citation in zip(
            rows,
            _are_too_wide(column, frame),
            *(_values(frame, style) for style in styles),
            strict=True,
        )
    ]


def _are_too_wide(column: Column, frame: pl.DataFrame) -> list[bool]:
    """Whether the interval of the column's value is wider than WIDEST, row by row."""
    low, high = (column.keys[0] + end for end in ENDS)
    if column.too_wide is None and {low, high} <= {*frame.columns} and len(column.keys) == 1:
        return _values(frame, (pl.col(high) - pl.col(low) > WIDEST).fill_null(False))
    return _values(frame, False if column.too_wide is None else column.too_wide)


def _values(frame: pl.DataFrame, setting: object) -> list:
    """The values of an expression, row by row, or the same constant for every row."""
    if isinstance(setting, pl.Expr):
        return frame.with_columns(setting.alias("value"))["value"].to_list()
    return [setting] * frame.height


def _text(column: Column, values: Sequence[Value], decimals: int, signed: bool) -> str:
    if all(value is None for value in values):
        return ABSENT
    return column.joint.join(format_number(value, decimals, signed) for value in values)
