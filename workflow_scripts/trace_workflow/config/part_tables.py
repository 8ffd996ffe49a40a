"""The table of a task whose examples are parts of the answers to another task."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from trace_workflow.config.row_fields import map_rows, present_fields, values
from trace_workflow.config.row_files import Row, read_rows
from trace_workflow.config.tasks import Rows
from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER

FINAL = "final"  # the part whose references are those of the whole answer
PARTS = {"parent_id": pl.String, "part": pl.String}


def load_parts(spec: Rows, parent: Rows, paths: Sequence[str]) -> pl.DataFrame:
    """One row for each evaluated row of the `parent` task and each part, sorted by `example_id`.

    `paths` are the parent's table and the files that it was made from. The columns are those of
    every task, and PARTS: the parent row's id and the part's name. A row's id is
    '<parent_id>/<part>'; its group, question and context are the parent row's. A part without a
    reference has no row. Raises `InputError` where no row has the field with a part's references,
    or no row is left.
    """
    table = read_parquet(paths[0], needed=["example_id", "role", "references"])
    evaluated = table.filter(role="evaluation").rows(named=True)
    references_of = _references(spec, parent, paths[1:])
    rows = [
        row
        | {
            "example_id": f"{row['example_id']}/{part}",
            "references": references,
            "distractors": row["distractors"] if part == FINAL else [],
            "parent_id": row["example_id"],
            "part": part,
        }
        for row in evaluated
        for part in spec.parts.names
        if (references := references_of[row["example_id"]].get(part, row["references"]))
    ]
    if lost := len(evaluated) * len(spec.parts.names) - len(rows):
        LOGGER.info("dropped %d part(s) without a reference", lost)
    if not rows:
        raise InputError(
            f"{', '.join(paths[1:])}: the task is empty: no row has references for a part."
        )
    return pl.DataFrame(rows, schema=table.schema | PARTS, orient="row").sort("example_id")


def _references(
    spec: Rows, parent: Rows, paths: Sequence[str]
) -> Mapping[str, Mapping[str, list[str]]]:
    """The references of each part with its own field, by the id of the parent's row."""
    fields = {
        part: [names] if isinstance(names, str) else list(names)
        for part in spec.parts.names
        if (names := spec.references.get(part, None if part == FINAL else part)) is not None
    }
    rows = dict(_evaluated_rows(parent, paths))
    for part, names in fields.items():
        for name in names:
            if not any(values(row, name) for row in rows.values()):
                raise InputError(
                    f"{', '.join(paths)}: no row has the field {name!r}, the references of the "
                    f"part {part!r} (references: {{{part}: ...}}); there are "
                    f"{present_fields(rows.values())}."
                )
    return {
        name: {
            part: list(dict.fromkeys(text for field in names for text in values(row, field)))
            for part, names in fields.items()
        }
        for name, row in rows.items()
    }


def _evaluated_rows(parent: Rows, paths: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """The evaluated rows that the parent's table was made from, with their ids."""
    for file, path in zip(parent.row_files(), paths, strict=True):
        if file.role == "evaluation":
            rows, language = read_rows(path), file.language
            separate = language is not None
            mapped = map_rows(rows, parent.fields, language or parent.language, separate, path)
            yield from zip((row["example_id"] for row in mapped), rows, strict=True)
