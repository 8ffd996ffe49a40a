"""The trace of an answer: surprisals and entropies, computed from its steps.

`make_record(example_id, raw, reading)` makes the `Record` of an answer that a format has read.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tracecal.answers.entropy_bounds import ASSUMED, bound_entropies, largest_top_k, vocabulary_of
from tracecal.answers.raw_answer import (
    SLACK,
    UNLISTED,
    Details,
    RawAnswer,
    Step,
    generated_entries,
    is_finish,
    with_no_answer,
    without_text,
)
from tracecal.answers.reading import LARGEST_VOCABULARY, Reading
from tracecal.answers.reasoning import with_traced_tokens
from tracecal.answers.record import TRACE, Record
from tracecal.errors import WrongRow

DETAILS = tuple(field.name for field in fields(Details))
# Reasons why decoding ended, in the words of programs and of traces.
FINISHES = {
    "stop": "stop",
    "eos": "eos",
    "eos_token": "eos",
    "end_turn": "eos",
    "length": "length",
    "limit": "length",
    "max_tokens": "length",
    "word": "stop",
    "stop_sequence": "stop",
}


def make_record(example_id: str, raw: RawAnswer, reading: Reading) -> Record:
    """Compute the record of an answer. Raises `WrongRow` where a number is wrong."""
    raw = with_no_answer(raw)
    if raw.no_answer is None:
        raw = with_traced_tokens(raw, reading.reasoning)
    logprobs = listed_logprobs(raw.steps)
    surprisal, reason = surprisals(logprobs)
    _require_possible(raw.exact, reading.vocabulary)
    exact = {name: values for name, values in raw.exact.items() if None not in values}
    if reading.vocabulary is None and not exact.get("entropy"):  # which no assumption contradicts
        n_listed = (logprobs > -np.inf).sum(1).max(initial=1)
        vocabulary = vocabulary_of(reading.model or raw.model) or ASSUMED
        reading = reading.model_copy(update={"vocabulary": max(vocabulary, int(n_listed))})
    trace, entropy_reason = _entropies(raw.steps, logprobs, exact, reading)
    partial = None
    if surprisal is None or "entropy" not in trace:
        partial, top_k = _partial_trace(raw, logprobs, reading)
        trace["top_k"] = trace.get("top_k", top_k)
    vocabulary = None if trace.get("top_k") is None else reading.vocabulary
    if not ((raw.answer or "").strip() or surprisal or raw.token_ids or raw.no_answer):
        raw, trace, partial = without_text(raw, raw.thoughts is not None), {}, None
    tokens, texts = raw.tokens, [step.text for step in raw.steps]
    if tokens is None and texts and None not in texts:
        tokens = texts
    finish_reason = FINISHES.get(raw.finish_reason or "", raw.finish_reason)
    if not is_finish(finish_reason):
        finish_reason = None
    stop_token = reading.stop_token
    if stop_token == "auto":
        stop_token = "none" if finish_reason == "length" else raw.stop_token
    details = {name: getattr(raw, name) for name in DETAILS} | {
        "tokens": tokens,
        "finish_reason": finish_reason,
        "stop_token": stop_token,
        "processed": raw.processed if reading.processed == "auto" else reading.processed,
        "model": reading.model or raw.model,
    }
    lacks = raw.no_answer or reason or entropy_reason
    trace |= {"vocabulary": vocabulary, "lacks": lacks, "partial": partial}
    return Record(example_id, surprisal, **trace, **details)


def _require_possible(exact: Mapping[str, Sequence[float | None]], vocabulary: int | None) -> None:
    """Raise `WrongRow` for a stated entropy that exceeds the logarithm of the vocabulary's size."""
    highest = math.log(vocabulary or LARGEST_VOCABULARY)
    for name, values in exact.items():
        stated = max((value for value in values if value is not None), default=0.0)
        if stated > highest + SLACK:
            raise WrongRow(
                f"it has the {name} {stated:g}, above {highest:.4g}, the most that "
                f"{'the' if vocabulary else 'any'} vocabulary allows: entropies must be in nats"
            )


def _entropies(
    steps: Sequence[Step], logprobs: np.ndarray, exact: Mapping[str, Any], reading: Reading
) -> tuple[dict[str, Any], str | None]:
    """Compute the entropies and their bounds as fields of `Record`, or say why there are none.

    Entropies that the row states (`exact`) count, or else the bounds from `listed_logprobs`.
    """
    trace = dict(exact)
    if "entropy" in trace:
        return trace, None
    bounds, reason = bound_entropies(steps, logprobs, reading)
    if bounds is None:
        return trace, reason
    trace["entropy_lower"] = bounds.lower.tolist()
    trace["entropy"] = bounds.middle.tolist()
    trace["top_k"] = largest_top_k(steps, logprobs)
    trace["entropy_upper"] = bounds.upper.tolist()
    return trace, None


def _partial_trace(
    raw: RawAnswer, logprobs: np.ndarray, reading: Reading
) -> tuple[dict[str, Any] | None, int | None]:
    """Compute the lists of an incomplete trace, with None for missing values, and its `top_k`.

    None if no token has a log-probability.
    """
    listed = logprobs > -np.inf
    if not len(logprobs) or not listed[:, 0].any():
        return None, None
    surprisal = [None if value == -np.inf else 0.0 - value for value in logprobs[:, 0].tolist()]
    lists: dict[str, Any] = dict.fromkeys(TRACE) | {"surprisal": surprisal}
    if "entropy" in raw.exact:
        return lists | raw.exact, None
    rows = np.flatnonzero(listed.any(axis=1)).tolist()
    trace, _ = _entropies([raw.steps[row] for row in rows], logprobs[rows], {}, reading)
    for name in {*trace} & {*TRACE}:
        value_of_row = dict(zip(rows, trace[name], strict=True))
        lists[name] = [value_of_row.get(row) for row in range(len(logprobs))]
    return lists, trace.get("top_k")


def listed_logprobs(steps: Sequence[Step]) -> np.ndarray:
    """Return the log-probabilities [T, 1 + k]: first the generated token's, then the others'.

    They are at most 0, and -inf where none is listed. Raises `WrongRow` for NaN or above 0.

    >>> listed_logprobs([Step("a", 1, -0.25, [("b", -2.0)], "a"), Step("c", 3, None)])
    array([[-0.25, -2.  ],
           [ -inf,  -inf]])
    """
    try:
        rows = [_distinct_logprobs(step) for step in steps]
        width = max(map(len, rows), default=1)
        padded = [row + [None] * (width - len(row)) for row in rows]
        logprobs = np.array(padded, dtype=float).reshape(len(rows), width)
    except (TypeError, ValueError) as error:
        raise WrongRow("one of its log-probabilities is no number") from error
    is_usual = logprobs <= SLACK  # not None or NaN
    for t, column in () if is_usual.all() else np.argwhere(~is_usual):
        if padded[t][column] is not None:
            value = logprobs[t, column]
            text = "NaN" if np.isnan(value) else f"{value:g}, above 0"
            raise WrongRow(f"token {t + 1} has the log-probability {text}")
    return np.where(logprobs > UNLISTED, np.minimum(logprobs, 0.0), -np.inf)


def _distinct_logprobs(step: Step) -> list[float | None]:
    """Return the log-probabilities of the generated token and of the other listed tokens.

    Servers may add the generated token to the k likeliest ones or list it twice: the list without
    it holds the likeliest of the others. Different tokens of one text differ in probability.
    """
    alternatives = dict.fromkeys(step.top)
    for pair in generated_entries(step):
        alternatives.pop(pair, None)
    return [step.logprob, *[logprob for _, logprob in alternatives]]


def surprisals(logprobs: np.ndarray) -> tuple[list[float] | None, str | None]:
    """Compute -ln p of each generated token (nats), or return None and the reason."""
    if not len(logprobs):
        return None, "no log-probabilities are given"
    if len(missing := np.flatnonzero(logprobs[:, 0] == -np.inf)):
        return None, f"the log-probability of token {missing[0] + 1} is not given"
    return (0.0 - logprobs[:, 0]).tolist(), None
