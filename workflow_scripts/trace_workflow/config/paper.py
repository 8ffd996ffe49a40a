"""The paper's published numbers, from paper.csv, and its bibliography, references.bib."""

import csv
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

PAPER = Path(__file__).with_name("paper.csv")
BIBLIOGRAPHY = Path(__file__).with_name("references.bib")


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
    """The numbers by table, in the file's order."""
    tables: dict[str, list[Published]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            tables.setdefault(row.pop("table"), []).append(Published(**row))
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


def _conditions(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(";") if part)
