"""The traces of parts of answers, as traces of a task of their own."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from trace_workflow.config.prompting import until_stop
from tracecal.answers.imported_traces import IMPORTED
from tracecal.answers.parts.cutter import cut_parts
from tracecal.answers.parts.parts import Parts
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

# Columns besides those of all traces: which part of which answer it is, its characters
# [first, last) and its trace's tokens [start, end) there, and whether it shares a token with
# another part.
PLACES = {
    "parent_id": pa.string(),
    "part": pa.string(),
    "first": pa.int32(),
    "last": pa.int32(),
    "start": pa.int32(),
    "end": pa.int32(),
    "shared": pa.bool_(),
}
LACKING = "the answer lacks it"
NO_ANSWER = "there is no answer"
# Columns of the rows: why a part has no trace, and whether it counts as a wrong one
WITHOUT, WRONG = "without", "counts_as_wrong"


def cut_traces(
    traces: pl.DataFrame,
    questions: pl.DataFrame,
    rows: pl.DataFrame,
    parts: Parts,
    stop: Sequence[str],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The traces of a task's parts, and the task's rows.

    `traces` are those of the answers, `questions` the rows of their task (`example_id`, `role` and,
    of answers from files, `lacks`), `rows` those of the task of parts (`example_id`, `parent_id`,
    `part`). Parts of an answer before its first `stop` string alone count. Rows without a trace get
    the role 'unanswered'; WITHOUT says why, and WRONG whether they count as wrong ones. A part's
    `answer` is its value. Raises `InputError` where no answer has any part.
    """
    ended = pl.col("answer").map_elements(
        lambda answer: until_stop(answer, stop), return_dtype=pl.String
    )
    wanted = traces.filter(pl.col("example_id").is_in(rows["parent_id"].implode()))
    located, without = cut_parts(wanted.with_columns(ended), parts)
    ids = rows.select("example_id", "parent_id", "part")
    found = located.join(ids, on=["parent_id", "part"], how="inner", validate="1:1")
    if found.is_empty():
        raise InputError(
            f"none of {wanted.height} answers has a part: {_first(without)}. Correct 'parts' in "
            "the task file, or the prompt of the task that is asked."
        )
    reasons = ids.join(
        without.select(parent_id="example_id", **{WITHOUT: "why"}), on="parent_id", how="left"
    )
    answered = pl.col("parent_id").is_in(wanted["example_id"].implode())
    lacking = pl.when(answered).then(pl.lit(LACKING)).otherwise(pl.lit(NO_ANSWER))
    has_trace = pl.col("example_id").is_in(found["example_id"].implode())
    marked = reasons.select(
        "example_id", pl.when(~has_trace).then(pl.coalesce(WITHOUT, lacking)).alias(WITHOUT)
    )
    told = rows.join(marked, on="example_id", how="left", validate="1:1", maintain_order="left")
    lost = pl.col(WITHOUT).is_not_null() & (pl.col(WITHOUT) != NO_ANSWER)
    told = told.with_columns((lost & (parts.missing == "wrong")).fill_null(False).alias(WRONG))
    role = pl.when(pl.col(WITHOUT).is_null()).then("role").otherwise(pl.lit("unanswered"))
    if "lacks" in questions.columns:
        of_answers = questions.select("lacks", parent_id="example_id")
        told = told.join(of_answers, on="parent_id", how="left", maintain_order="left")
    LOGGER.info("%d parts of %d answers; %s", found.height, wanted.height, _counted(told))
    return found.with_columns(answer="value"), told.with_columns(role=role)


def trace_table(cut_parts: pl.DataFrame) -> pa.Table:
    """Cut traces with the columns of a traces file, and PLACES.

    A verdict on the whole answer is left out.
    """
    kept = [
        field for field in IMPORTED if field.name in cut_parts.columns and field.name != "correct"
    ]
    schema = pa.schema([*kept, *PLACES.items()])
    return cut_parts.select(schema.names).to_arrow().cast(schema)


def _first(without: pl.DataFrame) -> str:
    if without.is_empty():
        return "they hold parts of other names"
    return f"{without['example_id'][0]!r}: {without['why'][0]}"


def _counted(rows: pl.DataFrame) -> str:
    """How many parts have no trace, by reason."""
    counts = rows.drop_nulls(WITHOUT).group_by(WITHOUT).len().sort(WITHOUT).iter_rows()
    return "; ".join(f"{count} without: {why}" for why, count in counts) or "none lacks any"
