"""Facts of an answer beside its trace: id, verdict, task, time, question, request, own columns.

1. `with_facts` adds them to `OneAnswer` of a row. `example_id`, `task_name`, `created` and `asked`
   find one each in a row and its answer.
2. `verdicts` gives what a row says of its answer, which must agree. `split_part_labels` takes the
   verdicts or wrong spans of an answer's parts out of its row.
3. `request_settings` finds those of the request, `stated_decoding` which change probabilities.
4. `find_question` finds the question as people read it, with its passage and references.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from pydantic.alias_generators import to_camel

from tracecal.answers.formats.layout import STATED_IDS, Layout, Row, value_below
from tracecal.answers.raw_answer import Known, RawAnswer
from tracecal.answers.reading import Reading
from tracecal.answers.tokens import PREFIX, Step, option_share, options_path
from tracecal.answers.verdict import WORDS, agreed_verdict, alone, is_unsure, parse_verdict
from tracecal.errors import Unanswered, WrongRow, WrongVerdict

LABELS = ("correct", "label")
INDICES = frozenset(map(str, range(1000)))  # of lists, in a path
LARGEST_EXACT = 2.0**53  # from here on, neighbouring whole numbers are one float
# A row's own columns of the question; rows of benchmarks have its text in another.
QUESTIONS = ("messages", "prompt", "question", "query", "instruction", "context", "passage")
# Where rows of any file keep a question that people read, its passage, and right answers to it.
SHOWN_QUESTIONS = ("question", "input", "query", "instruction", "prompt", "messages")
CONTEXTS = ("context", "passage")
REFERENCES = ("references", "reference", "target", "answers", "gold", "solution", "solutions")
TASKS = ("task", "task_name")
# Ids that programs give: Every Eval Ever, LiteLLM and vLLM, dspy, Gemini.
OTHER_IDS = ("sample_id", "request_id", "uuid", "key", "responseId", "response_id")
TIMES = ("created", "created_at", "completed_at", "timestamp", "startTime")
CENTURY = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class PartLabels(NamedTuple):
    """Labels of the parts of an answer; None where its row has none of the kind.

    Attributes
    ----------
    correct
        Verdicts, by the name of the part.
    wrong_spans
        Characters [start, end) of the answer that are wrong; a part that overlaps any is wrong.
    single
        Whether the row is a line of `tracecal label` on one part; the other parts of its answer
        have lines of their own.
    """

    correct: Mapping[str, bool] | None = None
    wrong_spans: list[tuple[int, int]] | None = None
    single: bool = False

    def merge(self, labels: "PartLabels") -> "PartLabels | None":
        """Both labels of one answer together; None unless each is of a single part."""
        if not (self.single and labels.single):
            return None
        return self._replace(correct={**(self.correct or {}), **(labels.correct or {})})


@dataclass(frozen=True)
class OneAnswer:
    """One answer of a row.

    Attributes
    ----------
    row
        The row, with this answer alone, an id of its own, and no labels of parts.
    body
        The unwrapped answer.
    format
        The format of `body`; None where there is an `error` instead.
    part_labels
        Labels of the answer's parts, which the row states.
    n_choices
        How many answers the row holds, also where only the first is read.
    error
        Why the row cannot be read, or holds no answer.
    """

    row: Any
    body: Row
    format: Layout | None = None
    part_labels: PartLabels | None = None
    n_choices: int = 1
    error: WrongRow | Unanswered | None = None

    def has_verdict_at(self, path: str | None) -> bool:
        """Whether the row or the answer has a verdict at a path."""
        sources = () if path is None else (self.row, self.body)
        return any(value_at(source, path) not in (None, "") for source in sources)


def with_facts(raw: RawAnswer, answer: OneAnswer, reading: Reading) -> RawAnswer:
    """What a format reads of an answer, with the facts that its row states. Raises `WrongRow`."""
    row, body = answer.row, answer.body
    settings = request_settings(row, body)
    listed = verdicts(row, body, reading, raw)
    values = {name: value for name, value in listed.items() if value is not None}
    stated: dict[str, Any] = {
        "correct": agreed_verdict(reading, **values) if values else None,
        "unsure": any(map(is_unsure, values.values())),
        "asked_for": is_asked_for(row) or None,
        "row_task": task_name(row, body),
        "created": created(row, body),
        "is_greedy": settings.get("temperature") == 0,
    }
    if raw.processed == "unknown" and reading.processed == "auto":
        decoding = stated_decoding(settings)
        processed: Known = "no" if decoding == "" else "unknown"
        stated |= {"decoding": decoding, "processed": processed}
    if not raw.model and isinstance(row.get("model"), str):
        stated["model"] = row["model"]
    if answer.format is not None and answer.format.name == "inspect":
        stated["asked"] = asked(body.get("input"))  # its messages end with the answer
    else:
        sent = next((settings[name] for name in SENT if settings.get(name)), None)
        stated["asked"] = asked(sent, raw.prompt, row)
    if reading.group is not None:
        stated["group_id"] = stated_group(row, reading.group)
    elif isinstance(row.get("group_id"), str | int):
        stated["group_id"] = str(row["group_id"])
    if paths := reading.also | options_path(reading.options):
        stated["also"] = own_columns(row, body, paths, raw.steps)
    return replace(raw, **stated)


def without_part_labels(answer: OneAnswer) -> OneAnswer:
    """An answer whose labels of parts stand apart from its row."""
    try:
        row, labels = split_part_labels(answer.row)
    except WrongRow as error:
        return replace(answer, error=error)
    if labels is None:
        return answer
    body = row if answer.body is answer.row else answer.body
    return replace(answer, row=row, body=body, part_labels=labels)


def split_part_labels(row: Any) -> tuple[Any, PartLabels | None]:
    """A row without its labels of parts, and the labels; None where it has none.

    Raises `WrongVerdict` where they are not verdicts or spans.

    >>> row, labels = split_part_labels({"id": "q", "correct": {"capital": 1, "currency": "I"}})
    >>> row, labels.correct
    ({'id': 'q'}, {'capital': True, 'currency': False})
    """
    if not isinstance(row, dict):
        return row, None
    values, spans, labelled = row.get("correct"), row.get("wrong_spans"), row.get("labelled")
    if single := isinstance(labelled, dict) and isinstance(labelled.get("part"), str):
        row = {name: row[name] for name in row if name != "labelled"}
        verdict = labelled.get("correct")
        values, spans = {labelled["part"]: "unsure" if verdict is None else verdict}, None
    correct = None
    if isinstance(values, dict):
        verdicts = {str(name): parse_verdict(value) for name, value in values.items()}
        correct = {name: value for name, value in verdicts.items() if value is not None}
    if spans is not None:
        spans = _parse_spans(spans)
    if correct is None and spans is None:
        return row, None
    removed = {"wrong_spans", *(["correct"] if correct is not None else [])}
    labels = PartLabels(correct, spans, single)
    return {name: row[name] for name in row if name not in removed}, labels


def _parse_spans(spans: Any) -> list[tuple[int, int]]:
    pairs = spans if isinstance(spans, list) else [None]
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        if not is_pair or not all(type(end) is int for end in pair) or not 0 <= pair[0] < pair[1]:
            raise WrongVerdict(
                f"its wrong_spans {spans!r} are not a list of pairs [start, end) of characters"
            )
    return [(start, end) for start, end in pairs]


def example_id(row: Row, body: Row, reading: Reading) -> str:
    """The id of an answer: at the path `reading.id`, else under a name of ids."""
    if reading.id is not None:
        value = value_at(row, reading.id)
    else:
        values = (
            source.get(name)
            for names in (STATED_IDS, OTHER_IDS)
            for source in (row, body)
            for name in names
        )
        value = next((value for value in values if value not in ("", None)), None)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        value = None if math.isnan(value) else whole_id(value)
    if value in ("", None):
        raise WrongRow(_describe_missing_id(row, reading))
    if not isinstance(value, str | int):
        raise WrongRow(f"its id is a {type(value).__name__}; give a text or a whole number")
    epoch = body.get("epoch")
    return str(value) if epoch in (None, 1) else f"{value}#epoch-{epoch}"


def whole_id(value: float) -> int:
    """An id that a table or JSON holds as a float. Raises `WrongRow` unless it is exact.

    >>> whole_id(3.0)
    3
    """
    if not value.is_integer():
        raise WrongRow(f"its id is {value:g}, a number with a fraction; give a text or a whole one")
    if abs(value) >= LARGEST_EXACT:
        raise WrongRow(
            f"its id is the float {value!r}, which may stand for several whole numbers; give a text"
        )
    return int(value)


def _describe_missing_id(row: Row, reading: Reading) -> str:
    if reading.id is not None:
        return f"it has no id at {reading.id}"
    names = [name for name, value in row.items() if name.lower().endswith("id") and value]
    hint = f"--id {names[0]}" if names else "--id PATH"
    return f"it has no id; add one as {', '.join(STATED_IDS)}, or name its field, as in {hint}"


def stated_group(row: Row, path: str) -> str:
    """What an answer shares with others that count as one question, at a path of its row."""
    value = value_at(row, path)
    if not isinstance(value, str | int) or value == "":
        raise WrongRow(f"it has no text or whole number at {path} (--group)")
    return str(value)


def task_name(row: Row, body: Row) -> str | None:
    """The task that a row, its answer or its metadata names."""
    sources = (source for source in (row, body, row.get("metadata")) if isinstance(source, dict))
    names = (source.get(name) for source in sources for name in TASKS)
    return next((name for name in names if isinstance(name, str) and name), None)


def created(row: Row, body: Row) -> float | None:
    """Return the first time that an answer or its row states, in seconds since 1970."""
    for source in (body, row):
        for name in TIMES:
            if name in source and (moment := parse_moment(source[name])) is not None:
                return moment
    return None


def asked(sent: Any, prompt: str | None = None, row: Row | None = None) -> str | None:
    """Compute a digest of what was sent, and of the row's own questions that it does not hold.

    None where nothing is known, or where the record's `prompt` is all.
    """
    questions = {name: _without_reply(row[name]) for name in QUESTIONS if row and row.get(name)}
    sent = prompt or sent or questions.get("messages") or questions.get("prompt")
    text = _canonical(sent) if sent else ""
    further = [each for each in map(_canonical, questions.values()) if each[1:-1] not in text]
    if not further and (prompt or not sent):
        return None
    content = "\0".join([text, *further])
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def _without_reply(question: Any) -> Any:
    """Leave out the replies that end a list of messages: they are answers."""
    if not isinstance(question, list):
        return question
    n = len(question)
    while n and isinstance(question[n - 1], dict) and question[n - 1].get("role") == "assistant":
        n -= 1
    return question[:n] or question


def _canonical(value: Any) -> str:
    return json.dumps(_without_blanks(value), ensure_ascii=True, sort_keys=True, default=str)


def without_blanks(text: str) -> str:
    """A text without blanks at its ends and before the ends of its lines."""
    return "\n".join(map(str.rstrip, text.strip().split("\n")))


def _without_blanks(value: Any) -> Any:
    """Texts without blanks at their ends and before the ends of their lines, at any depth."""
    if isinstance(value, str):
        return without_blanks(value)
    if isinstance(value, dict):
        return {name: _without_blanks(each) for name, each in value.items()}
    return [_without_blanks(each) for each in value] if isinstance(value, list) else value


def find_question(row: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    """The question of a row, with its language, context, references and distractors.

    Where no field holds it, it is the last message of the user that was sent, or the prompt, else
    an empty text. The question of a part ends with the part's name. References are empty where
    there are none.
    """
    responses = value_below(row, ["response", "body"]), row.get("response")
    objects = [row, *filter(_is_object, (*responses, row.get("doc"), row.get("metadata")))]
    request = value_below(row, ["request", "body"]) or row.get("request")
    questions = _values([*objects, *filter(_is_object, [request])], SHOWN_QUESTIONS)
    question = next(filter(None, map(_words, questions)), None) or prompt or ""
    if _is_text(row.get("part")):
        question += f"\nPart: {row['part']}"
    inputs = filter(_is_object, [row.get("input")])
    references, distractors = (
        next(filter(None, map(_texts, _values([*objects, *inputs], names))), [])
        for names in (REFERENCES, ["distractors"])
    )
    return {
        "language": next(filter(_is_text, _values(objects, ["language"])), None),
        "question": question,
        "context": next(filter(_is_text, _values(objects, CONTEXTS)), None),
        "references": references,
        "distractors": distractors,
    }


def question_fields(_: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row in which `find_question` finds the same as in the row."""
    question = find_question({name: row[name] for name in row if name != "part"}, None)
    return question | {"part": row["part"] if isinstance(row.get("part"), str) else None}


def _values(objects: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[Any]:
    return [each[name] for each in objects for name in names if each.get(name) is not None]


def _words(value: Any) -> str | None:
    """A text, the raw text of an input, or the text of the user's last message in a list."""
    if isinstance(value, str):
        return value
    if _is_object(value):  # as Every Eval Ever has it
        return value["raw"] if _is_text(value.get("raw")) else None
    for message in reversed(value) if isinstance(value, list) else ():
        if _is_object(message) and message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list) else [content]
            texts = [part.get("text") if _is_object(part) else part for part in parts]
            return "\n".join(filter(_is_text, texts)) or None
    return None


def _texts(value: Any) -> list[str]:
    """The texts of a reference, or of a list of references; numbers as they are written."""
    values = value if isinstance(value, list) else [value]
    return [str(text) for text in values if isinstance(text, str | int | float)]


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def is_asked_for(row: Row) -> bool:
    """Whether 'tracecal label --error-rate' asked for the verdict of a row."""
    labelled = row.get("labelled")
    return isinstance(labelled, Mapping) and labelled.get("asked_for") is True


def verdicts(row: Row, body: Row, reading: Reading, raw: RawAnswer) -> dict[str, Any]:
    """Return the raw verdicts of the first of these sources in a row; they must agree.

    1. The verdict of `tracecal label`, which may be unsure.
    2. With `label`, the verdict at that path alone.
    3. Without `label`, the format's verdicts, and the columns `LABELS` of the row and the answer.
    """
    if isinstance(labelled := row.get("labelled"), dict):
        verdict = labelled.get("correct")
        return {"labelled": "unsure" if "correct" in labelled and verdict is None else verdict}
    of_format = {"answer": raw.correct, **raw.stated}
    if reading.label is not None:
        sources = {"row": row, "answer": body}
        stated = {name: value_at(source, reading.label) for name, source in sources.items()}
        return {name: alone(value) for name, value in stated.items() if value is not None}
    if raw.verdicts:
        of_format |= _harness_verdict(raw.verdicts)
    # Columns that are named, and a harness's own metrics, are not second-guessed.
    if reading.columns and not names_response(row, reading):
        names: tuple[str, ...] = ("correct",)
    else:
        names = () if "metrics" in body else LABELS
    in_row = {name: row.get(name) for name in names}
    in_body = {f"response.{name}": body.get(name) for name in names if body is not row}
    stated = of_format | in_row | in_body
    return {name: alone(value) for name, value in stated.items() if value is not None}


def _harness_verdict(verdicts: Mapping[str, Any]) -> dict[str, Any]:
    if len(verdicts) > 1:
        raise WrongVerdict(f"it has several verdicts ({', '.join(verdicts)}); name one as 'label'")
    return dict(verdicts)


def own_columns(
    row: Row, body: Row, paths: Mapping[str, str], steps: Sequence[Step]
) -> list[dict[str, Any]]:
    """Read the user's own columns: numbers, and verdicts as 1 and 0; None if missing."""
    columns = []
    for name, path in paths.items():
        value = option_share(steps, path) if path.startswith(PREFIX) else value_at(row, path)
        value = value_at(body, path) if value is None else value
        try:
            number = None if value in (None, "") else _own_number(value)
        except (TypeError, ValueError) as error:
            raise WrongRow(f"{path} holds {value!r}, neither a number nor a verdict") from error
        columns.append({"name": name, "path": path, "value": number})
    return columns


def _own_number(value: Any) -> float | None:
    """A finite number, or a verdict's; None for NaN. Raises `TypeError` or `ValueError`."""
    word = value.strip().casefold() if isinstance(value, str) else None
    number = float(WORDS.get(word, value) if word else value)
    if math.isinf(number):
        raise ValueError
    return None if math.isnan(number) else number


def parse_moment(value: Any) -> float | None:
    """Parse a time, a number or ISO 8601 (UTC without an offset), to seconds since 1970.

    None for anything else, and for times outside this century: placeholders and durations.

    >>> parse_moment("2026-03-01T12:00:00Z"), parse_moment(0)
    (1772366400.0, None)
    """
    try:
        if isinstance(value, datetime | str) and not str(value).replace(".", "").isdecimal():
            moment = datetime.fromisoformat(str(value))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if CENTURY[0].timestamp() <= seconds < CENTURY[1].timestamp() else None


# The settings of a request that can change probabilities, and the values at which they do not. No
# server divides by a temperature of 0: it takes the likeliest token, and states what 1 would give
# (https://github.com/standardcompletions/rfcs/issues/11; vLLM, SGLang and llama.cpp do so).
NEUTRAL: dict[str, tuple[object, ...]] = {
    "temperature": (0, 1),
    "top_p": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "repeat_penalty": (1,),
    "logit_bias": ({}, []),
}
# Where a row keeps the settings of its request.
REQUESTS = ("request", "generation_settings", "sampling_params", "parameters", "generation_config")
REQUESTS += ("model_parameters", "modelParameters", "kwargs")
SENT = ("messages", "prompt", "input", "contents")  # what a request sends to the model
# Where Gemini, TGI, Ollama and SGLang keep the settings within a request; Gemini's in camel case.
NESTED = ("generationConfig", "generation_config", "parameters", "options", "sampling_params")
CAMEL_CASE = {to_camel(name): name for name in NEUTRAL}
# A row's own `top_k` may be how many tokens it lists.
FLAT = tuple(name for name in NEUTRAL if name != "top_k")


def request_settings(row: Row, body: Row) -> Row:
    """The settings of the request of an answer, or else those that its row states.

    >>> request_settings({"request": {"temperature": 0.7, "top_p": 1}}, {})
    {'temperature': 0.7, 'top_p': 1}
    """
    for name in REQUESTS:
        for source in (row, body):
            request = source.get(name)
            request = request.get("body", request) if isinstance(request, dict) else None
            if isinstance(request, dict) and request:
                return _with_nested(request)
    return {name: source[name] for source in (body, row) for name in FLAT if name in source}


def _with_nested(request: Row) -> Row:
    """Merge the settings that a request nests in an object."""
    nested = [request[name] for name in NESTED if isinstance(request.get(name), dict)]
    settings = {name: value for settings in (request, *nested) for name, value in settings.items()}
    return {CAMEL_CASE.get(name, name): value for name, value in settings.items()}


def stated_decoding(request: Mapping[str, Any]) -> str | None:
    """What a request states that changes probabilities; None where it states no temperature either.

    >>> stated_decoding({"temperature": 0.7, "top_p": 1}), stated_decoding({"temperature": 0})
    ('temperature 0.7', '')
    """
    stated = {name: _setting(request[name]) for name in NEUTRAL if request.get(name) is not None}
    changing = [
        name if isinstance(value, dict | list) else f"{name} {value:g}"
        for name, value in stated.items()
        if value is not None and value not in NEUTRAL[name]
    ]
    return ", ".join(changing) or ("" if stated.get("temperature") is not None else None)


def _setting(value: Any) -> Any:
    """A setting as a number, tables and text included, or as it is; None where it is neither."""
    if isinstance(value, dict | list):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def without_values(paths: Mapping[str, str], row: Any) -> dict[str, str]:
    """Return the columns and paths at which a row has no value."""
    return {name: path for name, path in paths.items() if value_at(row, path) is None}


def names_response(row: Row, reading: Reading) -> bool:
    """Whether the options name where a row holds a server's whole response."""
    path = reading.columns.get("response")
    return path is not None and isinstance(value_at(row, path), dict)


def value_at(row: Any, path: str) -> Any:
    """The value at a path in nested mappings and lists; None where there is none.

    A name may hold dots.

    >>> value_at({"scores": {"match.value": "C"}}, "scores.match.value")
    'C'
    >>> value_at({"replies": [{"text": "Lima"}]}, "replies.0.text")
    'Lima'
    """
    if isinstance(row, Mapping) and path in row:
        return row[path]
    names = path.split(".")
    for n in range(len(names) - 1, 0, -1):
        name, below = ".".join(names[:n]), ".".join(names[n:])
        if isinstance(row, Mapping) and name in row:
            return value_at(row[name], below)
        if isinstance(row, list) and name in INDICES and int(name) < len(row):
            return value_at(row[int(name)], below)
    if isinstance(row, list) and path in INDICES and int(path) < len(row):
        return row[int(path)]
    return None
