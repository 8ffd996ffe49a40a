"""Answers in plain columns, named as in the traces or by common alternatives.

`logprobs` may hold numbers, or a choice's log-probabilities as another format has them; `tokens`
may hold texts, or objects with log-probabilities. A log may leave texts out; an empty one is an
answer that was not given.
"""

import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ValidationError

from tracecal.answers.formats.layout import Layout, Row
from tracecal.answers.raw_answer import Known, RawAnswer, counts_reasoning
from tracecal.answers.tokens import (
    SLACK,
    Step,
    StopToken,
    infer_stop_token,
    is_same_logprob,
    log_of,
    read_logprobs,
    token_key,
)
from tracecal.errors import WrongRow
from tracecal.io.input_files import parsed_json

Floats = list[float | None]
# Columns that may hold the text, the log-probabilities or the probabilities, in this order.
TEXTS = (
    "answer",
    "text",
    "response",
    "output",
    "completion",
    "generated_text",
    "generation",
    "prediction",
    "content",
)
THOUGHTS = ("reasoning_content", "thinking")
LOGPROBS = ("logprobs", "token_logprobs", "logprob", "logProbs", "tokenLogprobs")
PROBABILITIES = ("probabilities", "token_probabilities", "probs")
OWN = "generated"  # the key of a generated token whose text is unknown
OBJECTS = ("logprobs", "token_logprobs", "tokens", "logProbs")  # that may hold objects
TRACES = ("surprisal", *LOGPROBS, *PROBABILITIES)
ENTROPIES = ("entropy_lower", "entropy", "entropy_upper")
LISTS = {*OBJECTS, *TRACES, *ENTROPIES, "token_ids", "top_logprobs"}


class Columns(BaseModel):
    """One answer; every column may be missing."""

    answer: str | None = None
    prompt: str | None = None
    prompt_token_ids: list[int] | None = None
    token_ids: list[int] | None = None
    tokens: list[str | None] | None = None
    entropy: Floats | None = None
    entropy_lower: Floats | None = None
    entropy_upper: Floats | None = None
    top_logprobs: (
        list[list[float | None] | list[dict[str, Any]] | dict[str, float | None] | None] | None
    ) = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    model: str | None = None
    correct: Any = None


class Numbers(BaseModel):
    values: Floats


def recognises(row: Row) -> bool:
    """Whether a row has a trace, token ids or a text."""
    names = (*TRACES, "token_ids", "answer", "text")
    return any(name in row for name in names) or _are_objects(row.get("tokens"))


def read(row: Row) -> RawAnswer:
    """Read an answer and the lists of its trace; every list has an entry per token."""
    row = {name: _opened(value) if name in LISTS else value for name, value in row.items()}
    _require_numbers(row)
    holders = [name for name in OBJECTS if _are_objects(row.get(name))]
    columns = Columns.model_validate(
        {key: value for key, value in row.items() if value is not None and key not in holders}
    )
    objects = row[holders[0]] if holders else None
    steps = read_logprobs(objects, columns.token_ids)
    if steps:
        logprobs: Floats | None = [step.logprob for step in steps]
        columns.top_logprobs = None
        _require_equal_lengths(columns, logprobs)
    else:
        row = {name: value for name, value in row.items() if name not in holders}
        logprobs = _logprobs(row)
        _require_equal_lengths(columns, logprobs)
        steps = [] if logprobs is None else _steps(columns, logprobs)
    answer = _text(row, columns.tokens or [step.text for step in steps])
    has_own = bool(holders) or (answer is not None and not answer.strip())
    thoughts = next((row[name] for name in THOUGHTS if row.get(name)), None) if has_own else None
    if thoughts is None and holders and counts_reasoning(row.get("usage")):
        thoughts = ""
    stop_token = columns.stop_token
    if steps and stop_token == "unknown":
        stop_token = infer_stop_token(answer if thoughts is None else None, steps)
    return RawAnswer(
        answer=answer,
        thoughts=thoughts if isinstance(thoughts, str) else None,
        steps=steps,
        exact=_exact_entropies(columns),
        tokens=columns.tokens if columns.tokens and None not in columns.tokens else None,
        token_ids=columns.token_ids,
        prompt=columns.prompt,
        prompt_token_ids=columns.prompt_token_ids,
        finish_reason=columns.finish_reason or row.get("finishReason"),
        stop_token=stop_token,
        processed=columns.processed,
        model=columns.model,
        stated={"correct": columns.correct, "label": row.get("label")},
    )


def _opened(value: Any) -> Any:
    """What JSON as text holds, as tables keep lists; any other value unchanged."""
    with suppress(ValueError):
        return parsed_json(value) if isinstance(value, str) else value
    return value


def _require_numbers(row: Row) -> None:
    """Raise `WrongRow` for a list of numbers that holds true or false, which would be 1 or 0."""
    for name in (*TRACES, *ENTROPIES):
        values = row.get(name)
        if isinstance(values, list) and bool in {*map(type, values)}:
            raise WrongRow(f"{name} holds true or false in place of a number")


def _are_objects(logprobs: Any) -> bool:
    """Whether `logprobs` are an object, or a list of objects or lists."""
    if isinstance(logprobs, list):
        return any(isinstance(entry, dict | list) for entry in logprobs)
    return isinstance(logprobs, dict)


def _text(row: Row, tokens: Sequence[str | None]) -> str | None:
    """Return the text that several tokens spell, or else the first of the columns `TEXTS`."""
    texts = [text for name in TEXTS if isinstance(text := row.get(name), str)]
    if len(texts) > 1 and tokens and None not in tokens:
        spelled = "".join(map(str, tokens)).strip()
        matching = [text for text in texts if text.strip() and spelled.startswith(text.strip())]
        texts = sorted(matching, key=len, reverse=True) or texts
    return next(iter(texts), None)


def _steps(columns: Columns, logprobs: Floats) -> list[Step]:
    nothing = [None] * len(logprobs)
    entries = zip(columns.tokens or nothing, logprobs, columns.top_logprobs or nothing, strict=True)
    steps = []
    for text, logprob, top in entries:
        likeliest = _with_keys(top, text, logprob)
        steps.append(Step(text, None, logprob, likeliest, _key(text)))
    return steps


def _key(text: str | None) -> object:
    return OWN if text is None else token_key(text=text)


def _logprobs(row: Row) -> Floats | None:
    """The log-probabilities, from the first of the columns `TRACES` that a row has."""
    if (surprisal := _numbers(row, ("surprisal",))) is not None:
        for t, value in enumerate(surprisal, 1):
            if value is not None and (value < -SLACK or value == math.inf):
                raise WrongRow(f"token {t} has the surprisal {value:g}, not finite and at least 0")
        return [None if value is None else -value for value in surprisal]
    if (probabilities := _numbers(row, PROBABILITIES)) is not None:
        return [
            None if value is None else log_of(value, f"token {t}")
            for t, value in enumerate(probabilities, 1)
        ]
    return _numbers(row, LOGPROBS)


def _numbers(row: Row, names: Sequence[str]) -> Floats | None:
    name = next((name for name in names if row.get(name) is not None), None)
    if name is None:
        return None
    try:
        return Numbers(values=row[name]).values
    except ValidationError as error:
        _, *location = error.errors()[0]["loc"]
        what = f"its {name} is no list"
        if location:
            what = f"entry {int(location[0]) + 1} of its {name} is no number"
        raise WrongRow(f"{what}; expected a list with a number per token") from error


def _require_equal_lengths(columns: Columns, logprobs: Floats | None) -> None:
    lists = {
        "log-probabilities": logprobs,
        "entropies": columns.entropy,
        "lower entropies": columns.entropy_lower,
        "upper entropies": columns.entropy_upper,
        "lists of the most likely tokens": columns.top_logprobs,
        "tokens": columns.tokens,
        "token ids": columns.token_ids,
    }
    lengths = {name: len(values) for name, values in lists.items() if values is not None}
    if len(set(lengths.values())) > 1:
        counts = " and ".join(f"{length} {name}" for name, length in lengths.items())
        raise WrongRow(f"its lists have unequal lengths: {counts}")


def _exact_entropies(columns: Columns) -> dict[str, Floats]:
    """The entropies and their bounds that a row states, by name."""
    exact = {
        name: values
        for name in ENTROPIES
        if (values := _entropies(getattr(columns, name), name)) is not None
    }
    for lows, highs in pairwise(exact.values()):
        pairs = zip(lows, highs, strict=True)
        if any(low > high + SLACK for low, high in pairs if None not in (low, high)):
            raise WrongRow("its entropies do not lie between their bounds")
    return exact


def _entropies(values: Floats | None, name: str) -> Floats | None:
    """The entropies of an answer, None at tokens that lack one; None where all do."""
    if values is None or all(value is None for value in values):
        return None
    for t, value in enumerate(values, 1):
        if value is not None and not -SLACK <= value < math.inf:
            raise WrongRow(f"token {t} has the {name} {value:g}, not finite and at least 0")
    return [None if value is None else max(value, 0.0) for value in values]


def _with_keys(
    top: Any, text: str | None, logprob: float | None
) -> list[tuple[Hashable, float | None]]:
    """The log-probabilities of the likeliest tokens (a list, or a dict by text), each with a key.

    Where no text tells, the first value that equals the generated token's counts as its own.
    """
    pairs: list[tuple[Hashable, float | None]]
    if isinstance(top, dict):
        pairs = [(token_key(text=text), value) for text, value in top.items()]
    elif top and isinstance(top[0], dict):
        pairs = [(token_key(text=token.get("token")), token.get("logprob")) for token in top]
    else:
        pairs = [(f"#{index}", value) for index, value in enumerate(top or ())]
    if text is not None and pairs and isinstance(pairs[0][0], tuple):
        return pairs
    for index, (_, value) in enumerate(pairs):
        if logprob is not None and value is not None and is_same_logprob(value, logprob):
            pairs[index] = (_key(text), value)
            break
    return pairs


FORMAT = Layout(
    name="columns",
    programs="your own columns, one answer a row",
    marks=recognises,
    function=read,
    fields=(*Columns.model_fields, *TEXTS[1:], *TRACES, *THOUGHTS, "label", "finishReason"),
)
