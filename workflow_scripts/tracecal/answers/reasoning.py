"""Reasoning before an answer, in texts and among tokens.

`split_reasoning` splits a text, `with_traced_tokens` an answer with its tokens.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from pydantic import JsonValue

from tracecal.answers.raw_answer import (
    UNDECODED,
    RawAnswer,
    Reasoning,
    infer_stop_token,
    without_text,
)
from tracecal.errors import WrongRow

# Marks around reasoning, as DeepSeek, Qwen and most others, Mistral and Seed write them.
MARKS = {"<think>": "</think>", "[THINK]": "[/THINK]", "<seed:think>": "</seed:think>"}
# The content of a message: a text, or parts, which may be texts.
Content = str | list[str | dict[str, JsonValue]] | None
# The types of parts that hold reasoning, and the fields of them that hold its text.
THOUGHTS = ("thinking", "reasoning", "redacted_thinking", "reasoning_content")
THOUGHT_TEXTS = ("thinking", "reasoning", "reasoning_content", "text", "summary")
INSEPARABLE = (
    "its tokens do not spell its reasoning and then its answer, so they cannot be told apart; give "
    "the texts of all tokens, or read both as one (--reasoning within)"
)


def split_reasoning(text: str) -> tuple[str, str] | None:
    """Split a text into the reasoning at its beginning and the rest; None without reasoning.

    A template may have written the opening mark into the prompt. Nothing follows reasoning that
    does not end.

    >>> split_reasoning("<think>5 or 7?</think>\\n\\n7")
    ('5 or 7?', '7')
    """
    for opening, closing in MARKS.items():
        before, mark, after = text.partition(closing)
        inner = before.lstrip()
        if inner.startswith(opening) or (mark and opening not in before):
            return inner.removeprefix(opening), after.lstrip()
    return None


def split_content(content: Content) -> tuple[str | None, str | None]:
    """Split a message into its text and the reasoning among its parts.

    The reasoning is empty where it is hidden, and None where there is none.

    >>> split_content([{"type": "thinking", "thinking": "5 or 7?"}, {"type": "text", "text": "7"}])
    ('7', '5 or 7?')
    """
    if not isinstance(content, list):
        return content, None
    parts = [part if isinstance(part, dict) else {"text": part} for part in content]
    thoughts = [part for part in parts if part.get("type") in THOUGHTS or part.get("thought")]
    texts = [_text_of(part.get("text")) for part in parts if part not in thoughts]
    reasoning = [
        _text_of(next((part[name] for name in THOUGHT_TEXTS if part.get(name)), None))
        for part in thoughts
    ]
    return "".join(texts), "".join(reasoning) if thoughts else None


def _text_of(value: Any) -> str:
    """The text of a part's field: a text, an object with one, or a list of either."""
    if isinstance(value, list):
        return "".join(map(_text_of, value))
    value = value.get("text") if isinstance(value, dict) else value
    return value if isinstance(value, str) else ""


def counts_reasoning(usage: Any) -> bool:
    """Whether the `usage` of a response counts tokens of reasoning, which may be hidden.

    >>> counts_reasoning({"completion_tokens_details": {"reasoning_tokens": 12}})
    True
    """
    usage = usage if isinstance(usage, dict) else {}
    details = [usage.get(f"{kind}_tokens_details") for kind in ("completion", "output")]
    return any(isinstance(counts, dict) and counts.get("reasoning_tokens") for counts in details)


def with_traced_tokens(raw: RawAnswer, reasoning: Reasoning) -> RawAnswer:
    """Cut an answer to the tokens of its trace.

    With `reasoning` 'apart' the trace covers the answer, with 'alone' its reasoning, and with
    'within' both. An answer without a trace is returned unchanged, for a replay. Raises `WrongRow`
    if the tokens of both cannot be separated.
    """
    if reasoning == "within":
        return replace(raw, reasoning="within")
    texts = list(raw.tokens or [step.text for step in raw.steps])
    inside = split_reasoning(raw.answer or "")
    thoughts, answer = inside or (raw.thoughts, raw.answer)
    if thoughts is None and None not in texts and (spelled := split_reasoning("".join(texts))):
        thoughts = spelled[0]
    if thoughts is None:
        if reasoning == "alone":
            raise WrongRow("it holds no reasoning")
        return raw
    if not (answer or "").strip():
        return without_text(raw, has_reasoning=True)
    if not (raw.steps or raw.exact):
        return replace(raw, reasoning="within" if inside else "apart")
    first = _first_answer_token(texts, answer, thoughts)
    if reasoning == "alone" and not first:
        raise WrongRow("the tokens of its reasoning are not listed")
    traced = slice(first, None) if reasoning == "apart" else slice(0, first)
    steps, token_ids = raw.steps[traced], raw.token_ids
    ending = raw.stop_token
    if ending == "unknown":
        ending = infer_stop_token(answer, steps)
    return replace(
        raw,
        answer=answer,
        steps=steps,
        exact={name: values[traced] for name, values in raw.exact.items()},
        tokens=raw.tokens and raw.tokens[traced],
        token_ids=token_ids[traced] if token_ids and len(token_ids) == len(texts) else None,
        stop_token=ending if reasoning == "apart" else "none",
        reasoning=reasoning,
    )


def _first_answer_token(texts: Sequence[str | None], answer: str, thoughts: str) -> int:
    """Find the index of the first token that spells a character of the answer."""
    if not texts or None in texts:
        raise WrongRow(INSEPARABLE)
    spelled = "".join(texts)
    begin = _answer_begin(spelled, answer.strip(), thoughts.strip(), texts[-1].strip())
    return bisect_right(list(accumulate(map(len, texts))), begin)


def _answer_begin(spelled: str, answer: str, thoughts: str, last_token: str) -> int:
    """Find where the answer begins in the text that all tokens spell."""
    endings = ("", last_token)
    text = spelled.lstrip()
    n_blank = len(spelled) - len(text)
    if marked := split_reasoning(spelled):
        if marked[1].startswith(answer) or UNDECODED in marked[1]:
            return len(spelled) - len(marked[1])
    elif text.startswith(answer) and (
        thoughts not in spelled or not thoughts or text.removeprefix(answer).strip() in endings
    ):
        return n_blank  # only the tokens of the answer are listed
    elif thoughts and thoughts in spelled:
        # The marks are unknown, or no tokens: the answer follows, or ends the text.
        behind_thoughts = spelled.index(thoughts) + len(thoughts)
        for match in re.compile(re.escape(answer)).finditer(spelled, behind_thoughts):
            before, behind = spelled[behind_thoughts : match.start()], spelled[match.end() :]
            if not before.strip() or behind.strip() in endings:
                return match.start()
    raise WrongRow(INSEPARABLE)
