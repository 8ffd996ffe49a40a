"""A table as data: what LaTeX, HTML and CSV writers share.

One printed cell may hold several numbers ("2/3", "0.77 ± 0.01"); a hidden column is in the CSV
only. Labels are plain text, Unicode symbols included; each writer escapes them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Value = float | int | str | None
Better = Literal["lower", "higher"]
Emphasis = Literal["best", "second"]

ARROWS: dict[Better, str] = {"lower": "↓", "higher": "↑"}
ABSENT = "–"
MINUS = "−"


@dataclass(frozen=True)
class Column:
    """A column: one CSV name per number in its cells, and how they print."""

    keys: tuple[str, ...]
    label: str = ""
    group: str = ""
    better: Better | None = None
    decimals: int = 3
    signed: bool = False
    joint: str = "/"
    align: Literal["left", "center", "right"] = "center"
    shown: bool = True
    mark: str = ""

    @property
    def heading(self) -> str:
        arrow = f" {ARROWS[self.better]}" if self.better else ""
        return self.label + arrow + self.mark


@dataclass(frozen=True)
class Cell:
    """The values of a cell, with its emphasis, footnote mark and citation key.

    `decimals` stands in for the column's where rows are printed to different precisions;
    `signed` prints a plus where the column does not.
    """

    values: tuple[Value, ...]
    emphasis: Emphasis | None = None
    mark: str = ""
    citation: str = ""
    decimals: int | None = None
    signed: bool = False


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class RowGroup:
    """Rows between two rules, under a title where it has one."""

    rows: tuple[Row, ...]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """A table; `emphasis` explains bold and underlined values where there are any."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    emphasis: str = ""
    notes: tuple[str, ...] = ()
    wide: bool = True

    def __post_init__(self) -> None:
        widths = [len(column.keys) for column in self.columns]
        for row in self.rows:
            if [len(cell.values) for cell in row] != widths:
                raise ValueError(f"table {self.name}: the row {row} does not fit the columns")

    @property
    def rows(self) -> Iterator[Row]:
        return (row for group in self.groups for row in group.rows)

    @property
    def shown(self) -> list[Column]:
        return [column for column in self.columns if column.shown]

    def shown_cells(self, row: Row) -> list[tuple[Column, Cell]]:
        return [(c, cell) for c, cell in zip(self.columns, row, strict=True) if c.shown]

    @property
    def legend(self) -> tuple[str, ...]:
        """What stands below the table: arrows, emphasis, then the table's own notes."""
        used = {column.better for column in self.shown} - {None}
        arrows = [f"{ARROWS[better]} {better} is better" for better in sorted(used, reverse=True)]
        marked = any(cell.emphasis for row in self.rows for cell in row)
        first = [", ".join(arrows) + "."] if arrows else []
        reading = " ".join([*first, *([self.emphasis] if marked and self.emphasis else [])])
        return (*([reading] if reading else []), *self.notes)


def cell(
    *values: Value,
    mark: str = "",
    citation: str = "",
    emphasis: Emphasis | None = None,
    decimals: int | None = None,
    signed: bool = False,
) -> Cell:
    return Cell(values, emphasis, mark, citation, decimals, signed)


def printed(cell: Cell, column: Column) -> str:
    """The text of a cell, before escaping."""
    if all(value is None for value in cell.values):
        return ABSENT
    decimals = column.decimals if cell.decimals is None else cell.decimals
    signed = column.signed or cell.signed
    return column.joint.join(number(v, decimals, signed) for v in cell.values)


def number(value: Value, decimals: int, signed: bool = False) -> str:
    """A value as it prints: what rounds to zero carries no sign, what is undefined is a dash."""
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
    """Which values are best and second best as printed: those that print alike share it.

    Where fewer than two different values print there is nothing to tell apart: no emphasis.
    """
    shown = [_comparable(value, decimals) for value in values]
    order = sorted({value for value in shown if value is not None}, reverse=better == "higher")
    if len(order) < 2:
        return [None] * len(shown)
    return [{order[0]: "best", order[1]: "second"}.get(value) for value in shown]


def emphasised(groups: Sequence[RowGroup], columns: Sequence[Column]) -> tuple[RowGroup, ...]:
    """The groups with best and second best marked in each shown column that has a direction."""
    rows = [list(row) for group in groups for row in group.rows]
    for index, column in enumerate(columns):
        if column.shown and column.better:
            found = ranks([row[index].values[0] for row in rows], column.better, column.decimals)
            for row, emphasis in zip(rows, found, strict=True):
                row[index] = replace(row[index], emphasis=emphasis)
    marked = iter(tuple(row) for row in rows)
    return tuple(replace(g, rows=tuple(next(marked) for _ in g.rows)) for g in groups)


def _comparable(value: Value, decimals: int) -> float | None:
    finite = isinstance(value, int | float) and math.isfinite(value)
    return float(f"{value:.{decimals}f}") if finite else None
