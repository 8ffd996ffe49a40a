"""A format as data: where its rows keep what an answer needs, as typed paths; and their reader.

1. A `Layout` names a path for each fact, such as ``choices![+].message!.content``. Below a name, a
   value is an object; ``[]`` a list of them, ``[+]`` of one or more, ``[?]`` of some that may be
   null. What is marked ``!`` must be there, an object or list marked ``?`` may be null. ``a | b``
   is the first of two with a value. Paths with a dot in front are below an element of `each`.
2. `Layout.read(row)` checks all these types at once, by a pydantic model that the paths make.
3. What no path can say is a function: `unwrap`, `steps` or `last_touch`; a format that computes
   reads its rows by a function alone (`function`), in a module of its own.

`recogniser(marks)` is a function that says whether a row has one of some marks:
``("done", "message{} logprobs[]")`` are alternatives, each of paths that must be there. Behind a
path, ``{}`` asks for an object, ``[]`` for a list, ``:bool`` and ``:text`` for such a value, and
``[{}]`` for a list of objects, in which the rest of the path holds for each. A path behind ``!``
must not be there.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.alias_generators import to_camel

from tracecal.answers.raw_answer import Content, RawAnswer, counts_reasoning, split_content
from tracecal.answers.tokens import (
    Step,
    infer_stop_token,
    make_step,
    read_logprobs,
    require_id_per_step,
    step_token_ids,
)
from tracecal.errors import Unanswered, WrongRow

if TYPE_CHECKING:
    from tracecal.answers.formats.stream import Stream

Row = dict[str, Any]
Tree = Mapping[str, "Tree"]  # names that are read, each with the names below it
KINDS = {"{}": dict, "[]": list, "[{}]": list, ":bool": bool, ":text": str}
_NAME = re.compile(r"(\w+)(\{\}|\[\{\}\]|\[\]|:bool|:text)?")
STATED_IDS = ("custom_id", "example_id", "id", "doc_id")  # of rows that users write
TYPES: dict[str, Any] = {
    "text": str,
    "content": Content,
    "thoughts": str,
    "logprobs": Any,
    "token_ids": list[int],
    "prompt_token_ids": list[int],
    "finish_reason": str,
    "stop_reason": str | int,
    "model": str,
    "prompt": str,
    "usage": Any,
    "refusal": Any,
    "tool_calls": Any,
}
# Types of the parts of a message that call a tool, and fields of such parts.
CALLS = {"tool_use", "tool_call", "function_call", "functionCall"}
_SEGMENT = re.compile(r"(\w+)([!?]?)((?:\[[+?]?\])*)")


class TokenList(NamedTuple):
    """Where a list of tokens is, and which field or place of a token has its text, id and more.

    `top` is the path of the lists of the likeliest tokens, which have the same fields.
    """

    path: str
    text: str
    token_id: str
    logprob: str
    top: str = ""

    @property
    def types(self) -> dict[str, Any]:
        """The type of each path of a token."""
        fields = {self.text: str, self.token_id: int, self.logprob: float}
        lists = filter(None, (self.path, self.top))
        return {f"{path}.{name}": kind for path in lists for name, kind in fields.items() if name}


@dataclass
class Place:
    """A place in rows: the places below it, or else the type of its value."""

    mark: str = ""
    lists: tuple[str, ...] = ()
    below: dict[str, "Place"] = field(default_factory=dict)
    kind: Any = None


@dataclass(frozen=True, kw_only=True)
class Marked:
    """What a row is recognised as.

    Attributes
    ----------
    marks
        All paths of one of these texts must be there (`recogniser`); or a function decides.
    """

    marks: tuple[str, ...] | Callable[[Row], bool]

    @cached_property
    def recognises(self) -> Callable[[Any], bool]:
        """Whether a row has the marks."""
        return recogniser(self.marks)


@dataclass(frozen=True, kw_only=True)
class Layout(Marked):
    """A format of answers as data.

    Attributes
    ----------
    name
        Name for users.
    programs
        Which programs write it, for the page of formats.
    each
        The list of choices.
    of_first
        Fields of the row that are about the first choice.
    also
        Further paths that are read, with their types, or with a type and a default.
    steps
        Where the tokens are, if `logprobs` does not have them: a list, or a function of the model.
    last_touch
        Changes the answer by what the model of the row holds besides.
    unwrap
        Finds the object that the paths are about; raises `WrongRow`.
    splitter
        Splits rows that no `each` describes, as `split` does.
    stream
        How the pieces of a streamed answer are joined.
    in_camel_case
        Whether all names may be written in camel case.
    function
        Makes an answer of a row, instead of all this; raises `WrongRow`, or pydantic's error.
    fields
        The names that `function` reads.
    """

    name: str
    programs: str
    each: str = ""
    of_first: tuple[str, ...] = ()
    text: str = ""
    content: str = ""
    thoughts: str = ""
    logprobs: str = ""
    token_ids: str = ""
    prompt_token_ids: str = ""
    finish_reason: str = ""
    stop_reason: str = ""
    model: str = ""
    prompt: str = ""
    usage: str = ""
    refusal: str = ""
    tool_calls: str = ""
    also: Mapping[str, Any] = field(default_factory=dict)
    steps: TokenList | Callable[[Any], list[Step]] | None = None
    last_touch: Callable[[RawAnswer, Any], RawAnswer] = lambda answer, row: answer
    unwrap: Callable[[Row], Row] = lambda row: row
    splitter: Callable[[Row], dict[str, Row]] | None = None
    in_camel_case: bool = False
    stream: "Stream | None" = None
    function: Callable[[Row], RawAnswer] | None = None
    fields: tuple[str, ...] = ()

    def read(self, row: Row) -> RawAnswer:
        """Read an answer, of several choices the first.

        Raises `WrongRow`, or `Unanswered` where there is none.
        """
        try:
            return self.reader(row)
        except ValidationError as error:
            if value_below(row, self._choices_path) == []:
                failure = value_below(row, [*self._choices_path[:-1], "error"])
                raise Unanswered("request failed" if failure else "empty") from error
            raise wrong_field(self.name, error) from error

    def reader(self, row: Row) -> RawAnswer:
        """Read an answer. Raises `WrongRow`, or pydantic's error for a field."""
        if self.function is not None:
            return self.function(row)
        row_model = self.row_model.model_validate(self.unwrap(row))
        values = {name: _first_value(row_model, paths) for name, paths in self._places.items()}
        answer, thoughts = split_content(values.get("content", values.get("text")))
        thoughts = values.get("thoughts") or thoughts
        if answer is None and (self.content or self.text == ".text"):
            answer = ""
        if thoughts is None and counts_reasoning(values.get("usage")):
            thoughts = ""
        token_ids = values.get("token_ids")
        refusal, calls_tool = _refusal_and_calls(values)
        has_tokens = answer or not refusal  # those of a refusal are none of an answer
        steps = self._steps(row_model, values.get("logprobs"), token_ids) if has_tokens else []
        # Behind reasoning the end of the answer is compared once its tokens are known.
        text = answer if thoughts is None else None
        raw = RawAnswer(
            answer=answer,
            thoughts=thoughts,
            refusal=refusal,
            calls_tool=calls_tool,
            steps=steps,
            token_ids=token_ids or step_token_ids(steps),
            prompt=values.get("prompt"),
            prompt_token_ids=values.get("prompt_token_ids"),
            finish_reason=values.get("finish_reason"),
            stop=values.get("stop_reason"),
            stop_token=infer_stop_token(text, steps, values.get("stop_reason")),
            model=values.get("model"),
        )
        return self.last_touch(raw, row_model)

    def _steps(self, row_model: Any, logprobs: Any, token_ids: list[int] | None) -> list[Step]:
        if self.steps is None:
            return read_logprobs(logprobs, token_ids)
        if not isinstance(self.steps, TokenList):
            return self.steps(row_model)
        steps = _listed_steps(row_model, self.steps, self.each)
        require_id_per_step(steps, token_ids)
        return steps

    def split(self, row: Row) -> dict[str, Row]:
        """Make a row of each choice, by the ending of its id, in the order of their `index`."""
        if self.splitter is not None:
            return self.splitter(row)
        path = self._choices_path
        choices = value_below(row, path) if path else None
        if not isinstance(choices, list) or len(choices) < 2:
            return {"": row}
        order = sorted(range(len(choices)), key=lambda index: _index(choices[index], index))
        first, *further = (with_value(row, ".".join(path), [choices[index]]) for index in order)
        about_first = dict.fromkeys(self.of_first)
        return by_ending([first, *(each | about_first for each in further)])

    @cached_property
    def _choices_path(self) -> list[str]:
        """The names above the list of choices, and its own."""
        return _names(self.each)[:-1]

    @cached_property
    def reads(self) -> Tree:
        """The names that are read, each with those below it."""
        names = {name: {} for name in self.fields}
        return names | _read_names(self._root, self.in_camel_case)

    @cached_property
    def row_model(self) -> type[BaseModel]:
        """The pydantic model of rows."""
        return _model(self.name, self._root, self.in_camel_case)

    @cached_property
    def _places(self) -> dict[str, list[list[str]]]:
        return {
            name: [_names(path) for path in _paths(getattr(self, name), self.each)]
            for name in TYPES
            if getattr(self, name)
        }

    @cached_property
    def _root(self) -> Place:
        types = {
            path: kind
            for name, kind in TYPES.items()
            for path in _paths(getattr(self, name), self.each)
        }
        further = self.steps.types if isinstance(self.steps, TokenList) else {}
        for path, kind in (further | dict(self.also)).items():
            types[_paths(path, self.each)[0]] = kind
        root = Place()
        for path, kind in types.items():
            _add(root, path.split("."), kind)
        return root


class Formats(dict[str, Layout]):
    """Formats by name, in the order of recognition.

    >>> from tracecal.answers.formats.layouts import FORMATS
    >>> FORMATS.layout_of({"choices": [{"message": {"content": "Lima"}}]}).name
    'openai_chat'
    >>> FORMATS.recognises({"answer": "Lima"}), FORMATS.recognises({"reply": "Lima"})
    (True, False)
    """

    def layout_of(self, row: Row) -> Layout:
        """The first format that recognises a row. Raises `WrongRow` where none does."""
        for layout in self.values():
            if layout.recognises(row):
                return layout
        raise WrongRow(f"its format is unknown; expected one of {', '.join(self)}")

    def recognises(self, row: Row) -> bool:
        """Whether a row is an answer of a program, or of own columns."""
        return any(layout.recognises(row) for layout in self.values())


def with_value(row: Row, path: str, value: Any) -> Row:
    """A row with another value at a path; unchanged where the path leads through a list.

    >>> with_value({"doc": {"id": 5, "text": "a"}}, "doc.id", 7)
    {'doc': {'id': 7, 'text': 'a'}}
    """
    name, dot, below = path.partition(".")
    if path in row or not dot:
        return row | {path: value}
    inner = row.get(name)
    return row | {name: with_value(inner, below, value)} if isinstance(inner, dict) else row


def by_ending(rows: Iterable[Row]) -> dict[str, Row]:
    """The rows of several choices, by the endings of their ids.

    >>> [*by_ending([{}, {}])]
    ['', '#choice-2']
    """
    return {f"#choice-{number}" if number > 1 else "": row for number, row in enumerate(rows, 1)}


def wrong_field(name: str, error: ValidationError) -> WrongRow:
    """The error of a row that names its first invalid field."""
    first = error.errors()[0]
    path = ".".join(map(str, first["loc"]))
    message = first["msg"].partition("a valid dictionary or instance of ")
    return WrongRow(f"as {name}, {path}: {message[0]}{'an object' if message[1] else ''}")


def recogniser(marks: Sequence[str] | Callable[[Any], bool]) -> Callable[[Any], bool]:
    """A function that says whether a value has one of the marks; a function is its own.

    >>> recogniser(["choices.0.message"])({"choices": [{"message": {}}]})
    True
    """
    if callable(marks):
        return marks
    alternatives = [
        [(not path.startswith("!"), _NAME.findall(path)) for path in mark.split()] for mark in marks
    ]

    def has_mark(value: Any) -> bool:
        for paths in alternatives:
            for is_there, path in paths:
                if _has(value, path) is not is_there:
                    break
            else:
                return True
        return False

    return has_mark


def _has(value: Any, path: Sequence[tuple[str, str]]) -> bool:
    for number, (name, kind) in enumerate(path, 1):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return False
        if kind and not isinstance(value, KINDS[kind]):
            return False
        if kind == "[{}]":
            return all(isinstance(each, dict) and _has(each, path[number:]) for each in value)
    return True


def value_below(value: Any, names: Sequence[str]) -> Any:
    """The value below nested objects; None where there is none.

    >>> value_below({"delta": {"content": "Li"}}, ["delta", "content"])
    'Li'
    """
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _refusal_and_calls(values: Mapping[str, Any]) -> tuple[str | None, bool]:
    """The refusal of a message, and whether it calls a tool, in its fields or in its parts."""
    refusal, calls_tool = values.get("refusal"), bool(values.get("tool_calls"))
    content = values.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            refusal = part.get("refusal") or refusal
            calls_tool = calls_tool or str(part.get("type")) in CALLS or not CALLS.isdisjoint(part)
    return refusal if isinstance(refusal, str) else None, calls_tool


def _paths(paths: str, each: str) -> list[str]:
    """The paths of a text with bars between them, from the row on."""
    listed = paths.split(" | ") if paths else []
    return [each + path if path.startswith(".") else path for path in listed]


def _names(path: str) -> list[str]:
    """The names of a path, and ``[]`` where a list is entered."""
    return [
        name
        for segment in filter(None, path.split("."))
        for name, _, lists in _SEGMENT.findall(segment)
        for name in [name, *["[]"] * lists.count("[")]
    ]


def _add(root: Place, segments: list[str], kind: Any) -> None:
    node = root
    for segment in segments:
        ((name, mark, lists),) = _SEGMENT.findall(segment)
        node = node.below.setdefault(name, Place())
        node.mark = mark or node.mark
        node.lists = tuple(re.findall(r"\[(.?)\]", lists)) or node.lists
    node.kind = kind


def _model(name: str, node: Place, in_camel_case: bool) -> type[BaseModel]:
    """The pydantic model of the objects at a place."""
    fields: dict[str, Any] = {
        below: _field(below, inner, in_camel_case) for below, inner in node.below.items()
    }
    generator = to_camel if in_camel_case else None
    config = ConfigDict(alias_generator=generator, populate_by_name=True)
    return create_model(name.title(), __config__=config, **fields)


def _field(name: str, node: Place, in_camel_case: bool) -> tuple[Any, Any]:
    """The type and the default of a field."""
    if isinstance(node.kind, tuple):
        return node.kind
    kind = node.kind
    if node.below and next(iter(node.below)).isdecimal():  # tokens that are lists
        places = sorted(node.below.items())
        entries = [inner.kind if inner.mark else inner.kind | None for _, inner in places]
        kind = tuple[tuple(entries)]  # type: ignore[misc]
    elif node.below:
        kind = _model(name, node, in_camel_case)
    for entries_of in reversed(node.lists):
        kind = list[kind | None] if entries_of == "?" else list[kind]  # type: ignore[valid-type]
        kind = Annotated[kind, Field(min_length=1)] if entries_of == "+" else kind
    if node.mark == "!":
        return kind, ...
    is_nullable = node.mark == "?" or not (node.below or node.lists)
    return (kind | None if is_nullable else kind), None


def _read_names(node: Place, in_camel_case: bool) -> Tree:
    names = {name: _read_names(inner, in_camel_case) for name, inner in node.below.items()}
    return names | (
        {to_camel(name): below for name, below in names.items()} if in_camel_case else {}
    )


def _value(value: Any, names: list[str]) -> Any:
    """The value at a path of the model of a row; in a list the first."""
    for name in names:
        if value is None:
            return None
        if name == "[]":
            value = value[0] if value else None
        else:
            value = value[int(name)] if name.isdecimal() else getattr(value, name)
    return value


def _first_value(row_model: Any, paths: list[list[str]]) -> Any:
    """The value at the first of several paths that has one."""
    value = None
    for path in paths:
        value = _value(row_model, path)
        if value not in (None, "", []):
            return value
    return value


def _listed_steps(row_model: Any, tokens: TokenList, each: str) -> list[Step]:
    """The steps of a list of tokens, and of the lists of the likeliest ones."""
    entries = _entries(_value(row_model, _names(_paths(tokens.path, each)[0])[:-1]), tokens)
    tops, inner = [], list[str]()
    if tokens.top:
        names = _names(_paths(tokens.top, each)[0])
        outer = names.index("[]", len(_names(each)) if tokens.top.startswith(".") else 0)
        tops, inner = _value(row_model, names[:outer]) or [], names[outer + 1 : -1]
    if tops and len(tops) != len(entries):
        raise WrongRow(f"it has {len(entries)} tokens and {len(tops)} lists of the most likely")
    steps = []
    for (text, token_id, logprob), top in zip(entries, tops or [None] * len(entries), strict=True):
        is_null = text is token_id is logprob is None
        likeliest = _entries(None if is_null else _value(top, inner), tokens)
        steps.append(make_step(text, token_id, logprob, likeliest))
    return steps


def _entries(listed: Any, tokens: TokenList) -> list[tuple[str | None, int | None, float | None]]:
    """The text, id and log-probability of each token of a list."""
    names = [name.rstrip("!") for name in (tokens.text, tokens.token_id, tokens.logprob) if name]
    getter = itemgetter(*map(int, names)) if names[0].isdecimal() else attrgetter(*names)
    values = [(None,) * len(names) if entry is None else getter(entry) for entry in listed or ()]
    return values if tokens.token_id else [(text, None, value) for text, value in values]


def _index(choice: Any, default: int) -> int:
    index = choice.get("index") if isinstance(choice, dict) else None
    return index if isinstance(index, int) else default
