"""Texts of answers in the state of `tracecal serve --keep-texts`, an SQLite file, read as rows.

`tracecal.serving` writes them.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tracecal.errors import InputError
from tracecal.io.input_files import parsed_json

MAGIC = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_texts(path: Path, largest_size: int, largest_ratio: int) -> Iterator[Any]:
    """The rows of a state, oldest first.

    Raises ``sqlite3.Error`` where it has no table of texts, and `InputError` where they unpack to
    more than `largest_size` bytes and `largest_ratio` times their packed size.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (packed,) = connection.execute("SELECT sum(length(row)) FROM texts").fetchone()
        n_bytes_left = max(largest_size, largest_ratio * (packed or 0))
        for (row,) in connection.execute("SELECT CAST(row AS BLOB) FROM texts ORDER BY place"):
            decoder = zlib.decompressobj()
            text = decoder.decompress(row, n_bytes_left + 1)
            n_bytes_left -= len(text)
            if n_bytes_left < 0:
                raise InputError(
                    f"{path} would unpack to far more than a state of its size holds; give one as "
                    "'tracecal serve --keep-texts' wrote it."
                )
            if not decoder.eof:
                raise zlib.error("a text is cut short")
            yield parsed_json(text)
