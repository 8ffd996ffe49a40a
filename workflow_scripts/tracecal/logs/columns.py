"""Answers in columns of one's own, the traces' names or common others."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from tracecal.logs.evaluations import verdict
from tracecal.logs.record import Known, StopToken
from tracecal.logs.steps import SLACK, Step, WrongRow
from tracecal.logs.trace import Given

Floats = list[float | None]
# Under which names log-probabilities may come, and with which sign.
LOGPROBS = ("logprobs", "token_logprobs", "logprob")
PROBABILITIES = ("probabilities", "token_probabilities", "probs")
TRACE = ("surprisal", *LOGPROBS, *PROBABILITIES)


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


def read_columns(body: dict[str, Any]) -> Given:
    """A row's answer and what it holds of its trace, all lists with an entry per token."""
    row = Row.model_validate({key: value for key, value in body.items() if value is not None})
    text = row.answer if row.answer is not None else _first_text(body, "text", "response")
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
    _same_length({name: values for name, values in lists.items() if values is not None})
    exact = {
        name: values
        for name in ("entropy", "entropy_lower", "entropy_upper")
        if (values := _entropies(getattr(row, name), name)) is not None
    }
    ordered = [
        exact[name] for name in ("entropy_lower", "entropy", "entropy_upper") if name in exact
    ]
    for low, high in pairwise(ordered):
        if any(one > other + SLACK for one, other in zip(low, high, strict=True)):
            raise WrongRow("its entropies do not lie between their bounds")
    texts = row.tokens or [None] * len(logprobs or ())
    tops = row.top_logprobs or [None] * len(logprobs or ())
    steps = (
        [
            Step(text, None, logprob, _listed(top, logprob), logprob)
            for text, logprob, top in zip(texts, logprobs or (), tops, strict=True)
        ]
        if logprobs is not None
        else []
    )
    return Given(
        answer=text,
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
        correct=verdict(row.correct if row.correct is not None else body.get("label")),
    )


def _logprobs(body: dict[str, Any]) -> Floats | None:
    """Log-probabilities from whichever column holds them."""
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


def _entropies(values: Floats | None, name: str) -> list[float] | None:
    """Entropies of an answer; null where one is missing."""
    if values is None or None in values:
        return None
    for t, value in enumerate(values, 1):
        if not -SLACK <= value < math.inf:
            raise WrongRow(f"token {t} has the {name} {value:g}, not finite and at least 0")
    return [max(value, 0.0) for value in values]


def _listed(top: Any, own: float | None) -> list[tuple[object, float | None]]:
    """The likeliest tokens' log-probabilities, as a list or by text.

    In a list they bear no names, and the one that equals the chosen token's is its own.
    """
    values = list(top.values()) if isinstance(top, dict) else list(top or ())
    named, found = [], False
    for place, value in enumerate(values):
        same = not found and own is not None and value == own
        found |= same
        named.append((own if same else f"#{place}", value))
    return named


def _same_length(lists: dict[str, Sequence]) -> None:
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        counts = " and ".join(f"{length} {name}" for name, length in lengths.items())
        raise WrongRow(f"its lists are of unequal lengths: {counts}")


def _first_text(body: dict[str, Any], *names: str) -> str | None:
    texts = [body[name] for name in names if isinstance(body.get(name), str)]
    return texts[0] if texts else None
