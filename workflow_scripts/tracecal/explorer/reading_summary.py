"""How a file of answers is read: what `tracecal reading FILE` prints.

1. `explain_reading("log.jsonl")` reads the rows, whatever is wrong with some of them.
2. Its `ReadingSummary` counts formats and what is missing, shows one answer as it was understood,
   and lists the fields that nothing reads; `str` is the text.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten, wrap
from typing import Any

import polars as pl

from tracecal.answers.answers import describe_no_answers, opened, with_failed_labels
from tracecal.answers.facts import (
    CONTEXTS,
    LABELS,
    OTHER_IDS,
    REFERENCES,
    SHOWN_QUESTIONS,
    TIMES,
    OneAnswer,
    find_question,
)
from tracecal.answers.formats.layout import STATED_IDS, Tree
from tracecal.answers.labels import read_labels, with_labels
from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.answers.record import Record
from tracecal.answers.row import as_frame
from tracecal.answers.tokens import Step, is_same_token
from tracecal.errors import InputError, Unanswered, WrongRow, describe_wrong_rows, some_of

WIDTH = 80  # of the text
SHOWN_TOKENS, SHOWN_ALTERNATIVES, SHOWN_FIELDS = 6, 3, 12
MOST_ROWS_OF_FIELDS = 1000  # rows to search for unread fields
# Fields of a row that are read whatever its format is.
ENVELOPE = {
    *(*STATED_IDS, *OTHER_IDS, *TIMES, *LABELS, *SHOWN_QUESTIONS, *CONTEXTS, *REFERENCES),
    *("labelled", "wrong_spans", "response", "request", "group_id", "task", "error", "filter"),
    *("distractors", "language", "part", "doc", "metadata", "generation_settings", "epoch"),
}
TOKEN_FIELDS = {"token", "logprob", "bytes", "id", "top_logprobs", "topLogprobs", "text_offset"}
# Parts of names of fields that may hold what is missed.
TELLING = ("prob", "top", "token", "entrop", "score", "correct", "label", "verdict", "logits")


@dataclass(frozen=True)
class ReadingSummary:
    """How the rows of a file are read.

    Attributes
    ----------
    formats : dict
        How many rows were read as each format; ``unknown`` are those of none.
    answers : polars.DataFrame
        The answers, as `read_answers` returns them.
    wrong_rows : list of str
        Why the other rows cannot be read, each with its place.
    unread : dict
        Fields that are there and that nothing reads, with how many of the rows have them.
    missing : list of str
        What the answers lack, and for what it is needed.
    """

    formats: Mapping[str, int]
    answers: pl.DataFrame = field(repr=False)
    wrong_rows: Sequence[str] = field(repr=False)
    unread: Mapping[str, int] = field(repr=False)
    missing: Sequence[str] = field(repr=False)
    source: str
    example: Sequence[tuple[str, str]] = field(default=(), repr=False)
    notes: Sequence[str] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """The summary for a terminal."""
        counts = ", ".join(f"{count:,} as {name}" for name, count in self.formats.items())
        lines = [f"{self.source}: {self.answers.height:,} answers; rows read: {counts or 'none'}."]
        if self.wrong_rows:
            lines.append(f"Not read: {describe_wrong_rows(self.wrong_rows)}.")
        lines += self.notes
        if self.example:
            lines += ["", "One answer as it was understood:"]
            lines += [f"  {name:<10}{text}" for name, text in self.example]
        if self.answers.height:
            lines += ["", "Missing:" if self.missing else "Nothing is missing."]
            lines += [f"- {sentence}" for sentence in self.missing]
        if self.unread:
            # First those that may hold what is missed.
            names = sorted(
                self.unread, key=lambda name: not any(t in name.lower() for t in TELLING)
            )
            lines += ["", f"Fields that are not read: {some_of(names, SHOWN_FIELDS)}"]
        return "\n".join(_wrapped(lines))

    def __str__(self) -> str:
        return self.text


def explain_reading(answers: Any, *, reading: Reading | None = None) -> ReadingSummary:
    """Say how rows of answers are read, and what they lack.

    Parameters
    ----------
    answers : path or rows
        A file of any format of `read_answers`, or rows as such a file holds them.
    reading : Reading, optional
        How the answers are read.

    Returns
    -------
    ReadingSummary
        Its text is what ``tracecal reading`` prints.

    Raises
    ------
    InputError
        Where the file cannot be read, or holds no row.

    Examples
    --------
    >>> import tracecal
    >>> rows = [{"id": "sum", "answer": "5", "logprobs": [-0.25, -0.5], "top_probs": [0.1]}]
    >>> summary = tracecal.explain_reading(rows)
    >>> summary.formats, summary.unread
    ({'columns': 1}, {'top_probs': 1})
    """
    formats, unread = Counter[str](), Counter[str]()
    records, errors = list[Record](), list[str]()
    example, n_questions = list[tuple[str, str]](), 0
    with opened(answers, reading or USUAL_READING) as reader:
        reading, source = reader.reading, reader.source
        for number, (location, answer, record) in enumerate(reader):
            if isinstance(answer.row, dict) and not isinstance(answer.error, Unanswered):
                formats["unknown" if answer.format is None else answer.format.name] += 1
            if answer.format is not None and number < MOST_ROWS_OF_FIELDS:
                unread.update(_unread(answer, reading))
            if isinstance(record, WrongRow):
                errors.append(f"{location}: {record}")
                continue
            records.append(record)
            question = find_question(answer.row, record.prompt)["question"]
            n_questions += bool(question)
            if not example and record.no_answer is None and answer.format is not None:
                steps = answer.format.read(answer.body).steps
                example = [*_describe_record(record, question, steps, location)]
                example_place = len(records) - 1
    if not (records or errors):
        raise InputError(f"{source} holds no row.")
    frame, notes = as_frame(records), []
    if reader.requests is not None:
        notes.append(reader.requests.describe(frame.height))
    if reading.labels is not None:
        frame, matched = with_labels(frame, read_labels(reading.labels, reading), reader.first_rows)
        notes.append(matched)
    frame = with_failed_labels(frame, reading)
    if counts := describe_no_answers(frame):
        notes.append(f"{counts}.")
    if example:
        correct, is_unsure = frame.select("correct", "unsure").row(example_place)
        verdict = {True: "right", False: "wrong"}.get(correct, "none")
        example.append(("verdict", "unsure (counts as wrong)" if is_unsure else verdict))
    missing = [
        f"a value at {path} in any row (--columns {name}={path}): correct the path, or leave the "
        "column out."
        for name, path in reader.empty_paths.items()
    ]
    missing += _missing(frame, n_questions, reading) if frame.height else ()
    return ReadingSummary(
        dict(formats), frame, errors, dict(unread), missing, source, example, notes
    )


def _unread(answer: OneAnswer, reading: Reading) -> Iterator[str]:
    """The paths of fields with a value that nothing reads."""
    paths = [reading.id, reading.label, *reading.columns.values(), *reading.also.values()]
    stated = {path.split(".")[0] for path in paths if path} | ENVELOPE
    if answer.body is not answer.row:
        around = {name for name in answer.row if _is_there(answer.row[name])}
        yield from (name for name in answer.row if name in around - stated)
    if answer.format is not None and not reading.columns:
        for path in _unread_fields(answer.format.reads, answer.body):
            if path.split(".")[0].removesuffix("[]") not in stated:
                yield path


def _unread_fields(reads: Tree, value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of fields that are not among the names that are read, once per list."""
    for name, item in value.items():
        if not _is_there(item):
            continue
        if name not in reads:
            yield name
        elif reads[name]:
            marks = "[]" if isinstance(item, list) else ""
            objects = [each for each in (item if marks else [item]) if isinstance(each, dict)]
            paths = (path for each in objects for path in _unread_fields(reads[name], each))
            yield from (f"{name}{marks}.{path}" for path in dict.fromkeys(paths))
        else:
            yield from dict.fromkeys(_unread_of_tokens(item, name))


def _unread_of_tokens(value: Any, path: str) -> Iterator[str]:
    """The paths of what an object of a token holds besides what is read; of lists the first."""
    if isinstance(value, list):
        yield from _unread_of_tokens(next(filter(_is_there, value), None), f"{path}[]")
    elif isinstance(value, dict):
        is_token = "logprob" in value and "token" in value
        for name, item in value.items():
            if is_token and name not in TOKEN_FIELDS and _is_there(item):
                yield f"{path}.{name}"
            else:
                yield from _unread_of_tokens(item, f"{path}.{name}")


def _is_there(value: Any) -> bool:
    return value not in (None, "", [], {})


def _describe_record(
    record: Record, question: str, steps: Sequence[Step], location: str
) -> Iterator[tuple[str, str]]:
    """The names and values of an answer, a line each."""
    width = WIDTH - 14
    yield "id", f"{record.example_id} ({location})"
    yield "question", shorten(question, width, placeholder=" ...") if question else "none"
    answer = shorten(record.answer or "", width - 2, placeholder=" ...")
    yield "answer", f'"{answer}"' if record.answer is not None else "none"
    n_tokens = len(record.surprisal or record.tokens or record.token_ids or steps or ())
    stop = {"included": ", the last one is the stop token", "absent": ", without the stop token"}
    yield "tokens", f"{n_tokens}{stop.get(record.stop_token, '')}"
    for step in steps[:SHOWN_TOKENS]:
        yield "", _describe_step(step)
    processed = {"no": "raw", "yes": "changed by sampling settings"}
    unknown = "raw, or changed by sampling settings (not stated)"
    yield "numbers", f"probabilities are {processed.get(record.processed, unknown)}"
    yield "finish", record.finish_reason or "not stated"
    yield "model", record.model or "not stated"


def _describe_step(step: Step) -> str:
    """A token with its probability and the likeliest others."""
    alternatives = [
        (key, value)
        for key, value in step.top
        if value is not None and not is_same_token(key, step.key)
    ]
    alternatives = sorted(alternatives, key=lambda pair: -pair[1])[:SHOWN_ALTERNATIVES]
    texts = [f"{_token_text(key)} {math.exp(value):.2f}" for key, value in alternatives]
    proba = "no probability" if step.logprob is None else f"{math.exp(min(step.logprob, 0)):.2f}"
    text = "?" if step.text is None else repr(step.text)
    return f"{text} {proba}" + (f"; other tokens {', '.join(texts)}" if texts else "")


def _token_text(key: Any) -> str:
    if not isinstance(key, tuple):
        return str(key)
    token_id, spelling, text = key
    text = bytes(spelling).decode(errors="replace") if text is None and spelling else text
    return repr(text) if text else f"token {token_id}"


def _missing(answers: pl.DataFrame, n_questions: int, reading: Reading) -> Iterator[str]:
    """What answers lack, with how many, and for what it is needed."""
    n = answers.height

    def of(count: int) -> str:
        return "all answers" if count == n else f"{count:,} of {n:,} answers"

    def reasons(column: str, rows: pl.DataFrame) -> str:
        lacks = rows.filter(pl.col(column).is_null())["lacks"].drop_nulls()
        return some_of(lacks.unique().sort().to_list())

    answered = answers.filter(pl.col("no_answer").is_null())
    traced = answered.filter(pl.col("surprisal").is_not_null())
    if count := answered.height - traced.height:
        yield (
            f"log-probabilities of {of(count)} ({reasons('surprisal', answered)}): they get no "
            "probability; 'tracecal replay' computes them where the model is at hand."
        )
    if count := traced["entropy"].null_count():
        remedy = "" if reading.vocabulary else " (state --vocabulary)"
        yield (
            f"entropies of {of(count)} ({reasons('entropy', traced)}): they need the likeliest "
            f"tokens, such as top_logprobs{remedy}; a fit on log-probabilities alone is used."
        )
    if count := traced.filter(stop_token="unknown").height:
        yield f"whether {of(count)} include the stop token: state it with --stop-token."
    if count := traced.filter(processed="unknown").height:
        yield (
            f"whether temperature or penalties changed the probabilities of {of(count)}: state it "
            "with --processed, or give the requests with --requests."
        )
    if count := answers["model"].null_count():
        yield f"the model's name for {of(count)}: give it with --model."
    if count := n - n_questions:
        yield (
            f"the question of {of(count)}: pages show none, and equal questions go unnoticed; "
            "--requests reads the file that was sent as a batch."
        )
    if count := answers["correct"].null_count():
        yield (
            f"a verdict on {of(count)}: 'tracecal calibrate' needs at least 20 verdicts "
            f"({n - count:,} are there), by --labels, --label or a column 'correct'."
        )


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Lines of at most WIDTH characters; long ones go on below their text."""
    for line in lines:
        indent = len(line) - len(line.lstrip(" -"))
        yield from wrap(line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False) or [""]
