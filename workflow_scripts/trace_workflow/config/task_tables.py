"""The table of a task that every later step reads, from rows of any source."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from trace_workflow.config.task_rows import Row, map_rows, present_fields, read_rows, values
from trace_workflow.config.tasks import Rows
from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER

FINAL = "final"  # the part whose references are those of the whole answer
PARTS = {"parent_id": pl.String, "part": pl.String}


def load_parts(spec: Rows, parent: Rows, paths: Sequence[str]) -> pl.DataFrame:
    """One row per evaluated row of the `parent` task and part, sorted by `example_id`.

    `paths` are the parent's table and the files that it was made of. The columns are those of
    every task, and PARTS: the parent row's id and the part's name. A row's id is
    '<parent_id>/<part>'; its group, question and context are the parent row's. A part without a
    reference has no row. Raises `InputError` where a field that holds a part's references is in no
    row, or no row is left.
    """
    table = read_parquet(paths[0], needed=["example_id", "role", "references"])
    evaluated = table.filter(role="evaluation").rows(named=True)
    known = _references(spec, parent, paths[1:])
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
        if (references := known[row["example_id"]].get(part, row["references"]))
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
    """By id of the parent's row: the references of each part that has a field of its own."""
    fields = {
        part: [given] if isinstance(given, str) else list(given)
        for part in spec.parts.names
        if (given := spec.references.get(part, None if part == FINAL else part)) is not None
    }
    rows = dict(_given_rows(parent, paths))
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


def _given_rows(parent: Rows, paths: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """The evaluated rows that the parent's table was made of, with their ids."""
    if parent.source.world is not None:
        for row in read_parquet(paths[0], needed=["example_id"]).iter_rows(named=True):
            yield row["example_id"], row
        return
    for piece, path in zip(parent.pieces(), paths, strict=True):
        if piece.role == "evaluation":
            rows, language = read_rows(path), piece.language
            separate = language is not None
            mapped = map_rows(rows, parent.fields, language or parent.language, separate, path)
            yield from zip((one["example_id"] for one in mapped), rows, strict=True)


# A task's rows from any source -> the one table that every later step reads.


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


def load(spec: Rows, paths: Sequence[str], seed: int, parent: Rows | None = None) -> pl.DataFrame:
    """The task frame of any source; `paths` are its files (demo data has a single one).

    `parent` is the task whose answers the examples are parts of.
    """
    if parent is not None:
        return load_parts(spec, parent, paths)
    if spec.source.world is None:
        return load_local(spec, paths, seed)
    return load_world(spec, read_parquet(paths[0]), seed)


def load_local(spec: Rows, paths: Sequence[str], seed: int) -> pl.DataFrame:
    """The task frame of a `path` or staged `hub` source; `paths` hold `spec.pieces()`, in order.

    Raises `InputError` where a file is invalid.
    """
    rows = [
        {"role": part.role} | row
        for part, path in zip(spec.pieces(), paths, strict=True)
        for row in _file_rows(spec, path, part.language)
    ]
    return finish(pl.DataFrame(rows, schema=SCHEMA, orient="row"), spec, seed)


def load_world(spec: Rows, rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The task frame of the demo data, whose rows have the columns already."""
    if missing := [name for name in SCHEMA if name not in rows.columns]:
        raise InputError(
            f"demo data {spec.source.world!r}: lacks the column(s) {', '.join(missing)}."
        )
    return finish(rows.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()), spec, seed)


def finish(rows: pl.DataFrame, spec: Rows, seed: int) -> pl.DataFrame:
    """Each example once, in one role, cut to the limits, sorted by `example_id`.

    Training rows that share an id, a group or their content with any evaluation row are dropped,
    even where the limit leaves that one out: training sets do not depend on the evaluation's limit.
    """
    rows = without_duplicates(_short_enough(rows, spec.max_characters))
    evaluation = rows.filter(pl.col("role") == "evaluation")
    if evaluation.is_empty():
        source = spec.source.path or spec.source.hub or spec.source.world
        raise InputError(f"{source}: the task is empty: no evaluation rows are left.")
    training = unseen(rows.filter(pl.col("role") == "training"), evaluation)
    kept = pl.concat(
        [
            subsample(evaluation, "evaluation", spec.limit, seed),
            subsample(training, "training", spec.training_limit, seed),
        ]
    ).sort("example_id")
    LOGGER.info("%s", _summary(kept))
    return kept


def _short_enough(rows: pl.DataFrame, most: int | None) -> pl.DataFrame:
    """The rows whose question and context have at most `most` characters; all where null."""
    if most is None:
        return rows
    length = pl.col("question").str.len_chars() + pl.col("context").fill_null("").str.len_chars()
    kept = rows.filter(length <= most)
    LOGGER.info("left out %d row(s) of more than %d characters", rows.height - kept.height, most)
    return kept


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
    seen = [key.is_in(evaluation.select(key).to_series().implode()) for key in keys]
    kept = training.filter(~pl.any_horizontal(seen))
    if dropped := training.height - kept.height:
        LOGGER.info("dropped %d training row(s) that are also in the evaluation split", dropped)
    return kept


def subsample(rows: pl.DataFrame, role: str, limit: int | None, seed: int) -> pl.DataFrame:
    """`limit` seeded random rows (all where null).

    Rows are ranked by a hash of their id, so a smaller limit's rows are among a larger one's,
    whatever the order of the file.
    """
    if limit is None or rows.height <= limit:
        return rows
    ranks = [
        hashlib.sha256(f"{seed}:{role}:{example_id}".encode()).hexdigest()
        for example_id in rows["example_id"]
    ]
    return rows.with_columns(rank=pl.Series(ranks)).sort("rank").head(limit).drop("rank")


def _file_rows(spec: Rows, path: str, language: str | None) -> list[Row]:
    """The usable rows of one file: with a question and at least one reference."""
    separate = language is not None
    rows = map_rows(read_rows(path), spec.fields, language or spec.language, separate, path)
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


# A seeded subset of a task's evaluation rows, for the estimators that cost most.


def draw_subset(rows: pl.DataFrame, seed: int, count: int) -> pl.DataFrame:
    """`rows` (`example_id`, `role`, …), of which `count` are evaluated; all where there are fewer.

    The other evaluation rows get the role 'outside'. A larger subset holds every smaller one, and
    no row's place depends on the others.
    """

    def place(example_id: str) -> str:
        return hashlib.sha256(f"{seed}:{example_id}".encode()).hexdigest()

    evaluated = rows.filter(role="evaluation")["example_id"].to_list()
    drawn = sorted(evaluated, key=place)[:count]
    outside = (pl.col("role") == "evaluation") & ~pl.col("example_id").is_in(drawn)
    return rows.with_columns(role=pl.when(outside).then(pl.lit("outside")).otherwise("role"))
