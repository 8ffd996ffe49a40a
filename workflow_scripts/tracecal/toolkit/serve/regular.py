"""Regular log-probabilities as a record, with NumPy, some ten times faster than `logs` reads a row.

The numbers are those of `tracecal.logs`, which reads whatever is not regular here and says what is
wrong with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracecal.logs.steps import SLACK, UNLISTED
from tracecal.logs.top_k import ROUNDING, Rounding, detect_rounding

# A probability below which `logs` sums a tail otherwise.
SMALLEST = 2.0**-50


@dataclass(frozen=True)
class Steps:
    """The tokens of an answer: texts [T], log-probabilities [T] and, padded with -inf, those of
    the other tokens listed [T, K]; of a step at most `most_listed` tokens are listed."""

    texts: list[str]
    own: np.ndarray
    others: np.ndarray
    most_listed: int


def regular_steps(logprobs: Any) -> Steps | None:
    """The tokens of a choice's `logprobs`; null where anything about them is unusual."""
    try:
        tokens = logprobs["content"] if "content" in logprobs else _old_tokens(logprobs)
        return _steps(tokens)
    except (TypeError, KeyError, ValueError, AttributeError):
        return None


def _old_tokens(logprobs: dict[str, Any]) -> list[dict[str, Any]]:
    """The lists of a legacy completion in the form of a chat's; all steps list as many tokens."""
    lists = (logprobs[name] for name in ("tokens", "token_logprobs", "top_logprobs"))
    tokens = [
        {"token": text, "logprob": own, "top_logprobs": top}
        for text, own, top in zip(*lists, strict=True)
    ]
    if len({len(one["top_logprobs"]) for one in tokens}) > 1:
        raise ValueError("tokens of one text were merged")
    return tokens


def _steps(tokens: Sequence[dict[str, Any]]) -> Steps | None:
    texts, own, others, most_listed = [], [], [], 0
    for token in tokens:
        text, value, top = token["token"], token["logprob"], token["top_logprobs"]
        if isinstance(top, dict):
            listed = dict(top)
        else:
            listed = {one["token"]: one["logprob"] for one in top}
        plain = len(listed) == len(top) and "id" not in token and not text.startswith("token_id:")
        if not plain or listed.pop(text, value) != value:
            return None
        most_listed = max(most_listed, len(top))
        texts.append(text)
        own.append(value)
        others.append(list(listed.values()))
    most = max(map(len, others), default=0)
    if not most:
        return None
    padded = [values + [-np.inf] * (most - len(values)) for values in others]
    steps = Steps(texts, np.array(own, dtype=float), np.array(padded, dtype=float), most_listed)
    known = np.concatenate([steps.own, steps.others[np.isfinite(steps.others)]])
    nothing_odd = (known > UNLISTED).all() and (known <= SLACK).all()  # false for NaN
    if not nothing_odd or np.isnan(steps.others).any():
        return None
    return steps if detect_rounding(known[known < 0]) == Rounding() else None


def entropy_bounds(
    steps: Steps, vocabulary: int, greedy: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """`logs.top_k.entropy_bounds` of all steps: lower, middle and upper, each [T].

    Null where the log-probabilities cannot be those of one distribution over the vocabulary.
    """
    own, others = np.minimum(steps.own, 0.0), np.minimum(steps.others, 0.0)
    p = np.exp(np.column_stack([own, others]))
    listed = 1 + np.isfinite(others).sum(1)
    total = p.sum(1)
    least = np.exp(np.where(np.isfinite(others), others, 0.0).min(1))  # 1 where nothing is listed
    cap = np.minimum(least, p[:, 0])
    if not greedy:  # the chosen token may be listed only because it was chosen
        cap = np.where(p[:, 0] <= least, least, cap)
    if (total > 1 + SLACK).any() or listed.max() > vocabulary or cap.min() < SMALLEST:
        return None
    head, tail = _entr(p).sum(1), np.maximum(1 - total, 0.0)
    ends = np.maximum(tail - ROUNDING, 0.0), np.minimum(tail + ROUNDING, 1.0)
    multiple = np.ceil(ends[0] / cap) * cap
    tails = np.stack([tail, *ends, np.where(multiple <= ends[1], multiple, ends[1])])
    whole = np.floor(tails / cap)
    steepest = whole * _entr(cap) + _entr(np.maximum(tails - whole * cap, 0.0))
    allowed = ROUNDING * (head + 2)
    lower = np.maximum(head + steepest[1:].min(0) - allowed, 0.0)
    rest = vocabulary - listed
    widest = np.minimum(np.maximum(rest / np.e, ends[0]), ends[1])
    flattest, upper = (
        (_entr(t) + t * np.log(np.maximum(rest, 1))) * (rest > 0) for t in (tail, widest)
    )
    middle = head + (np.minimum(steepest[0], flattest) + flattest) / 2
    return np.minimum(lower, middle), middle, np.maximum(head + upper + allowed, middle)


def _entr(p: np.ndarray) -> np.ndarray:
    """-p ln p, 0 for 0."""
    return -p * np.log(np.where(p > 0, p, 1.0))
