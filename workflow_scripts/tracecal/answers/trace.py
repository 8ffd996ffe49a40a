"""The trace of an answer: surprisals and entropies, computed from its steps.

`make_record(example_id, raw, reading)` makes the `Record` of an answer that a format has read.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tracecal.answers.entropy_bounds import EntropyBounds, Rounding, detect_rounding, entropy_bounds
from tracecal.answers.raw_answer import Details, RawAnswer, is_finish
from tracecal.answers.reading import Reading
from tracecal.answers.reasoning import with_traced_tokens
from tracecal.answers.record import TRACE, Record
from tracecal.answers.step import SAME, SLACK, Step, is_same_logprob, is_same_token
from tracecal.answers.vocabulary import ASSUMED, vocabulary_of
from tracecal.errors import WrongRow

DETAILS = tuple(field.name for field in fields(Details))
UNLISTED = -9999.0  # what servers write for a token that is not among the likeliest ones
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
    """Compute the record of an answer. Raises `WrongRow` where it is empty or a number is wrong."""
    raw = with_traced_tokens(raw, reading.reasoning)
    logprobs = listed_logprobs(raw.steps)
    surprisal, reason = surprisals(logprobs)
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
    if not (raw.answer or "").strip() and not (surprisal or raw.token_ids):
        raise WrongRow("the answer is empty")
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
    lacks = reason or entropy_reason
    trace |= {"vocabulary": vocabulary, "lacks": lacks, "partial": partial}
    return Record(example_id, surprisal, **trace, **details)


def _entropies(
    steps: Sequence[Step], logprobs: np.ndarray, exact: Mapping[str, Any], reading: Reading
) -> tuple[dict[str, Any], str | None]:
    """Compute the entropies and their bounds as fields of `Record`, or say why there are none.

    Entropies that the row states (`exact`) count, or else the bounds from `listed_logprobs`.
    """
    trace = dict(exact)
    if entropy := trace.get("entropy"):
        if max(entropy) > (highest := math.log(reading.vocabulary or math.inf)) + SLACK:
            raise WrongRow(
                f"it has the entropy {max(entropy):g}, above {highest:.4g}, the most that the "
                "vocabulary allows: entropies must be in nats"
            )
        return trace, None
    bounds, reason = _bound_entropies(steps, logprobs, reading)
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


def generated_entries(step: Step) -> list[tuple[Hashable, float | None]]:
    """Return the pairs of `top` that stand for the generated token.

    Programs name it by bytes on one side only, lose its blank, round one of its log-probabilities,
    or list it twice. Different tokens may share a text, but differ in log-probability.

    >>> generated_entries(Step("Oslo", None, -0.25, [("Oslo", -0.25), ("Rome", -2.0)], "Oslo"))
    [('Oslo', -0.25)]
    """
    logprob = step.logprob
    if logprob is None:
        return [pair for pair in step.top if pair == (step.key, None)]
    allowance = SAME * max(1.0, -logprob)  # as `is_same_logprob`, which is slow for thousands
    low, high = logprob - allowance, logprob + allowance
    return [
        pair
        for pair in step.top
        if pair[1] is not None and low <= pair[1] <= high and is_same_token(pair[0], step.key)
    ]


def surprisals(logprobs: np.ndarray) -> tuple[list[float] | None, str | None]:
    """Compute -ln p of each generated token (nats), or return None and the reason."""
    if not len(logprobs):
        return None, "no log-probabilities are given"
    if len(missing := np.flatnonzero(logprobs[:, 0] == -np.inf)):
        return None, f"the log-probability of token {missing[0] + 1} is not given"
    return (0.0 - logprobs[:, 0]).tolist(), None


def _bound_entropies(
    steps: Sequence[Step], logprobs: np.ndarray, reading: Reading
) -> tuple[EntropyBounds | None, str | None]:
    """Bound the entropy of each step; or return None and the reason. Raises `WrongRow`.

    `reading` says how many tokens the vocabulary has, whether decoding was greedy, so that the
    generated token is the likeliest one, and how log-probabilities were rounded (else detected).
    """
    vocabulary = reading.vocabulary
    if not any(step.top for step in steps):
        return None, "no top log-probabilities are given"
    listed = logprobs > -np.inf
    finite, n_listed = np.where(listed, logprobs, 0.0), listed.sum(1)
    if vocabulary is not None and n_listed.max() > vocabulary:
        t = (n_listed > vocabulary).argmax()
        excess = f"{n_listed[t]} tokens are listed for token {t + 1}"
        raise WrongRow(f"{excess}, more than the vocabulary's {vocabulary}")
    if reading.rounding is None:
        rounding = detect_rounding(logprobs[listed])
    else:
        rounding = Rounding(reading.rounding)
    slack = SLACK + np.expm1(rounding.errors(finite).max(1))
    total = np.exp(logprobs).sum(1)
    if (total > 1 + slack).any():
        t = (total > 1 + slack).argmax()
        raise WrongRow(f"the probabilities listed for token {t + 1} sum to {total[t]:.4g}, above 1")
    for t, step in enumerate(steps, 1):
        if reason := _contradiction(step):
            return None, f"token {t} {reason}"
    if not n_listed.all():
        return None, f"no top log-probabilities are given for token {n_listed.argmin() + 1}"
    smallest, generated = finite.min(1), logprobs[:, 0]
    if not reading.greedy:  # the generated token may be listed only because it was generated
        smallest_alternative = finite[:, 1:].min(1, initial=0.0)
        alone = listed[:, 0] & (generated <= smallest)
        smallest = np.where(alone, smallest_alternative, smallest)
    cap = np.where([step.merged for step in steps], 1.0, np.exp(smallest))
    return entropy_bounds(logprobs, vocabulary, cap, rounding), None


def _contradiction(step: Step) -> str | None:
    """Say why the listed tokens contradict a step's generated token; None if they do not.

    A generated token that is likelier than the least likely listed one is listed, too. Where no
    entry is known to be it, it would count twice.
    """
    if step.logprob is None or step.merged or generated_entries(step):
        return None
    listed = [logprob for _, logprob in step.top if logprob is not None and logprob > UNLISTED]
    if not listed or step.logprob <= UNLISTED:
        return None
    least = min(listed)
    if step.logprob <= least or is_same_logprob(step.logprob, least):
        return None
    return (
        f"has the log-probability {step.logprob:g}, above the least of the likeliest tokens listed "
        f"for it ({least:g}), but is not among them"
    )


def largest_top_k(steps: Sequence[Step], logprobs: np.ndarray) -> int:
    """Return the largest number of distinct tokens that a step lists."""
    listed = logprobs > -np.inf
    listed[:, 0] &= [bool(generated_entries(step)) for step in steps]
    return int(listed.sum(1).max())
