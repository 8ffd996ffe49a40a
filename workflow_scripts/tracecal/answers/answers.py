"""Answers of any source, read into one frame: a file, rows, or a frame.

1. `read_answers(source)` is the public function; `answers_in` gives `Answers`, with all that a
   source holds besides the frame.
2. `opened` reads each row into records (`row`), and says why rows are invalid.
3. A `Reading` says how to read paths and rows; a frame that `read_answers` returned needs none.

A path names a file in any format of docs/reference/formats.md, rows are the mappings that a file
holds, and a frame comes from Polars, pandas or any library with Arrow's C stream.
"""

import gc
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.facts import OneAnswer, PartLabels, example_id, without_values
from tracecal.answers.labels import MOST_ROWS, read_labels, with_labels
from tracecal.answers.log_file import numbered, open_rows, require_right_rows
from tracecal.answers.reading import OF_VERDICTS, USUAL_READING, Reading
from tracecal.answers.record import RECORDS, Record, own_column
from tracecal.answers.requests import Requests
from tracecal.answers.row import FAILED, answers_of, as_frame, read_records
from tracecal.answers.trace import warn_of_assumed
from tracecal.errors import InputError, WrongRow, WrongVerdict, describe_wrong_rows
from tracecal.io.input_files import MOST_BYTES, require_regular
from tracecal.io.log import LOGGER, reminder, silenced

Source = str | Path | pl.DataFrame | Iterable[Mapping[str, Any]] | Any
SCHEMA = pl.Schema(RECORDS)  # type: ignore[arg-type]
# What a file states about all its answers, and a frame in a column for each answer.
STATED = ("task", "revision")
# Options of reading that a frame takes which has been read.
OF_FRAMES = {"vocabulary", "also", *OF_VERDICTS, "wrong_rows"}
PART_LABELS = pl.Struct(
    {
        "correct": pl.List(pl.Struct({"name": pl.String, "correct": pl.Boolean})),
        "wrong_spans": pl.List(pl.List(pl.Int64)),
    }
)
THE_ROWS, THE_FRAME = "the rows", "the frame"  # sources of answers without a file
# True of all traces of the workflow.
TRACES_READING = {"stop_token": "included", "processed": "no"}
# What an answer that was not given does, and what several do.
NO_ANSWER_VERBS = {
    "refused": ("refuses", "refuse"),
    "called a tool": ("calls a tool", "call a tool"),
    "empty": ("is empty", "are empty"),
    "filtered": ("is filtered", "are filtered"),
    "cut while reasoning": ("is cut while reasoning", "are cut while reasoning"),
    FAILED: ("is of a failed request", "are of failed requests"),
}
_WITH_THREADS: dict[str, int] = {}  # the process that has started Polars' threads, once one has
MOST_RECENT = 50_000  # ids that are not sorted yet
MOST_FRAMES = 100  # before they are joined
MOST_HELD = 4  # frames of answers in memory, which are not read once more
CHUNK, FRAME = 100, 500  # answers that are read at once, and of a frame
# Whether to keep the row of each answer, or what to keep of an id and its row.
KeepRows = bool | Callable[[str, dict[str, Any]], Any]
Keep = Callable[["Answers"], pl.DataFrame]  # what to keep of some of the answers
VERDICTS = ("correct", "unsure", "asked_for")


@dataclass(frozen=True)
class Answers:
    """Answers, a row per record.

    Attributes
    ----------
    frame
        Columns of `RECORDS`.
    wrong_rows
        Why the other rows are invalid.
    metadata
        How the file was made, where it says so.
    part_labels
        Labels of parts of answers, by the id of the answer.
    rows
        The row of each record, where it was kept.
    source
        The file, for messages.
    first_rows
        The first rows of the source, where labels are joined to them.
    """

    frame: pl.DataFrame
    wrong_rows: list[str]
    metadata: dict[str, str]
    part_labels: dict[str, PartLabels] = field(default_factory=dict)
    rows: Sequence[Any] = ()
    source: str = THE_FRAME
    first_rows: Sequence[Any] = ()


def read_answers(answers: Source, *, reading: Reading | None = None) -> pl.DataFrame:
    """Read answers with their traces from a file of any format, from rows, or from a frame.

    Parameters
    ----------
    answers : path, frame or rows
        JSON Lines, JSON, CSV, Arrow, Parquet, or an Inspect log; see above.
    reading : Reading, optional
        How to read the answers, such as the ``vocabulary``'s size, which entropies from top-k
        need, or the ``label``.

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
    return frame_of(answers_in(answers, reading))


def frame_of(answers: Answers) -> pl.DataFrame:
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
    answers: Source,
    reading: Reading | None = None,
    keep_rows: KeepRows = False,
    keep: Keep | None = None,
    chosen: Collection[str] | None = None,
) -> Answers:
    """Read answers from their source; `Answers` are returned unchanged.

    `chosen` are the ids of those to read; None: all. Of answers `keep` may keep other columns than
    RECORDS beside `facts_of`: it takes some at a time, so that a long file need not be in memory.

    A frame of `read_answers` takes three options only: a vocabulary, which does not change it,
    labels, and own columns, which are columns of the frame or were read with it.
    """
    require_threads()
    if isinstance(answers, Answers):
        return answers if keep is None else _kept(answers, keep)
    settings = reading or USUAL_READING
    frame = None if isinstance(answers, str | Path) else _polars_frame(answers)
    if frame is None or not (frame.columns and RECORDS.keys() <= {*frame.columns}):
        rows = answers if frame is None else frame.iter_rows(named=True)
        source = THE_ROWS if frame is None else THE_FRAME
        with opened(rows, settings, source=source, chosen=chosen) as reader:
            result = _read(reader, keep_rows, keep)
    else:
        if changed := settings.changed({*Reading.model_fields} - OF_FRAMES):
            raise InputError(
                f"the frame has been read already, so {', '.join(changed)} would do nothing: give "
                "options of reading to read_answers."
            )
        frame = frame if chosen is None else frame.filter(pl.col("example_id").is_in([*chosen]))
        result = _answers_of_frame(_with_own_columns(frame, settings.also), keep_rows)
        result = result if keep is None else _kept(result, keep)
    if result.wrong_rows:
        LOGGER.warning(
            "%s: left out %s; 'tracecal reading %s' shows how rows are read",
            *(result.source, describe_wrong_rows(result.wrong_rows), result.source),
        )
    result = result if settings.labels is None else _labelled(result, settings)
    if counts := describe_no_answers(result.frame):
        LOGGER.warning("%s: %s", result.source, counts)
    return result


def _kept(answers: Answers, keep: Keep) -> Answers:
    """Keep of answers in memory what `keep` keeps of some at a time."""
    some = (
        replace(answers, frame=answers.frame[n : n + FRAME], rows=answers.rows[n : n + FRAME])
        for n in range(0, max(answers.frame.height, 1), FRAME)
    )
    return replace(answers, frame=pl.concat(map(keep, some)), rows=())


def facts_of(answers: pl.DataFrame) -> pl.DataFrame:
    """What reading takes of answers (columns of `RECORDS`) when all are read: a few bytes each."""
    few = pl.col("model", "no_answer").cast(pl.Categorical)
    return answers.select("example_id", *VERDICTS, "vocabulary", few)


def read_chosen(
    answers: Source,
    reading: Reading | None,
    choose: Callable[[Answers], Sequence[str]],
    keys: Callable[[pl.DataFrame], Sequence[pl.Series]],
    keep_rows: KeepRows = True,
) -> tuple[Answers, int]:
    """Read the answers whose ids `choose` gives, in this order, and count all.

    It chooses by `facts_of` all answers and their `keys`. A long source is read once more for the
    chosen ones. Raises `InputError` where one is no longer there.
    """
    answers = [*answers] if isinstance(answers, Iterator) else answers
    held: list[Answers] | None = []  # all answers, while they are few

    def keep(some: Answers) -> pl.DataFrame:
        nonlocal held
        held = None if held is None or len(held) == MOST_HELD else [*held, some]
        return facts_of(some.frame).hstack([*keys(some.frame)])

    every = answers_in(answers, reading, keep_rows, keep)
    ids = choose(every)
    if held is None:
        settings = (reading or USUAL_READING).model_copy(update={"labels": None})
        with silenced():
            held = [answers_in(answers, settings, keep_rows, chosen={*ids})]
    frame, rows = pl.concat(some.frame for some in held), [*chain(*(some.rows for some in held))]
    places = {name: place for place, name in enumerate(frame["example_id"])}
    if missing := [name for name in ids if name not in places]:
        raise InputError(f"{every.source} has changed while it was read: {missing[0]!r} has left.")
    order = [places[name] for name in ids]
    verdicts = pl.DataFrame({"example_id": ids}).join(
        every.frame.select("example_id", *VERDICTS), on="example_id", maintain_order="left"
    )
    frame = frame[order].with_columns(verdicts)
    rows = [rows[place] for place in order] if rows else []
    return replace(every, frame=frame, rows=rows), every.frame.height


def require_threads() -> None:
    """Raise `InputError` in a process forked from one that called this, without Polars' threads."""
    if _WITH_THREADS.setdefault("process", os.getpid()) != os.getpid():
        raise InputError(
            "this process was forked from one that has read or scored answers, and lacks the "
            "threads that this needs: start processes by 'spawn', as in "
            "multiprocessing.get_context('spawn')."
        )


def _labelled(answers: Answers, reading: Reading) -> Answers:
    """Replace the verdicts by those in the file that `labels` names."""
    labels = read_labels(reading.labels, reading)
    frame, matched = with_labels(answers.frame, labels, answers.first_rows)
    LOGGER.info("%s", matched)
    return replace(answers, frame=with_failed_labels(frame, reading))


def with_failed_labels(answers: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Answers (columns of `RECORDS`) with a verdict on those that were not given and have none.

    They are incorrect where `reading` counts them so, and stay unlabelled otherwise.
    """
    if reading.failed != "incorrect":
        return answers
    is_incorrect = pl.col("correct").is_null() & pl.col("no_answer").is_not_null()
    return answers.with_columns(correct=pl.col("correct") & ~is_incorrect)


def describe_no_answers(answers: pl.DataFrame) -> str | None:
    """How many answers (columns of `RECORDS`) were not given, and why; None where all were.

    >>> describe_no_answers(as_frame([Record("a", no_answer="refused"), Record("b")]))
    '2 answers: 1 refuses'
    """
    missing = answers.drop_nulls("no_answer")
    if missing.is_empty():
        return None
    counts = Counter(missing["no_answer"]).most_common()
    kinds = ", ".join(f"{n:,} {NO_ANSWER_VERBS[why][n > 1]}" for why, n in counts)
    n_unlabelled = missing["correct"].null_count()
    unlabelled = ""
    if n_unlabelled and answers["correct"].count():
        unlabelled = (
            f"; {n_unlabelled:,} of these have no verdict (--failed incorrect: all are wrong)"
        )
    answers_text = "1 answer" if answers.height == 1 else f"{answers.height:,} answers"
    return f"{answers_text}: {kinds}{unlabelled}"


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


def _answers_of_frame(frame: pl.DataFrame, keep_rows: KeepRows) -> Answers:
    """The answers of a frame of `read_answers`, which may have further columns."""
    records = _records_of_frame(frame)
    metadata = {}
    for name in {*STATED} & {*frame.columns}:
        values = frame[name].drop_nulls().unique().sort().to_list()
        if len(values) > 1:
            raise InputError(
                f"the answers differ in {name} ({', '.join(map(str, values))}): "
                "give answers that agree in it."
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
    return Answers(records, [], metadata, part_labels, rows)


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
        raise _changed("a row has no example_id, or two have the same")
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


def read_file(
    path: str | Path, reading: Reading | None = None, ids: Collection[str] | None = None
) -> Answers:
    """Read the answers of a file; a row is identified by its id, never by its position.

    `ids` are the valid ids; None: any. Raises `InputError` where no answer is usable, or a row is
    invalid and `reading` does not skip it.
    """
    with opened(path, reading or USUAL_READING, ids) as reader:
        return _read(reader)


@contextmanager
def opened(
    answers: str | Path | Iterable[Any],
    reading: Reading,
    ids: Collection[str] | None = None,
    source: str = THE_ROWS,
    chosen: Collection[str] | None = None,
) -> Iterator["RowReader"]:
    """Open the rows of a file, or rows, to read them. Raises `InputError`."""
    metadata, action = dict[str, str](), "Reading"
    if isinstance(answers, str | Path):
        path = Path(answers)
        require_regular(path, MOST_BYTES)
        rows, metadata = open_rows(path)
        source, action = str(path), f"Reading {path.name}"
    else:
        rows = numbered(answers)
    reader = RowReader(rows, metadata, source, reading, ids, chosen)
    with reminder(lambda: f"{action}: {reader.n_rows:,} rows so far"):
        yield reader


def _read(reader: "RowReader", keep_rows: KeepRows = False, keep: Keep | None = None) -> Answers:
    reading, source = reader.reading, reader.source
    frames = _Frames(reader, keep)
    wrong_rows: list[str] = []
    wrong_verdicts: list[str] = []  # for which no row is skipped
    has_label = False
    failed_rows: list[str] = []
    for location, answer, record in reader:
        if isinstance(record, WrongRow):
            wrong_rows.append(f"{location}: {record}")
            if isinstance(record, WrongVerdict):
                wrong_verdicts.append(f"{location}: {record}")
            continue
        if record.no_answer == FAILED and reading.failed in ("stop", "skip"):
            failed_rows.append(f"{location}: {FAILED}")
            continue
        if keep_rows:
            row = answer.row
            frames.rows.append(row if keep_rows is True else keep_rows(record.example_id, row))
        frames.add(record)
        has_label = has_label or answer.has_verdict_at(reading.label)
    require_right_rows(source, wrong_rows, wrong_verdicts, reading.wrong_rows == "skip")
    if failed_rows and reading.failed == "stop":
        raise InputError(
            f"{source}: {describe_wrong_rows(failed_rows)}. Ask again, or count them as unlabelled "
            "or incorrect, or leave them out (--failed unlabelled, incorrect or skip)."
        )
    if reader.empty_paths:
        name, path = next(iter(reader.empty_paths.items()))
        raise InputError(
            f"{source}: no row has a value at {path} (--columns {name}={path}): correct the path, "
            "or leave the column out."
        )
    wrong_rows += failed_rows
    frame = frames.joined()
    if frame.is_empty():
        raise InputError(f"{source} holds no usable answer. {describe_wrong_rows(wrong_rows)}")
    if reading.label is not None and not has_label:
        LOGGER.warning("%s: no row has a verdict at --label %s", source, reading.label)
    if reader.requests is not None:
        LOGGER.info("%s", reader.requests.describe(frame.height))
    warn_of_assumed(frame, reading.vocabulary, source)
    held = reader.part_labels, frames.rows, source, reader.first_rows
    return Answers(frame, wrong_rows, reader.metadata, *held)


class _Frames:
    """Frames of the answers of a file, some at a time, and what `keep` keeps of each."""

    def __init__(self, reader: "RowReader", keep: Keep | None = None) -> None:
        self._reader, self._keep = reader, keep
        self.rows: list[Any] = []
        self._records: list[Record] = []
        self._frames: list[pl.DataFrame] = []
        self._long: list[pl.DataFrame] = []

    def add(self, record: Record) -> None:
        self._records.append(record)
        if len(self._records) == FRAME:
            self._add_frame()

    def joined(self) -> pl.DataFrame:
        """What is kept of all answers."""
        self._add_frame()
        return pl.concat([*self._long, *self._frames], rechunk=self._keep is None)

    def _add_frame(self) -> None:
        frame = with_failed_labels(as_frame(self._records), self._reader.reading)
        self._records.clear()
        if self._keep is not None:
            metadata, source = self._reader.metadata, self._reader.source
            frame = self._keep(Answers(frame, [], metadata, {}, self.rows, source))
            self.rows = []
        self._frames.append(frame)
        if len(self._frames) >= MOST_FRAMES:  # of which each takes memory beside its content
            self._long.append(pl.concat(self._frames, rechunk=True))
            self._frames.clear()


class _Ids:
    """Ids of a file that were read, by hashes of eight bytes."""

    def __init__(self) -> None:
        self._sorted = np.empty(0, dtype=np.int64)
        self._recent = set[int]()

    def __contains__(self, name: str) -> bool:
        number = hash(name)
        place = self._sorted.searchsorted(number)
        is_sorted = place < len(self._sorted) and self._sorted[place] == number
        return bool(is_sorted) or number in self._recent

    def add(self, name: str) -> None:
        self._recent.add(hash(name))
        if len(self._recent) == MOST_RECENT:
            recent = np.fromiter(self._recent, dtype=np.int64)
            self._sorted = np.union1d(self._sorted, recent)
            self._recent.clear()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collection of garbage, which walks all objects of a chunk again and again."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


class RowReader:
    """Reads located rows into records, whatever is wrong with some of them.

    It yields the answers of the rows, each with its place and its record, or why there is none. A
    row that only adds labels of parts is not yielded.

    Attributes
    ----------
    reading
        How rows are read, completed by the metadata of the workflow's traces.
    requests
        Those of a batch, where `reading` names them.
    first_rows
        The first rows, where labels are joined to them.
    part_labels
        Labels of parts of answers, by the id of the answer.
    empty_paths
        Named columns, with their paths, that have had no value so far.
    n_rows
        How many rows have been read so far.
    """

    def __init__(
        self,
        rows: Iterable[tuple[str, Any]],
        metadata: dict[str, str],
        source: str,
        reading: Reading,
        ids: Collection[str] | None = None,
        chosen: Collection[str] | None = None,
    ) -> None:
        """`ids` are the valid ids, and `chosen` those of the answers to read; None: any."""
        self.metadata, self.source, self._valid_ids = metadata, source, ids
        self._is_run = "schema_version" in metadata
        if self._is_run:
            reading = _traces_reading(reading, metadata)
        if ids is not None:  # examples of a task have one answer each
            reading = reading.model_copy(update={"choices": "first"})
        self.reading = reading
        self.requests = None if reading.requests is None else Requests.read(reading.requests)
        if self.requests is not None:
            rows = self.requests.added_to(iter(rows))
        self.first_rows: list[Any] = []
        self._rows, self._chosen = rows, chosen
        self._read_ids, self.n_rows = _Ids(), 0
        self.part_labels: dict[str, PartLabels] = {}
        self.empty_paths = dict(reading.columns) if chosen is None else {}

    def __iter__(self) -> Iterator[tuple[str, OneAnswer, Record | WrongRow]]:
        located = self._located()
        while True:
            with _uncollected():
                chunk = [*islice(located, CHUNK)]
                records = read_records([answer for _, answer in chunk], self.reading)
            if not chunk:
                return
            for (location, answer), record in zip(chunk, records, strict=True):
                self.empty_paths = without_values(self.empty_paths, answer.row)
                outcome = record if isinstance(record, WrongRow) else self._accepted(record, answer)
                if outcome is not None:
                    yield location, answer, outcome

    def _located(self) -> Iterator[tuple[str, OneAnswer]]:
        """The answers of the rows with their places, but for those of another filter."""
        reading, n_split, n_answers = self.reading, 0, 0
        for location, row in self._rows:
            self.n_rows += 1
            if reading.labels is not None and len(self.first_rows) < MOST_ROWS:
                self.first_rows.append(row)
            answers = answers_of(row, reading)
            if answers[0].n_choices > 1:
                n_split, n_answers = n_split + 1, n_answers + answers[0].n_choices
            for answer in answers:
                fields = answer.row if isinstance(answer.row, dict) else {}
                is_read = reading.filter in (None, fields.get("filter", reading.filter))
                if is_read and self._is_chosen(answer):
                    yield location, answer
        if n_split and reading.choices == "first":
            LOGGER.warning(
                "%s: the first of several choices is read in %d rows", self.source, n_split
            )
        elif n_split:
            LOGGER.info(
                "%s: %d rows hold %d answers; those of a row count as one question",
                *(self.source, n_split, n_answers),
            )

    def _is_chosen(self, answer: OneAnswer) -> bool:
        if self._chosen is None or isinstance(answer.error, WrongRow):
            return self._chosen is None
        try:
            return example_id(answer.row, answer.body, self.reading) in self._chosen
        except WrongRow:
            return False

    def _accepted(self, record: Record, answer: OneAnswer) -> Record | WrongRow | None:
        """A record with its own id, or what is wrong; None where it only adds labels of parts."""
        name, labels = record.example_id, answer.part_labels
        earlier = self.part_labels.get(name)
        try:
            merged = earlier.merge(labels) if labels and earlier else None
        except WrongRow as error:
            return error
        if merged:
            self.part_labels[name] = merged
            return None
        if name in self._read_ids:
            has_filter = "filter" in answer.row
            hint = ", under another filter: name one as 'filter'" if has_filter else ""
            return WrongRow(f"duplicate id {name!r}{hint}")
        if self._valid_ids is not None and name not in self._valid_ids:
            return WrongRow(f"no example of the task has the id {name!r}")
        self._read_ids.add(name)
        if labels is not None:
            self.part_labels[name] = labels
        reasoning: Any = self.metadata.get("reasoning", "none")
        return replace(record, reasoning=reasoning) if self._is_run else record


def _traces_reading(reading: Reading, metadata: dict[str, str]) -> Reading:
    """Complete reading options by the metadata of the workflow's traces."""
    # The workflow separated the tokens of reasoning when it made the traces, or never.
    update = {
        key: value for key, value in TRACES_READING.items() if getattr(reading, key) == "auto"
    }
    model = reading.model or metadata.get("model")
    return reading.model_copy(update=update | {"reasoning": "within", "model": model})
