"""A table: a frame, which is its CSV, and the columns that LaTeX and HTML print of it.

One printed column may join several of the frame's ("2/3", "0.77 ± 0.01"); those that no printed
column uses are in the CSV alone. Labels are plain text with Unicode symbols; each writer escapes
them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from typing import Literal, NamedTuple

import polars as pl

Value = float | int | str | None
Better = Literal["lower", "higher"]
Emphasis = Literal["best", "second"]

ARROWS: dict[Better, str] = {"lower": "↓", "higher": "↑"}
ABSENT = "–"
# More printed columns than this, and the added ones obscure the paper's.
WIDE = 12
MINUS = "−"


@dataclass(frozen=True)
class Column:
    """How columns of the frame print as one.

    For each row `emphasis` is 'best' (bold), 'second' (underlined) or null, `mark` a footnote mark
    or null, `cite` citation keys or null. `decimals` and `signed` may differ from row to row.
    `printed` replaces the values in print.
    A column that is `added`, and an `added_mark`, are not in the paper's table. `wrap` is the width
    (points) at which long text is broken into lines.
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

    @property
    def heading(self) -> str:
        arrow = f" {ARROWS[self.better]}" if self.better else ""
        return self.label + arrow + self.heading_mark


class Cell(NamedTuple):
    """A printed cell, before escaping; `sd` is shown where there is room."""

    text: str
    emphasis: Emphasis | None = None
    mark: str = ""
    citation: str = ""
    sd: str = ""


Row = tuple[Cell, ...]


class RowGroup(NamedTuple):
    """Rows between two rules, under a title where it has one."""

    title: str
    rows: list[Row]


@dataclass(frozen=True)
class Table:
    """A table; a rule separates rows where `section` changes, `titles` has the sections' titles.

    Its `name`, `title` and `caption` may be set later.

    `emphasis` explains bold and underlined values where there are any, `footnotes` the marks and
    dashes of cells and missing results; `notes` say more. Rows that are `added` are not in the
    paper's table: `as_printed` leaves them out. A wide table prints the columns whose first keys
    are `first`, in that order; without them those that are not added. Raises `ValueError` where a
    printed column is not in the frame.
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

    def __post_init__(self) -> None:
        lacking = {key for column in self.columns for key in column.keys} - set(self.frame.columns)
        if lacking:
            raise ValueError(f"the frame of a table lacks {', '.join(sorted(lacking))}")

    @cached_property
    def groups(self) -> tuple[RowGroup, ...]:
        """The printed rows, section by section."""
        cells = [_cells(column, self.frame) for column in self.columns]
        sections = _each(self.frame, pl.lit("") if self.section is None else self.section)
        parts = groupby(zip(sections, zip(*cells, strict=True), strict=True), lambda pair: pair[0])
        return tuple(
            RowGroup(self.titles.get(section, ""), [row for _, row in part])
            for section, part in parts
        )

    @property
    def narrow(self) -> "Table":
        """The table, where it is wide with its first columns alone."""
        if len(self.columns) <= WIDE:
            return self
        if self.first:
            by_key = {column.keys[0]: column for column in self.columns}
            return replace(self, columns=tuple(by_key[key] for key in self.first))
        return replace(self, columns=tuple(column for column in self.columns if not column.added))

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]

    @property
    def legend(self) -> tuple[str, ...]:
        """The notes below the table: arrows and emphasis, then footnotes and notes."""
        return (*filter(None, [self._reading()]), *self.footnotes, *self.notes)

    def _reading(self) -> str:
        used = {column.better for column in self.columns} - {None}
        arrows = [f"{ARROWS[better]} {better} is better" for better in sorted(used, reverse=True)]
        marked = any(cell.emphasis for row in self.rows for cell in row)
        return " ".join([f"{', '.join(arrows)}."] * bool(arrows) + [self.emphasis] * marked).strip()


@dataclass(frozen=True)
class AsPrinted(Table):
    """A table with the paper's rows and columns, and of the notes only the footnotes."""

    @property
    def legend(self) -> tuple[str, ...]:
        return self.footnotes


def as_printed(table: Table) -> Table:
    """The table without what it adds to the paper's."""
    parts = {entry.name: getattr(table, entry.name) for entry in fields(table)}
    kept = [replace(column, added_mark=None) for column in table.columns if not column.added]
    frame = table.frame if table.added is None else table.frame.filter(~table.added)
    return AsPrinted(**parts | {"frame": frame, "columns": tuple(kept)})


def _cells(column: Column, frame: pl.DataFrame) -> list[Cell]:
    if column.printed is None:
        values = frame.select(column.keys).rows()
    else:
        values = [(value,) for value in _each(frame, column.printed)]
    looks = (column.decimals, column.signed, column.emphasis, column.mark, column.added_mark)
    return [
        Cell(
            _text(column, row_values, decimals, signed),
            emphasis,
            (mark or "") + (added or ""),
            citation or "",
            _text(column, sds, decimals, False) if sds else "",
        )
        for row_values, sds, decimals, signed, emphasis, mark, added, citation in zip(
            values,
            _deviations(column, frame),
            *(_each(frame, look) for look in (*looks, column.cite)),
            strict=True,
        )
    ]


def _deviations(column: Column, frame: pl.DataFrame) -> list[tuple[Value, ...] | None]:
    """For every row the s.d. of the column's values, null where the frame lacks them."""
    names = [f"{key}_sd" for key in column.keys]
    if column.printed is not None or not {*names} <= {*frame.columns}:
        return [None] * frame.height
    return [None if None in row else row for row in frame.select(names).rows()]


def _each(frame: pl.DataFrame, what: object) -> list:
    """For every row of the frame the value of an expression, or `what` itself."""
    if isinstance(what, pl.Expr):
        return frame.with_columns(what.alias("value"))["value"].to_list()
    return [what] * frame.height


def _text(column: Column, values: Sequence[Value], decimals: int, signed: bool) -> str:
    if all(value is None for value in values):
        return ABSENT
    return column.joint.join(number(value, decimals, signed) for value in values)


def number(value: Value, decimals: int, signed: bool = False) -> str:
    """A value as text; what rounds to zero has no sign, an undefined value is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ABSENT
    if not isinstance(value, float):
        return str(value)
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", MINUS)


def header_spans(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Neighbouring columns of one group as (group, width); a column without one stands alone."""
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and column.group and spans[-1][0] == column.group:
            spans[-1] = (column.group, spans[-1][1] + 1)
        else:
            spans.append((column.group, 1))
    return spans


def ranks(values: Sequence[Value], better: Better, decimals: int) -> list[Emphasis | None]:
    """Which values are best and second best as printed; ties, as printed, share the rank.

    Where fewer than two different values print, none is ranked.
    """
    shown = [_comparable(value, decimals) for value in values]
    order = sorted({value for value in shown if value is not None}, reverse=better == "higher")
    if len(order) < 2:
        return [None] * len(shown)
    return [{order[0]: "best", order[1]: "second"}.get(value) for value in shown]


def ranked(columns: Sequence[Column], among: pl.Expr | None = None) -> tuple[Column, ...]:
    """The columns, with best and second best marked in those that have a direction.

    Only the rows that meet `among` are ranked.
    """

    def marked(column: Column) -> Column:
        value = pl.col(column.keys[0])
        compared = value if among is None else pl.when(among).then(value)

        def places(values: pl.Series) -> pl.Series:
            emphases = ranks(values.to_list(), column.better, column.decimals)
            return pl.Series(emphases, dtype=pl.String)

        return replace(column, emphasis=compared.map_batches(places, return_dtype=pl.String))

    return tuple(marked(column) if column.better else column for column in columns)


def better_of(columns: Sequence[Column], better: pl.Expr | None = None) -> list[Column]:
    """The columns, with the best value of each row, as printed, marked.

    The direction is that of the first column, or `better` row by row.
    """
    first = columns[0]
    keys = [column.keys[0] for column in columns]
    direction = pl.lit(first.better) if better is None else better

    def best(place: int) -> pl.Expr:
        def emphasis(row: Mapping[str, Value]) -> Emphasis | None:
            *values, towards = row.values()
            rank = ranks(values, towards, first.decimals)[place]
            return rank if rank == "best" else None

        both = pl.struct(*keys, direction.alias("towards"))
        return both.map_elements(emphasis, return_dtype=pl.String)

    return [replace(column, emphasis=best(place)) for place, column in enumerate(columns)]


def _comparable(value: Value, decimals: int) -> float | None:
    finite = isinstance(value, int | float) and math.isfinite(value)
    return float(f"{value:.{decimals}f}") if finite else None
