"""SQLite files of others: their tables are tables, and no statement on them runs for ever."""

import sqlite3
from itertools import count
from pathlib import Path

from tracecal.errors import InputError

STEPS = 10**6  # of SQLite's machine between two looks at how many there were
MOST_LOOKS = 10_000  # of one use of a connection: minutes of work
# What runs code of the file's own: a computed column, or a table of a module.
COMPUTED = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden"


def require_tables(connection: sqlite3.Connection, path: str | Path) -> None:
    """Raise `InputError` where a file holds more than tables and indices, such as a view.

    A view may have rows without end, and a trigger may write such.
    """
    limit_steps(connection)
    for kind, name, sql in connection.execute(
        "SELECT type, name, sql FROM sqlite_master"
    ).fetchall():
        if kind == "table" and not (sql or "").upper().lstrip().startswith("CREATE VIRTUAL"):
            (n_computed,) = connection.execute(COMPUTED, (name,)).fetchone()
            if not n_computed:
                continue
        elif kind == "index":
            continue
        raise InputError(
            f"{path}: {name!r} is not a plain table, as all are in a state that tracecal wrote; "
            "give the state as it was written."
        )


def limit_steps(connection: sqlite3.Connection) -> None:
    """Interrupt statements, from now on, after minutes of work (``sqlite3.OperationalError``)."""
    looks = count(1)
    connection.set_progress_handler(lambda: next(looks) > MOST_LOOKS, STEPS)
