"""Digests of a user's file of rows, and of the table made from a task's rows."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trace_workflow.config.tasks import Rows, TaskSpec, local_path
from trace_workflow.jobs.code_hash import code_version
from tracecal.errors import InputError
from tracecal.io.digests import digest, remembered
from tracecal.io.input_files import MOST_BYTES, require_regular

if TYPE_CHECKING:  # slow to load, and not needed at import
    import polars as pl


def digest_of_file(path: str | Path) -> str | None:
    """A digest of a user's file; None where it is missing, which Snakemake reports.

    Raises `InputError` where it is not a file of a bounded size.
    """
    if not Path(path).exists():
        return None
    require_regular(path, MOST_BYTES)
    return digest(path)


def task_digest(
    slug: str,
    task: TaskSpec,
    files: Sequence[str],
    seed: int,
    script: Path,
    parent: TaskSpec | None = None,
) -> str | None:
    """`prepared_digest` of a task; None where its rows do not exist yet or cannot be used.

    Raises `InputError` where the rows come from the user's files.
    """
    try:
        return prepared_digest(
            task.part(Rows), files, seed, script, parent.part(Rows) if parent else None
        )
    except InputError as error:
        if task.source.path is None:
            return None
        raise InputError(f"task {slug!r}: {error}") from None


def prepared_digest(
    spec: str, files: Sequence[str], seed: int, script: Path, parent: str | None = None
) -> str:
    """SHA-256 of the table that `script` makes of a task's `files`.

    `spec` and `parent`, the spec of the parent task, are `Rows` as JSON. The digest is cached by
    the content of the files and the version of the script's code. Raises `InputError` where a file
    is missing or invalid.
    """
    code = code_version(script)
    for file in files:
        require_regular(file, MOST_BYTES)

    def prepare() -> str:
        from trace_workflow.config.task_tables import load

        specs = [text and Rows.model_validate_json(text) for text in (spec, parent)]
        return table_digest(load(specs[0], files, seed, specs[1]))

    key = [spec, list(map(digest, files)), seed, code, *filter(None, [parent])]
    return remembered(json.dumps(key), prepare)


def count_questions(task: TaskSpec, root: Path) -> int | None:
    """How many evaluation rows a task has; None where that is not known yet."""
    if task.source.path is None:
        return task.limit
    from trace_workflow.config.row_files import read_rows

    rows = [file.fill(task.source.path) for file in task.row_files() if file.role == "evaluation"]
    files = [local_path(file, root) for file in rows]
    try:
        key = json.dumps(["questions", *map(digest, files)])
        n_rows = int(remembered(key, lambda: str(sum(len(read_rows(file)) for file in files))))
    except (InputError, OSError):  # said where the rows are read
        return None
    return min(n_rows, task.limit or n_rows)


def table_digest(rows: "pl.DataFrame") -> str:
    """SHA-256 of a task's table."""
    return hashlib.sha256(rows.write_ndjson().encode()).hexdigest()
