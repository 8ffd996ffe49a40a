"""Rows that the tests of formats read, with what they are read as, and damaged copies of them.

1. `recorded(format)` gives the rows of a file of tests/tracecal/answers/recorded: a row, the options
   of reading, the outcome, and that of each damaged copy: R for a record, W for a `WrongRow`.
2. `outcome(row, reading)` reads a row; `damaged(row, n)` gives n copies, always the same ones.
3. `PYTHONPATH=workflow_scripts python tests/support/recorded_rows.py` writes the outcomes again, of a
   row that has none yet with 300 damaged copies: after a change that should change them.
"""

import copy
import json
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tracecal
from tracecal.answers.formats.layouts import FORMATS
from tracecal.errors import InputError

FOLDER = Path(__file__).parents[1] / "tracecal" / "answers" / "recorded"
COPIES = 300  # of a new row
VALUES = (None, True, 5, -1.5, "text", [], ["text"], [5, None], {}, {"key": "text"})


def recorded(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def outcome(row: Any, reading: dict[str, Any]) -> list[dict[str, Any]] | str:
    """The records of a row, without what is missing, or why it is refused."""
    try:
        frame = tracecal.read_answers([row], reading=tracecal.Reading(**reading))
    except InputError as error:
        return str(error).replace(", ".join(FORMATS), "FORMATS")
    return [
        {name: _rounded(value) for name, value in record.items() if value is not None}
        for record in frame.to_dicts()
    ]


def letter(row: Any, reading: dict[str, Any]) -> str:
    return "W" if isinstance(outcome(row, reading), str) else "R"


def damaged(row: Any, count: int) -> Iterator[Any]:
    """Copies of a row of which one node is replaced by another type, removed, or nested."""
    generator = random.Random(json.dumps(row, sort_keys=True))
    nodes = list(_nodes(row))
    for _ in range(count if nodes else 0):
        *path, last = generator.choice(nodes)
        copied = copy.deepcopy(row)
        parent = copied
        for key in path:
            parent = parent[key]
        kind = generator.choice(("replaced", "replaced", "removed", "nested"))
        if kind == "removed":
            del parent[last]
        elif kind == "nested":
            parent[last] = generator.choice(({"key": parent[last]}, [parent[last]]))
        else:
            types = [value for value in VALUES if type(value) is not type(parent[last])]
            parent[last] = copy.deepcopy(generator.choice(types))
        yield copied


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else pairs:
        yield from _nodes(inner, (*path, key))


def _rounded(value: Any) -> Any:
    """A value of which numbers have six digits: traces are in single precision."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def with_outcomes(recording: dict[str, Any]) -> dict[str, Any]:
    row, reading = recording["row"], recording.get("reading", {})
    count = len(recording.get("damaged", "")) or COPIES
    letters = "".join(letter(copied, reading) for copied in damaged(row, count))
    return {
        "row": row,
        "reading": reading,
        "outcome": outcome(row, reading),
        "damaged": letters,
    }


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # thousands of rows would warn of an assumed vocabulary
    for path in sorted(FOLDER.glob("*.jsonl")):
        rows = [with_outcomes(recording) for recording in recorded(path.stem)]
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
