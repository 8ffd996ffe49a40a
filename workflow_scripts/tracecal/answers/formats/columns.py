"""Answers in plain columns."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from tracecal.answers.raw_answer import Known, RawAnswer, StopToken
from tracecal.answers.step import SLACK, Step
from tracecal.answers.verdict import one_verdict
from tracecal.answers.wrong_row import WrongRow

Floats = list[float | None]
# Columns that may hold log-probabilities, and the form in which they hold them.
LOGPROBS = ("logprobs", "token_logprobs", "logprob")
PROBABILITIES = ("probabilities", "token_probabilities", "probs")
TRACES = ("surprisal", *LOGPROBS, *PROBABILITIES)


class Row(BaseModel):
    """One answer; every column may be missing."""

    answer: str | None = None
    prompt: str | None = None
    prompt_token_ids: list[int] | None = None
    token_ids: list[int] | None = None
    tokens: list[str | None] | None = None
    entropy: Floats | None = None
    entropy_lower: Floats | None = None
    entropy_upper: Floats | None = None
    top_logprobs: list[list[float | None] | dict[str, float | None] | None] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    model: str | None = None
    correct: bool | int | float | str | None = None


class Numbers(BaseModel):
    values: Floats


def read_columns(body: dict[str, Any]) -> RawAnswer:
    """A row's answer and the parts of its trace; every list has an entry per token."""
    row = Row.model_validate({key: value for key, value in body.items() if value is not None})
    texts = (body.get(name) for name in ("answer", "text", "response"))
    logprobs = _logprobs(body)
    lists = {
        "log-probabilities": logprobs,
        "entropies": row.entropy,
        "lower entropies": row.entropy_lower,
        "upper entropies": row.entropy_upper,
        "lists of the most likely tokens": row.top_logprobs,
        "tokens": row.tokens,
        "token ids": row.token_ids,
    }
    lengths = {name: len(values) for name, values in lists.items() if values is not None}
    if len(set(lengths.values())) > 1:
        counts = " and ".join(f"{length} {name}" for name, length in lengths.items())
        raise WrongRow(f"its lists have unequal lengths: {counts}")
    exact = {
        name: values
        for name in ("entropy_lower", "entropy", "entropy_upper")
        if (values := _entropies(getattr(row, name), name)) is not None
    }
    for lows, highs in pairwise(exact.values()):
        pairs = zip(lows, highs, strict=True)
        if any(low > high + SLACK for low, high in pairs if None not in (low, high)):
            raise WrongRow("its entropies do not lie between their bounds")
    steps = []
    if logprobs is not None:
        nothing = [None] * len(logprobs)
        entries = zip(row.tokens or nothing, logprobs, row.top_logprobs or nothing, strict=True)
        steps = [
            Step(text, None, logprob, _with_keys(top, logprob), logprob)
            for text, logprob, top in entries
        ]
    return RawAnswer(
        answer=next((text for text in texts if isinstance(text, str)), None),
        steps=steps,
        exact=exact,
        tokens=row.tokens if row.tokens and None not in row.tokens else None,
        token_ids=row.token_ids,
        prompt=row.prompt,
        prompt_token_ids=row.prompt_token_ids,
        finish_reason=row.finish_reason,
        stop_token=row.stop_token,
        processed=row.processed,
        model=row.model,
        correct=one_verdict(correct=row.correct, label=body.get("label")),
    )


def _logprobs(body: dict[str, Any]) -> Floats | None:
    """The log-probabilities, from the first of the columns `TRACE` that a row has."""
    if (surprisal := _numbers(body, ("surprisal",))) is not None:
        for t, value in enumerate(surprisal, 1):
            if value is not None and (value < -SLACK or value == math.inf):
                raise WrongRow(f"token {t} has the surprisal {value:g}, not finite and at least 0")
        return [None if value is None else -value for value in surprisal]
    if (probabilities := _numbers(body, PROBABILITIES)) is not None:
        return [_log(value, t) for t, value in enumerate(probabilities, 1)]
    return _numbers(body, LOGPROBS)


def _numbers(body: dict[str, Any], names: Sequence[str]) -> Floats | None:
    present = [name for name in names if body.get(name) is not None]
    return Numbers(values=body[present[0]]).values if present else None


def _log(probability: float | None, t: int) -> float | None:
    if probability is None:
        return None
    if not 0 < probability <= 1 + SLACK:
        raise WrongRow(f"token {t} has the probability {probability:g}, not above 0 and at most 1")
    return math.log(probability)


def _entropies(values: Floats | None, name: str) -> Floats | None:
    """An answer's entropies, null where one is missing; null where all are."""
    if values is None or all(value is None for value in values):
        return None
    for t, value in enumerate(values, 1):
        if value is not None and not -SLACK <= value < math.inf:
            raise WrongRow(f"token {t} has the {name} {value:g}, not finite and at least 0")
    return [None if value is None else max(value, 0.0) for value in values]


def _with_keys(top: Any, own: float | None) -> list[tuple[object, float | None]]:
    """The likeliest tokens' log-probabilities (a list, or a dict by text), each with a key.

    A list names no tokens: the first value that equals the chosen token's is taken as its own.
    """
    values = list(top.values()) if isinstance(top, dict) else list(top or ())
    keys: list[object] = [f"#{place}" for place in range(len(values))]
    if own is not None and own in values:
        keys[values.index(own)] = own
    return list(zip(keys, values, strict=True))
