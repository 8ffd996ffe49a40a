"""Texts of answers in the monitors' state, which `tracecal.answers` reads as a file of answers.

Each text is the JSON of a request and its response, compressed, at the place of its answer.
"""

import json
import sqlite3
import zlib
from collections.abc import Mapping

SCHEMA = "CREATE TABLE IF NOT EXISTS texts (place INTEGER PRIMARY KEY, row BLOB NOT NULL);"
FASTEST = 1  # zlib's level


def with_id(example_id: str, row: bytes) -> bytes:
    """Add an answer's id to its row, a non-empty JSON object."""
    return b'{"id": ' + json.dumps(example_id).encode() + b", " + row[1:]


def store_texts(connection: sqlite3.Connection, rows: Mapping[str, bytes], n_newest: int) -> None:
    """Store rows (JSON by id) of watched answers; delete all but the newest `n_newest` answers'.

    A text that is stored already stays.
    """
    connection.executemany(
        "INSERT OR IGNORE INTO texts SELECT place, ? FROM answers WHERE id = ?",
        [(zlib.compress(row, FASTEST), example_id) for example_id, row in rows.items()],
    )
    connection.execute(
        "DELETE FROM texts WHERE place <= (SELECT max(place) FROM answers) - ?", (n_newest,)
    )
