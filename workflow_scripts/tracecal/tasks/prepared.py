"""The digest of a task's local rows: files that differ only in unused parts have the same one."""

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracecal.given import MOST_BYTES, require_regular
from tracecal.storage.digest import digest, remembered
from tracecal.tasks.rows import Rows

if TYPE_CHECKING:  # slow to load, and not needed where the rows are known
    import polars as pl


def prepared_digest(spec: str, files: Sequence[str], seed: int, code: str) -> str:
    """SHA-256 of the task's table that `files` make by `spec`, a `Rows` as JSON.

    It is cached for the contents of the files and the version of the `code`. Raises
    `InputError` where a file is missing or not usable.
    """
    for file in files:
        require_regular(file, MOST_BYTES)

    def prepare() -> str:
        from tracecal.tasks.load import load_local

        return table_digest(load_local(Rows.model_validate_json(spec), files, seed))

    return remembered(json.dumps([spec, list(map(digest, files)), seed, code]), prepare)


def table_digest(rows: "pl.DataFrame") -> str:
    """SHA-256 of a task's table."""
    return hashlib.sha256(rows.write_ndjson().encode()).hexdigest()
