"""The traces of the parts of answers in a run, as traces of a task of their own."""

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
# [first, last) and the tokens [start, end) of its trace there, and whether it shares a token with
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
# Columns of the rows: why a part has no trace, and whether it counts as a wrong one.
WITHOUT, WRONG = "without", "counts_as_wrong"


def cut_traces(
    traces: pl.DataFrame,
    questions: pl.DataFrame,
    rows: pl.DataFrame,
    parts: Parts,
    stop: Sequence[str],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut the traces of a task into those of its parts.

    Raises `InputError` where no answer has any part.

    Parameters
    ----------
    traces, questions
        The traces of the answers, and the rows of their task: `example_id`, `role` and, of answers
        from files, `lacks`.
    rows
        The rows of the task of parts: `example_id`, `parent_id` and `part`.
    stop
        Only parts of an answer before its first stop string count.

    Returns
    -------
    cut, rows
        A trace per part, with its value as `answer`; and the rows with WITHOUT and WRONG. Rows
        without a trace get the role 'unanswered'.
    """
    until_first_stop = pl.col("answer").map_elements(
        lambda answer: until_stop(answer, stop), return_dtype=pl.String
    )
    parents = traces.filter(pl.col("example_id").is_in(rows["parent_id"].implode()))
    cut, without = cut_parts(parents.with_columns(until_first_stop), parts)
    ids = rows.select("example_id", "parent_id", "part")
    cut = cut.join(ids, on=["parent_id", "part"], how="inner", validate="1:1")
    if cut.is_empty():
        reasons = [f"{row['example_id']!r}: {row['why']}" for row in without.to_dicts()]
        reason = reasons[0] if reasons else "they hold parts of other names"
        raise InputError(
            f"none of {parents.height} answers has a part: {reason}. Correct 'parts' in the task "
            "file, or the prompt of the task that is asked."
        )
    rows = _with_reasons(rows, without, parents["example_id"], cut["example_id"])
    lost = pl.col(WITHOUT).is_not_null() & (pl.col(WITHOUT) != NO_ANSWER)
    rows = rows.with_columns((lost & (parts.missing == "wrong")).fill_null(False).alias(WRONG))
    role = pl.when(pl.col(WITHOUT).is_null()).then("role").otherwise(pl.lit("unanswered"))
    if "lacks" in questions.columns:
        lacks = questions.select("lacks", parent_id="example_id")
        rows = rows.join(lacks, on="parent_id", how="left", maintain_order="left")
    LOGGER.info("%d parts of %d answers; %s", cut.height, parents.height, _count_reasons(rows))
    return cut.with_columns(answer="value"), rows.with_columns(role=role)


def _with_reasons(
    rows: pl.DataFrame, without: pl.DataFrame, answered_ids: pl.Series, cut_ids: pl.Series
) -> pl.DataFrame:
    """The rows with WITHOUT, why they have no trace."""
    answer_reasons = without.select(parent_id="example_id", answer_reason="why")
    is_answered = pl.col("parent_id").is_in(answered_ids.implode())
    row_reason = pl.when(is_answered).then(pl.lit(LACKING)).otherwise(pl.lit(NO_ANSWER))
    has_trace = pl.col("example_id").is_in(cut_ids.implode())
    reason = pl.when(~has_trace).then(pl.coalesce("answer_reason", row_reason))
    reasons = (
        rows.select("example_id", "parent_id")
        .join(answer_reasons, on="parent_id", how="left")
        .select("example_id", reason.alias(WITHOUT))
    )
    return rows.join(reasons, on="example_id", how="left", validate="1:1", maintain_order="left")


def trace_table(cut: pl.DataFrame) -> pa.Table:
    """Cut traces with the columns of a traces file and PLACES, without the answer's verdict."""
    fields = [field for field in IMPORTED if field.name in cut.columns and field.name != "correct"]
    schema = pa.schema([*fields, *PLACES.items()])
    return cut.select(schema.names).to_arrow().cast(schema)


def _count_reasons(rows: pl.DataFrame) -> str:
    """How many parts have no trace, by reason."""
    counts = rows.drop_nulls(WITHOUT).group_by(WITHOUT).len().sort(WITHOUT).iter_rows()
    return "; ".join(f"{count} without: {why}" for why, count in counts) or "none lacks any"
