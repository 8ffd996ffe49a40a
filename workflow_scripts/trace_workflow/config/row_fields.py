"""The fields of raw rows as the columns of a task, by its key `fields`."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from trace_workflow.config.row_files import Row
from trace_workflow.config.tasks import Fields, Rows
from tracecal.errors import InputError, listed


def map_rows(rows: Sequence[Row], spec: Rows, language: str | None, where: str) -> list[Row]:
    """Task rows without their role; a row may still lack a question or references.

    `language` is that of a file with one language of several. Where rows of several languages share
    ids (in such files, or with a language field), the language is appended to the id, and the plain
    id is the group of the translations unless a field sets the group.
    Raises `InputError` for a field that no row has, with `where` and the rows' fields.
    """
    fields = spec.fields
    _require_fields(rows, fields, where)
    separate = language is not None or fields.language is not None
    mapped = []
    for number, row in enumerate(rows, 1):
        try:
            mapped.append(_map_row(row, fields, language or spec.language, separate))
        except InputError as error:
            raise InputError(f"{where}: row {number}: {error}") from error
    return mapped


def values(row: Row, field: str) -> list[str]:
    """The texts at a dotted path: a list's elements, or the one scalar; blanks left out.

    A path through a list of objects collects from each of them. A text that is a JSON list or
    object is parsed where the path continues or a list is expected, so CSV can nest.
    """
    return [text for value in _at(row, field) for text in _texts(value)]


def _map_row(row: Row, fields: Fields, language: str, separate: bool) -> Row:
    def single(field: str | None) -> str | None:
        texts = _scalars(row, field) if field else []
        return texts[0] if texts else None

    question, context = single(fields.question) or "", single(fields.context)
    language = (single(fields.language) or language).lower()
    content = hashlib.sha256(f"{question}\x1f{context or ''}".encode()).hexdigest()
    plain_id = content[:16] if fields.id is None else single(fields.id)
    if plain_id is None:
        raise InputError(f"the id field {fields.id!r} is empty.")
    names = _as_list(fields.references)
    return {
        "example_id": f"{plain_id}-{language}" if separate else plain_id,
        "group_id": single(fields.group) or plain_id,
        "language": language,
        "question": question,
        "context": context,
        "references": [*dict.fromkeys(text for name in names for text in values(row, name))],
        "distractors": [
            *dict.fromkeys(values(row, fields.distractors) if fields.distractors else ())
        ],
    }


def _scalars(row: Row, field: str) -> list[str]:
    scalars = [value for value in _at(row, field) if value is not None]
    if len(scalars) > 1 or any(isinstance(value, list | dict) for value in scalars):
        raise InputError(
            f"field {field!r} must hold one text or number, not "
            f"{json.dumps(scalars, default=str)[:80]}."
        )
    return [text for value in scalars for text in _texts(value, nested=False)]


def _at(value: Any, path: str) -> Iterator[Any]:
    """The values at `path`; none where it does not exist."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = _decoded(value)
    if isinstance(value, list):
        for item in value:
            yield from _at(item, path)
    elif isinstance(value, dict):
        # A field's name may contain a dot, as in flattened tables.
        head, _, rest = (path, "", "") if path in value else path.partition(".")
        if head in value:
            if rest:
                yield from _at(value[head], rest)
            else:
                yield value[head]


def _texts(value: Any, nested: bool = True) -> Iterator[str]:
    if nested and isinstance(value, str) and value.strip()[:1] + value.strip()[-1:] == "[]":
        value = _decoded(value)
        if isinstance(value, str) and re.match(r"\s*\[\s*['\"]", value):
            raise InputError(f"a list inside a text must be written as JSON, not {value[:60]}.")
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, nested=False)
    elif isinstance(value, bool | dict):
        yield json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, float) and math.isnan(value):
        return
    elif value is not None and (text := _text(value).strip()):
        yield text


def _text(value: Any) -> str:
    """A value as text; raises `InputError` where its bytes or characters are not valid text."""
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
        text.encode()
    except UnicodeError as error:
        raise InputError(
            f"{str(value)[:40]!a} is not text ({error.reason}); write the file's texts as UTF-8."
        ) from error
    return text


def _decoded(text: str) -> Any:
    """The JSON value that `text` spells, or `text` itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _as_list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def _require_fields(rows: Sequence[Row], fields: Fields, where: str) -> None:
    for key, names in fields.model_dump(exclude_none=True).items():
        for field in _as_list(names):
            if not any(True for row in rows for _ in _at(row, field)):
                raise InputError(
                    f"{where} has no field {field!r} (fields.{key}); its fields are "
                    f"{present_fields(rows)}."
                )


def present_fields(rows: Iterable[Row]) -> str:
    """The dotted paths of the fields of the first rows, as a list in a sentence."""
    return listed([*dict.fromkeys(leaf for row in islice(rows, 1000) for leaf in _leaves(row))])


def _leaves(value: Any, prefix: str = "") -> Iterator[str]:
    """The dotted paths of a row's fields."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and item:
            for key, inner in item.items():
                yield from _leaves(inner, f"{prefix}.{key}" if prefix else str(key))
        else:
            yield prefix
    if value == []:
        yield prefix
