"""The paper's published numbers, from paper.csv, and its bibliography, references.bib."""

import csv
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from tracecal.errors import InputError

PAPER = Path(__file__).with_name("paper.csv")
BIBLIOGRAPHY = Path(__file__).with_name("references.bib")
HEADER = ["table", "row", "column", "value", "scope", "note"]


class Published(NamedTuple):
    """One number, mark or name of a table of the paper."""

    row: str
    column: str
    value: str
    scope: str = ""
    note: str = ""

    @property
    def ids(self) -> dict[str, str]:
        return _conditions(self.row)

    @property
    def conditions(self) -> dict[str, str]:
        """The values, by column, of the row of our CSV that this number stands beside."""
        return self.ids | _conditions(self.scope)


def read(path: Path = PAPER) -> dict[str, list[Published]]:
    """The numbers by table, in the file's order. Raises `InputError` where a line is invalid."""
    with path.open(encoding="utf-8", newline="") as handle:
        lines = csv.reader(handle)
        if (header := next(lines, [])) != HEADER:
            raise InputError(f"{path} begins with {header}; expected the columns {HEADER}.")
        tables: dict[str, list[Published]] = {}
        keys = set()
        for fields in lines:
            if not _sound(fields):
                raise InputError(
                    f"{path}, line {lines.line_num}: expected {HEADER}, found {fields}."
                )
            table, *rest = fields
            value = Published(*rest)
            if (key := (table, value.row, value.column)) in keys:
                raise InputError(f"{path}, line {lines.line_num}: duplicate {key}.")
            keys.add(key)
            tables.setdefault(table, []).append(value)
    return tables


def shared(
    published: Sequence[Published], models: Collection[str], tasks: Collection[str]
) -> list[Published]:
    """The published numbers whose models and tasks are all among `models` and `tasks`."""
    ids = {"model": {*models, ""}, "task": {*tasks, "average"}}

    def is_shared(value: Published) -> bool:
        return all(
            {*text.split()} <= ids[kind]
            for key, text in value.conditions.items()
            if (kind := key.removeprefix("main_").removeprefix("cross_").removesuffix("s")) in ids
        )

    return [value for value in published if is_shared(value)]


def _sound(fields: list[str]) -> bool:
    if len(fields) != len(HEADER) or not all(fields[:4]):
        return False
    return all("=" in part for text in (fields[1], fields[4]) for part in text.split(";") if part)


def _conditions(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(";") if part)
