"""Questions, passages and references of answers, found in the rows of any file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import polars as pl

from tracecal.answers.formats.layout import value_below

COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "language": pl.String,
    "question": pl.String,
    "context": pl.String,
    "references": pl.List(pl.String),
    "distractors": pl.List(pl.String),
}
QUESTION = ("question", "input", "query", "instruction", "prompt", "messages")
CONTEXT = ("context", "passage")
REFERENCES = ("references", "reference", "target", "answers", "gold", "solution", "solutions")


def find_questions(
    rows: Sequence[Mapping[str, Any]], prompts: Iterable[str | None]
) -> pl.DataFrame:
    """The columns COLUMNS, a row per row of a file.

    Where no field holds the question, it is the last message of the user that was sent, or the
    prompt, else an empty text. The question of a part ends with the part's name. References are
    empty where there are none.
    """
    questions = [find_question(row, prompt) for row, prompt in zip(rows, prompts, strict=True)]
    return pl.DataFrame(questions, schema=COLUMNS)


def find_question(row: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    """The question of one row, with what belongs to it."""
    responses = value_below(row, ["response", "body"]), row.get("response")
    objects = [row, *filter(_is_object, (*responses, row.get("doc"), row.get("metadata")))]
    request = value_below(row, ["request", "body"]) or row.get("request")
    questions = _values([*objects, *filter(_is_object, [request])], QUESTION)
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
        "context": next(filter(_is_text, _values(objects, CONTEXT)), None),
        "references": references,
        "distractors": distractors,
    }


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
