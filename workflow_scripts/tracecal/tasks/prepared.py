"""Digests of what users give: of a file of rows, and of the table that a task's rows make."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracecal.errors import InputError
from tracecal.given import MOST_BYTES, require_regular
from tracecal.provenance import code_version, require_code
from tracecal.storage.digest import digest, remembered
from tracecal.tasks.rows import Rows
from tracecal.tasks.spec import TaskSpec

if TYPE_CHECKING:  # slow to load, and not needed where the digest is cached
    import polars as pl


def digest_given(path: str | Path) -> str | None:
    """A digest of a user's file of rows; null where it is missing, which Snakemake reports.

    Raises `InputError` where it is not a file of a bounded size.
    """
    if not Path(path).exists():
        return None
    require_regular(path, MOST_BYTES)
    return digest(path)


def task_digest(
    slug: str, task: TaskSpec, files: Sequence[str], seed: int, script: Path
) -> str | None:
    """`prepared_digest` of a task; null where its rows are not there yet or not usable.

    Raises `InputError` where these rows are the user's own.
    """
    try:
        return prepared_digest(task.part(Rows), files, seed, script)
    except InputError as error:
        if task.source.path is None:
            return None
        raise InputError(f"task {slug!r}: {error}") from None


def prepared_digest(spec: str, files: Sequence[str], seed: int, script: Path) -> str:
    """SHA-256 of the task's table that `script` makes of `files` by `spec`, a `Rows` as JSON.

    It is cached by the contents of the files and the version of the script's code. Raises
    `InputError` where a file is missing or invalid, or the code is edited meanwhile.
    """
    code = code_version(script)
    for file in files:
        require_regular(file, MOST_BYTES)

    def prepare() -> str:
        from tracecal.tasks.load import load

        result = table_digest(load(Rows.model_validate_json(spec), files, seed))
        require_code(script, code)
        return result

    return remembered(json.dumps([spec, list(map(digest, files)), seed, code]), prepare)


def table_digest(rows: "pl.DataFrame") -> str:
    """SHA-256 of a task's table."""
    return hashlib.sha256(rows.write_ndjson().encode()).hexdigest()
