"""What a row says of its question, for a reader: by the names that tools give these fields."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

ASKED = {
    "language": pl.String,
    "question": pl.String,
    "context": pl.String,
    "references": pl.List(pl.String),
    "distractors": pl.List(pl.String),
}
QUESTION = ("question", "input", "query", "instruction", "prompt", "messages")
CONTEXT = ("context", "passage")
REFERENCES = ("references", "reference", "target", "answers", "gold", "solution", "solutions")


def asked(rows: Sequence[Mapping[str, Any]], prompts: Iterable[str | None]) -> pl.DataFrame:
    """The columns of `ASKED`, a row per row of a file.

    A question that no field holds is the last message of the user that was sent, or the prompt;
    an empty text where there is neither. Of a part of an answer it ends with the part's name.
    References are empty where there are none.
    """
    return pl.DataFrame(
        [_asked(row, prompt) for row, prompt in zip(rows, prompts, strict=True)], schema=ASKED
    )


def _asked(row: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    places = [
        row,
        *filter(_is_object, (_within(row, "response", "body"), _within(row, "response"))),
    ]
    places += filter(_is_object, (row.get("doc"), row.get("metadata")))
    request = _within(row, "request", "body") or row.get("request")
    questions = [*_values(places, QUESTION), *_values(filter(_is_object, [request]), QUESTION)]
    question = next(filter(None, map(_words, questions)), None) or prompt or ""
    if _is_text(row.get("part")):
        question += f"\nPart: {row['part']}"
    return {
        "language": next(filter(_is_text, _values(places, ["language"])), None),
        "question": question,
        "context": next(filter(_is_text, _values(places, CONTEXT)), None),
        "references": next(filter(None, map(_texts, _values(places, REFERENCES))), []),
        "distractors": next(filter(None, map(_texts, _values(places, ["distractors"]))), []),
    }


def _values(places: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[Any]:
    return [place[name] for place in places for name in names if place.get(name) is not None]


def _within(row: Any, *path: str) -> Any:
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


def _words(value: Any) -> str | None:
    """A text, or that of the user's last message in a list of them."""
    if isinstance(value, str):
        return value
    for message in reversed(value) if isinstance(value, list) else ():
        if _is_object(message) and message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list) else [content]
            texts = [part.get("text") if _is_object(part) else part for part in parts]
            return "\n".join(filter(_is_text, texts)) or None
    return None


def _texts(value: Any) -> list[str]:
    """The texts of a reference, or of a list of them; numbers as they are written."""
    values = value if isinstance(value, list) else [value]
    return [str(one) for one in values if isinstance(one, str | int | float)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)
