"""The table of a task that every later step reads.

1. `load(spec, paths, seed)` makes it from rows of any source, or from the `parent` task whose
   answers its examples are parts of.
2. `draw_subset(rows, seed, count)` marks the rows of it that the costliest estimators take.
"""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from trace_workflow.config.row_fields import map_rows, present_fields, values
from trace_workflow.config.row_files import Row, read_rows
from trace_workflow.config.tasks import Rows
from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER
from tracecal.io.randomness import rank

SCHEMA = {
    "example_id": pl.String,
    "group_id": pl.String,
    "role": pl.String,
    "language": pl.String,
    "question": pl.String,
    "context": pl.String,
    "references": pl.List(pl.String),
    "distractors": pl.List(pl.String),
}
FINAL = "final"  # the part whose references are those of the whole answer
PARTS = {"parent_id": pl.String, "part": pl.String}


def load(spec: Rows, paths: Sequence[str], seed: int, parent: Rows | None = None) -> pl.DataFrame:
    """The task's table from rows of any source; `paths` are the files of `spec.row_files()`.

    `parent` is the task whose answers the examples are parts of; `paths` are then those of
    `load_parts`. Raises `InputError` where a file is invalid.
    """
    if parent is not None:
        return load_parts(spec, parent, paths)
    rows = [
        {"role": file.role} | row
        for file, path in zip(spec.row_files(), paths, strict=True)
        for row in _file_rows(spec, path, file.language)
    ]
    return finish(pl.DataFrame(rows, schema=SCHEMA, orient="row"), spec, seed)


def finish(rows: pl.DataFrame, spec: Rows, seed: int) -> pl.DataFrame:
    """Each example once, in one role, cut to the limits, sorted by `example_id`.

    Training rows that share an id, a group or their content with any evaluation row are dropped,
    even where the limit leaves that one out: training sets do not depend on the evaluation's limit.
    """
    rows = without_duplicates(_short_enough(rows, spec.max_characters))
    evaluation = rows.filter(pl.col("role") == "evaluation")
    if evaluation.is_empty():
        source = spec.source.path or spec.source.hub
        raise InputError(f"{source}: the task is empty: no evaluation rows are left.")
    training = unseen(rows.filter(pl.col("role") == "training"), evaluation)
    table = pl.concat(
        [
            subsample(evaluation, "evaluation", spec.limit, seed),
            subsample(training, "training", spec.training_limit, seed),
        ]
    ).sort("example_id")
    LOGGER.info("%s", _summary(table))
    return table


def _short_enough(rows: pl.DataFrame, max_characters: int | None) -> pl.DataFrame:
    """The rows whose question and context have at most `max_characters`; None: all rows."""
    if max_characters is None:
        return rows
    length = pl.col("question").str.len_chars() + pl.col("context").fill_null("").str.len_chars()
    short = rows.filter(length <= max_characters)
    left_out = rows.height - short.height
    LOGGER.info("left out %d row(s) of more than %d characters", left_out, max_characters)
    return short


def without_duplicates(rows: pl.DataFrame) -> pl.DataFrame:
    """Distinct rows; `InputError` where two different ones share their id and role."""
    distinct = rows.unique(maintain_order=True)
    if dropped := rows.height - distinct.height:
        LOGGER.info("dropped %d row(s) that repeat another", dropped)
    clashing = distinct.filter(pl.struct("role", "example_id").is_duplicated())
    if clashing.height:
        first, *more = clashing["example_id"].unique().sort()
        also = f", and so do {len(more)} more" if more else ""
        raise InputError(
            f"example id {first!r} is used by different rows{also}; name a field with unique "
            "values under fields.id, or correct the data."
        )
    return distinct


def unseen(training: pl.DataFrame, evaluation: pl.DataFrame) -> pl.DataFrame:
    """The training rows that share no id, group or content with an evaluation row."""
    keys = (
        pl.col("example_id"),
        pl.col("group_id"),
        pl.struct("question", pl.col("context").fill_null("")).alias("content"),
    )
    in_evaluation = [key.is_in(evaluation.select(key).to_series().implode()) for key in keys]
    unshared = training.filter(~pl.any_horizontal(in_evaluation))
    if dropped := training.height - unshared.height:
        LOGGER.info("dropped %d training row(s) that are also in the evaluation split", dropped)
    return unshared


def subsample(rows: pl.DataFrame, role: str, limit: int | None, seed: int) -> pl.DataFrame:
    """`limit` seeded random rows; None: all rows.

    Rows are ranked by a hash of their id, so a smaller limit's rows are among a larger one's,
    whatever the order of the file.
    """
    if limit is None or rows.height <= limit:
        return rows
    ranks = [rank(seed, role, example_id) for example_id in rows["example_id"]]
    return rows.with_columns(rank=pl.Series(ranks)).sort("rank").head(limit).drop("rank")


def _file_rows(spec: Rows, path: str, language: str | None) -> list[Row]:
    """The usable rows of one file: with a question and at least one reference."""
    rows = map_rows(read_rows(path), spec, language, path)
    with_question = [row for row in rows if row["question"]]
    usable = [row for row in with_question if row["references"]]
    for lost, what in (
        (len(rows) - len(with_question), "question"),
        (len(with_question) - len(usable), "reference"),
    ):
        if lost:
            LOGGER.info("%s: dropped %d row(s) without a %s", path, lost, what)
    if not usable:
        lacking = "question" if not with_question else "reference"
        raise InputError(
            f"{path}: the task is empty: none of its {len(rows)} row(s) has a {lacking}."
        )
    return usable


def _summary(rows: pl.DataFrame) -> str:
    counts = rows.group_by("role", "language").len().sort("role", "language").iter_rows()
    return ", ".join(f"{count} {role} row(s) in {language}" for role, language, count in counts)


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
            rows = read_rows(path)
            mapped = map_rows(rows, parent, file.language, path)
            yield from zip((row["example_id"] for row in mapped), rows, strict=True)


def draw_subset(rows: pl.DataFrame, seed: int, count: int) -> pl.DataFrame:
    """`rows` (`example_id`, `role`, …) with at most `count` evaluation rows.

    The other evaluation rows get the role 'outside'. A larger subset holds every smaller one, and a
    row's rank does not depend on the other rows.
    """
    evaluated = rows.filter(role="evaluation")["example_id"].to_list()
    subset = sorted(evaluated, key=lambda example_id: rank(seed, example_id))[:count]
    outside = (pl.col("role") == "evaluation") & ~pl.col("example_id").is_in(subset)
    return rows.with_columns(role=pl.when(outside).then(pl.lit("outside")).otherwise("role"))
