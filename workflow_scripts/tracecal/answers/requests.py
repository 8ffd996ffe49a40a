"""The requests of answers that were asked for in a batch: what was sent, by the answer's id.

The output of a batch holds no prompt. `Requests.read("batch.jsonl")` reads the file that was sent
(rows with ``custom_id`` and `body`), and `requests.added_to(rows)` puts each request into the row
of its answer, as `request`, where all that reads answers finds the prompt and the settings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tracecal.answers.formats.layout import STATED_IDS
from tracecal.answers.log_file import open_rows
from tracecal.errors import InputError, some_of
from tracecal.io.input_files import MOST_BYTES, require_regular

ID_KEYS = (*STATED_IDS, "key")


class Requests:
    """The requests of a file, by the ids of their answers.

    Attributes
    ----------
    n_matched : int
        How many rows got a request so far.
    """

    def __init__(self, by_id: dict[str, Any], source: str) -> None:
        self.by_id, self.source, self.n_matched = by_id, source, 0

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file of requests. Raises `InputError` where no row has an id and a body."""
        require_regular(path, MOST_BYTES)
        rows = (row for _, row in open_rows(Path(path))[0] if isinstance(row, dict))
        by_id = {example_id: _content(row) for row in rows if (example_id := _id_of(row))}
        if not by_id:
            raise InputError(
                f"{path} holds no request: expected the rows of a batch file, each with its "
                "'custom_id' and 'body'."
            )
        return cls(by_id, str(path))

    def added_to(self, rows: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """Add its request to each located row, unless the row states one."""
        for location, row in rows:
            if isinstance(row, dict) and (example_id := _id_of(row)) in self.by_id:
                self.n_matched += 1
                row = {"request": self.by_id[example_id], **row}
            yield location, row

    def describe(self, n_rows: int) -> str:
        """How many rows got a request. Raises `InputError` where none did."""
        if not self.n_matched:
            raise InputError(
                f"{self.source}: none of its {len(self.by_id)} requests "
                f"({some_of([*self.by_id])}) belongs to one of the answers: their ids differ."
            )
        return f"{self.source}: {self.n_matched} of {n_rows} answers have a request"


def _id_of(row: dict[str, Any]) -> str:
    return next((str(row[key]) for key in ID_KEYS if row.get(key) not in (None, "")), "")


def _content(row: dict[str, Any]) -> Any:
    """What was sent, below `body` (or, of Gemini, `request`) where it is there."""
    sent = row.get("body", row.get("request", row))
    return sent if isinstance(sent, dict) else row
