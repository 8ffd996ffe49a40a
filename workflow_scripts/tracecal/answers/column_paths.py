"""Where a row of an unknown form holds its answer: the paths that `--columns` takes.

`column_paths(row)` searches the objects within a row for a server's whole response, or else for
log-probabilities, and near them for the text, the end and the model. Names with dots are taken for
nested ones, and texts of JSON are looked into. `describe_unknown(row)` is the error message of a
row in no format.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tracecal.answers.facts import SENT, value_at
from tracecal.answers.formats.columns import LOGPROBS, PROBABILITIES, TEXTS
from tracecal.answers.formats.layouts import FORMATS
from tracecal.answers.tokens import FORMS, TOPS, read_logprobs
from tracecal.errors import WrongRow, some_of
from tracecal.io.input_files import parsed_json

MOST_OBJECTS = 1000  # to search in a row
MOST_FIELDS = 8  # to list in a message
TRACES = (*LOGPROBS, *PROBABILITIES)
_LOGPROBS = re.compile(r"log[_-]?prob|nll|surprisal", re.I)  # in names of log-probabilities
ENDS = ("finish_reason", "finishReason", "stop_reason")


def column_paths(row: Mapping[str, Any]) -> dict[str, str]:
    """Find the paths of an answer's columns; none where no object has log-probabilities.

    >>> column_paths({"run": "a", "reply": {"content": "5", "logprobs": [-0.25, -0.5]}})
    {'logprobs': 'reply.logprobs', 'answer': 'reply.content'}
    """
    for branch in _objects(row):
        if len(branch) > 1 and _is_response(branch[-1][1]):
            return {"response": _join(branch)} | _request_path(branch)
        name = _trace_name(branch[-1][1])
        if name is None:
            continue
        column = "probabilities" if name in PROBABILITIES else "logprobs"
        paths = {column: _join(branch, name)}
        fields = {"answer": TEXTS, "finish_reason": ENDS, "model": ("model",)}
        for column, names in fields.items():
            if path := _nearest(branch, names):
                paths[column] = path
        return paths
    return {}


def describe_unknown(row: Mapping[str, Any]) -> str:
    """Say that a row is in no known format, and which options may read it."""
    paths = column_paths(row)
    if texts := [path for path in paths.values() if value_at(row, path) is None]:
        return (
            f"its format is unknown; {texts[0].split('.')[0]} is JSON as text, which holds "
            f"log-probabilities ({', '.join(texts)}): give it as JSON"
        )
    if paths:
        options = " ".join(f"{column}={path}" for column, path in paths.items())
        is_text = isinstance(value_at(row, paths.get("response", "")), str)
        note = " (JSON as text)" if is_text else ""
        places = {
            path[: first.start()] for path in paths.values() for first in _FIRST.finditer(path)
        }
        for branch in sorted(places):
            if isinstance(several := value_at(row, branch), list) and len(several) > 1:
                note = f" (the first of {len(several)} at {branch})"
        return f"its format is unknown, but it seems to hold an answer{note}: --columns {options}"
    for branch in _objects(row):
        for name, value in branch[-1][1].items():
            if _LOGPROBS.search(name) and value not in (None, "", [], {}):
                return (
                    f"its format is unknown; {_join(branch, name)} is {value!r:.60}, and "
                    f"log-probabilities are a list with a number per token, {FORMS}"
                )
    return (
        f"its format is unknown, and none of its fields ({some_of([*row], MOST_FIELDS)}) holds "
        f"log-probabilities; expected one of {', '.join(FORMATS)}; with other names, say where: "
        "--columns answer=PATH logprobs=PATH"
    )


_FIRST = re.compile(r"\.0(?=\.|$)")  # the first element of a list, in a path
Place = list[tuple[str, Mapping[str, Any]]]


def _objects(row: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the objects within a row, outer ones first, each with those around it."""
    places = deque([[("", _opened(row))]])
    for _ in range(MOST_OBJECTS):
        if not places:
            return
        branch = places.popleft()
        yield branch
        for name, value in branch[-1][1].items():
            if name in TRACES:
                continue
            if isinstance(value, list) and value and isinstance(value[0], dict):
                name, value = f"{name}.0", value[0]
            if isinstance(value, dict):
                places.append([*branch, (name, _opened(value))])


def _opened(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object with nested ones in place of names with dots, and of texts of JSON."""
    opened: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, str) and inner.lstrip()[:1] in ("{", "["):
            with suppress(ValueError):
                inner = parsed_json(inner)
        outer, dot, below = str(name).partition(".")
        if not (dot and outer and below) or outer in value:
            opened[str(name)] = inner
        else:
            opened.setdefault(outer, {})[below] = inner
    return opened


def _trace_name(value: Mapping[str, Any]) -> str | None:
    """The field of an object that holds log-probabilities: by its name, or a list of tokens."""
    traces = (name for name in TRACES if _is_trace(value.get(name)))
    tokens = (name for name, inner in value.items() if _are_tokens(inner) or _are_negative(inner))
    return next(traces, None) or next(tokens, None)


def _are_negative(value: Any) -> bool:
    """Whether a value is a list of numbers that may be log-probabilities under another name."""
    return isinstance(value, list) and {*map(type, value)} == {float} and max(value) <= 0


def _are_tokens(value: Any) -> bool:
    """Whether a value is a list of tokens, and not of answers that have such lists."""
    if not (isinstance(value, list) and value and {*map(type, value)} in ({dict}, {list})):
        return False
    if not _is_trace(value):
        return False
    if isinstance(value[0], list):
        return all((step.logprob or 0) <= 0 for step in read_logprobs(value))
    return not any(_are_tokens(below) for name, below in value[0].items() if name not in TOPS)


def _is_response(value: Mapping[str, Any]) -> bool:
    """Whether an object is an answer with log-probabilities in a server's format."""
    try:
        answer_format = FORMATS.layout_of(dict(value))
        return answer_format.name != "columns" and bool(answer_format.read(dict(value)).steps)
    except WrongRow:
        return False


def _request_path(branch: Place) -> dict[str, str]:
    """The path of the request, an object beside the response or beside those around it."""
    for depth in range(len(branch) - 1, 0, -1):
        for name, value in branch[depth - 1][1].items():
            if isinstance(value, dict) and any(value.get(key) for key in SENT):
                return (
                    {}
                    if name == "request" and depth == 1
                    else {"request": _join(branch[:depth], name)}
                )
    return {}


def _nearest(branch: Place, names: tuple[str, ...]) -> str | None:
    """The path of a text with one of the names, in an object or else in those around it."""
    for depth in range(len(branch), 0, -1):
        around = branch[depth - 1][1]
        for inner in ([], ["message"]):
            fields = around.get("message") if inner else around
            if not isinstance(fields, dict):
                continue
            name = next((name for name in names if isinstance(fields.get(name), str)), None)
            if name is not None:
                return _join(branch[:depth], *inner, name)
    return None


def _join(branch: Place, *names: str) -> str:
    return ".".join([*(name for name, _ in branch[1:]), *names])


def _is_trace(value: Any) -> bool:
    if not isinstance(value, list | dict) or not value:
        return False
    if isinstance(value, list) and {*map(type, value)} <= {int, float, type(None)}:
        return True
    try:
        return bool(read_logprobs(value))
    except WrongRow:
        return False
