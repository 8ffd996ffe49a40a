"""Sources of answers: a path, a frame or rows, read into one frame.

A path names a file in any format of docs/reference/formats.md, rows are the mappings that a file
holds, and a frame comes from Polars, pandas or any library with Arrow's C stream. A `Reading` says
how to read paths and rows; a frame that `read_answers` returned needs no reading.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers import read
from tracecal.answers.labels import read_labels, with_labels
from tracecal.answers.parts.labels import PartLabels
from tracecal.answers.reading import Reading
from tracecal.answers.record import RECORDS, own_column
from tracecal.answers.row_file import open_rows
from tracecal.errors import InputError, describe_wrong_rows, require_threads
from tracecal.io.log import LOGGER

Answers = str | Path | pl.DataFrame | Iterable[Mapping[str, Any]] | Any
SCHEMA = pl.Schema(RECORDS)  # type: ignore[arg-type]
# What a file states about all its answers, and a frame in a column for each answer.
STATED = ("task", "revision")
# Options of reading that a frame takes which has been read.
OF_FRAMES = {"vocabulary", "also", "labels", "right_from", "question", "wrong_rows"}
PART_LABELS = pl.Struct(
    {
        "correct": pl.List(pl.Struct({"name": pl.String, "correct": pl.Boolean})),
        "wrong_spans": pl.List(pl.List(pl.Int64)),
    }
)


def read_answers(
    answers: Answers, *, reading: Reading | None = None, progress: bool = False
) -> pl.DataFrame:
    """Read answers with their traces from a file of any format, from rows, or from a frame.

    Parameters
    ----------
    answers : path, frame or rows
        JSON Lines, JSON, CSV, Arrow, Parquet, or an Inspect log; see above.
    reading : Reading, optional
        How to read the answers, such as the ``vocabulary``'s size, which entropies from top-k
        need, or the ``label``.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    polars.DataFrame
        One row per answer: ``example_id``, ``answer``, ``surprisal`` and ``entropy`` (lists with
        one number per token, nats, missing if unknown), bounds of the entropies, ``correct``,
        ``model``, why a trace is incomplete (``lacks``), and more. If the file states them, also
        ``task``, ``revision``, and ``part_labels``, the verdicts on parts of answers.

    Raises
    ------
    InputError
        If no answer is usable, or a row is invalid and ``wrong_rows`` is not ``"skip"``.

    Examples
    --------
    >>> import tracecal
    >>> rows = [{"id": "sum", "answer": "5", "logprobs": [-0.25, -0.5], "entropy": [0.5, 1.0]}]
    >>> tracecal.read_answers(rows)["surprisal"].to_list()
    [[0.25, 0.5]]
    """
    return frame_of(answers_in(answers, reading, progress=progress))


def frame_of(answers: read.Answers) -> pl.DataFrame:
    """Return the frame of `read_answers`: answers and the facts that their source states."""
    metadata = answers.metadata
    stated = {name: pl.lit(metadata[name]) for name in STATED if name in metadata}
    frame = answers.frame.with_columns(**stated)
    if not answers.part_labels:
        return frame
    labels = [_labels_as_row(answers.part_labels.get(name)) for name in frame["example_id"]]
    return frame.with_columns(part_labels=pl.Series(labels, dtype=PART_LABELS))


def _labels_as_row(labels: PartLabels | None) -> dict[str, Any] | None:
    if labels is None:
        return None
    verdicts = None if labels.correct is None else labels.correct.items()
    correct = verdicts and [{"name": name, "correct": verdict} for name, verdict in verdicts]
    return {"correct": correct, "wrong_spans": labels.wrong_spans}


def answers_in(
    answers: Answers,
    reading: Reading | None = None,
    keep_rows: read.KeepRows = False,
    progress: bool = False,
) -> read.Answers:
    """Read answers from their source; `Answers` are returned unchanged.

    A frame of `read_answers` takes three options only: a vocabulary, which does not change it,
    labels, and own columns, which are columns of the frame or were read with it.
    """
    require_threads()
    if isinstance(answers, read.Answers):
        return answers
    settings = reading or Reading()
    if isinstance(answers, str | Path):
        result = read.read_file(answers, settings, keep_rows=keep_rows, progress=progress)
    elif (frame := _polars_frame(answers)) is None:
        result = read.read_rows(answers, settings, keep_rows, progress)
    elif frame.columns and RECORDS.keys() <= {*frame.columns}:
        if changed := settings.changed({*Reading.model_fields} - OF_FRAMES):
            raise InputError(
                f"the frame has been read already, so {', '.join(changed)} would do nothing: give "
                "options of reading to read_answers."
            )
        result = _answers_of_frame(_with_own_columns(frame, settings.also), keep_rows)
    else:
        result = read.read_rows(frame.iter_rows(named=True), settings, keep_rows, progress)
    if result.wrong_rows:
        LOGGER.warning(
            "%s: left out %s; 'tracecal reading %s' shows how rows are read",
            *(result.source, describe_wrong_rows(result.wrong_rows), result.source),
        )
    return result if settings.labels is None else _labelled(result, settings)


def _labelled(answers: read.Answers, reading: Reading) -> read.Answers:
    """Replace the verdicts by those in the file that `labels` names."""
    skip = reading.wrong_rows == "skip"
    labels = read_labels(str(reading.labels), reading.right_from, reading.question, skip)
    frame, matched = with_labels(answers.frame, labels, lambda: _rows_of(answers))
    LOGGER.info("%s", matched)
    return replace(answers, frame=frame)


def _rows_of(answers: read.Answers) -> Iterable[Any]:
    """Return the raw rows of a file of answers; none for other sources."""
    if not Path(answers.source).is_file():
        return ()
    return (row for _, row in open_rows(Path(answers.source))[0])


def _polars_frame(answers: Any) -> pl.DataFrame | None:
    """Convert answers to a Polars frame; None for rows. Raises `InputError` for anything else."""
    if isinstance(answers, pl.LazyFrame):
        return answers.collect()
    if hasattr(answers, "__arrow_c_stream__"):
        return answers if isinstance(answers, pl.DataFrame) else pl.DataFrame(answers)
    if isinstance(answers, Mapping) or not isinstance(answers, Iterable):
        raise InputError(
            f"answers are a path, a frame (Polars, pandas, Arrow) or a list of rows, not "
            f"{type(answers).__name__}."
        )
    return None


def _with_own_columns(frame: pl.DataFrame, also: Mapping[str, str]) -> pl.DataFrame:
    """A frame with the user's own columns as `RECORDS` holds them."""
    if not also:
        return frame
    try:
        values = [
            pl.struct(
                name=pl.lit(name),
                path=pl.lit(path),
                value=pl.col(path).cast(pl.Float64) if path in frame.columns else own_column(name),
            )
            for name, path in also.items()
        ]
        return frame.with_columns(also=pl.concat_list(values))
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"the columns {', '.join(also.values())} are not all numbers or verdicts "
            f"({str(error).splitlines()[0]})."
        ) from error


def _answers_of_frame(frame: pl.DataFrame, keep_rows: read.KeepRows) -> read.Answers:
    """The answers of a frame of `read_answers`, which may have further columns."""
    records = _records_of_frame(frame)
    metadata = {}
    for name in {*STATED} & {*frame.columns}:
        values = frame[name].drop_nulls().unique().sort().to_list()
        if len(values) > 1:
            raise InputError(
                f"the answers are of several values of {name} ({', '.join(map(str, values))}): "
                "give those of one."
            )
        if values:
            metadata[name] = values[0]
    part_labels = {}
    if "part_labels" in frame.columns:
        labelled = frame.select("example_id", "part_labels").drop_nulls()
        part_labels = {name: _labels_of_row(labels) for name, labels in labelled.iter_rows()}
    rows: Sequence[Any] = ()
    if keep_rows:
        rows = list(frame.iter_rows(named=True))
        if keep_rows is not True:
            rows = [keep_rows(row["example_id"], row) for row in rows]
    return read.Answers(records, [], metadata, part_labels, rows)


def _records_of_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of `RECORDS`; raises `InputError` where they are not as `read_answers` made them.

    A frame may have been changed since.
    """
    try:
        records = frame.select(*RECORDS).cast(SCHEMA)
    except pl.exceptions.PolarsError as error:
        raise _changed(str(error).splitlines()[0]) from error
    ids = records["example_id"]
    if ids.null_count() or ids.n_unique() < len(ids):
        raise _changed("example_id does not name each row by itself")
    correct = frame["correct"].drop_nulls()
    if correct.dtype.is_numeric() and not ((correct == 0) | (correct == 1)).all():
        raise _changed("correct holds another number than 0 and 1")
    for name in ("surprisal", "entropy"):
        values = records[name].explode().drop_nulls()
        if not (values.is_finite() & (values >= 0)).all():
            raise _changed(f"{name} holds a number that is not finite and at least 0")
    return records


def _changed(what: str) -> InputError:
    return InputError(
        f"the frame is not as read_answers returned it ({what}): read the answers again, or change "
        "the rows before they are read."
    )


def _labels_of_row(row: Mapping[str, Any]) -> PartLabels:
    verdicts, spans = row["correct"], row["wrong_spans"]
    correct = verdicts and {verdict["name"]: verdict["correct"] for verdict in verdicts}
    return PartLabels(correct, spans and [tuple(span) for span in spans])


def name_of(answers: read.Answers) -> str:
    """The name of the file of answers."""
    return Path(answers.source).name
