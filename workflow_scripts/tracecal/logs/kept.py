"""The texts that `tracecal serve --keep-texts` keeps in its state: rows of requests and answers.

They are packed, as log-probabilities are long and their JSON packs to a tenth.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tracecal.inputs.files import parsed_json

# `place` is that of the answer among all that were watched.
SCHEMA = "CREATE TABLE IF NOT EXISTS texts (place INTEGER PRIMARY KEY, row BLOB NOT NULL);"
MAGIC = b"SQLite format 3\0"
QUICKEST = 1  # of zlib's levels


def is_state(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def kept_rows(path: Path) -> Iterator[Any]:
    """The rows of a state, oldest first; raises `sqlite3.Error` where it has no such table."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        for (row,) in connection.execute("SELECT row FROM texts ORDER BY place"):
            yield parsed_json(zlib.decompress(row))


def keep(connection: sqlite3.Connection, rows: Mapping[str, bytes], most: int) -> None:
    """Keep rows (JSON) of watched answers, by their ids, the first of an id; and of all rows those
    of the newest `most` answers.
    """
    connection.executemany(
        "INSERT OR IGNORE INTO texts SELECT place, ? FROM answers WHERE id = ?",
        [(zlib.compress(row, QUICKEST), name) for name, row in rows.items()],
    )
    connection.execute(
        "DELETE FROM texts WHERE place <= (SELECT max(place) FROM answers) - ?", (most,)
    )
