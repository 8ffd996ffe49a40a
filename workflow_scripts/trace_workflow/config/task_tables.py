"""The table of a task that every later step reads, from rows of any source."""

import hashlib
from collections.abc import Sequence

import polars as pl

from trace_workflow.config.part_tables import load_parts
from trace_workflow.config.row_fields import map_rows
from trace_workflow.config.row_files import Row, read_rows
from trace_workflow.config.tasks import Rows
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

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
    """The task's table from rows of any source; `paths` are its files.

    `parent` is the task whose answers the examples are parts of.
    """
    if parent is not None:
        return load_parts(spec, parent, paths)
    return load_local(spec, paths, seed)


def load_local(spec: Rows, paths: Sequence[str], seed: int) -> pl.DataFrame:
    """The table of a `path` or staged `hub` source; `paths` are the files of `spec.row_files()`.

    Raises `InputError` where a file is invalid.
    """
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
