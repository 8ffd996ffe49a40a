"""The reasoning of a model before its answer."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from tracecal.answers.raw_answer import RawAnswer, Reasoning
from tracecal.answers.stop_token import UNDECODED, stop_token
from tracecal.answers.wrong_row import WrongRow

# Marks that begin and end reasoning: of DeepSeek, Qwen and most others, of Mistral and of Seed.
MARKS = {"<think>": "</think>", "[THINK]": "[/THINK]", "<seed:think>": "</seed:think>"}
NO_ANSWER = "it holds reasoning and no answer behind it"
INSEPARABLE = (
    "its tokens do not spell its reasoning and then its answer, so they cannot be told apart; give "
    "the texts of all tokens, or read both as one (--reasoning within)"
)


def parted(text: str) -> tuple[str, str] | None:
    """The reasoning at the beginning of a text and what follows; null where there is none.

    A template may have written the opening mark into the prompt. Nothing follows reasoning that
    does not end.

    >>> parted("<think>5 or 7?</think>\\n\\n7")
    ('5 or 7?', '7')
    """
    for opening, closing in MARKS.items():
        before, closed, after = text.partition(closing)
        inner = before.lstrip()
        if inner.startswith(opening) or (closed and opening not in before):
            return inner.removeprefix(opening), after.lstrip()
    return None


def counted(usage: Any) -> bool:
    """Whether an answer's `usage` counts tokens of reasoning, which need not be shown."""
    usage = usage if isinstance(usage, dict) else {}
    details = [usage.get(f"{name}_tokens_details") for name in ("completion", "output")]
    return any(isinstance(one, dict) and one.get("reasoning_tokens") for one in details)


def with_kept(raw: RawAnswer, kept: Reasoning) -> RawAnswer:
    """An answer with the tokens that its trace is to hold: those of the answer ('apart'), of its
    reasoning ('alone') or of both ('within').

    What has no trace is left as it is, for a replay. Raises `WrongRow` where there is no answer
    behind the reasoning, or its tokens cannot be told apart.
    """
    if kept == "within":
        return replace(raw, reasoning="within")
    texts = list(raw.tokens or [step.text for step in raw.steps])
    inside = parted(raw.answer or "")
    thoughts, answer = inside or (raw.thoughts, raw.answer)
    if thoughts is None and None not in texts and (spelled := parted("".join(texts))):
        thoughts = spelled[0]
    if thoughts is None:
        if kept == "alone":
            raise WrongRow("it holds no reasoning")
        return raw
    if not (answer or "").strip():
        raise WrongRow(NO_ANSWER)
    if not (raw.steps or raw.exact):
        return replace(raw, reasoning="within" if inside else "apart")
    first = _first_of_answer(texts, answer, thoughts)
    if kept == "alone" and not first:
        raise WrongRow("the tokens of its reasoning are not listed")
    own = slice(first, None) if kept == "apart" else slice(0, first)
    steps, ids = raw.steps[own], raw.token_ids
    ending = raw.stop_token if raw.stop_token != "unknown" else stop_token(answer, steps)
    return replace(
        raw,
        answer=answer,
        steps=steps,
        exact={name: values[own] for name, values in raw.exact.items()},
        tokens=raw.tokens and raw.tokens[own],
        token_ids=ids[own] if ids and len(ids) == len(texts) else None,
        stop_token=ending if kept == "apart" else "none",
        reasoning=kept,
    )


def _first_of_answer(texts: Sequence[str | None], answer: str, thoughts: str) -> int:
    """The number of the first token that spells a character of the answer."""
    if not texts or None in texts:
        raise WrongRow(INSEPARABLE)
    joined = "".join(texts)
    place = _answer_place(joined, answer.strip(), thoughts.strip(), texts[-1].strip())
    return bisect_right(list(accumulate(map(len, texts))), place)


def _answer_place(joined: str, answer: str, thoughts: str, last: str) -> int:
    """Where the answer begins in all that the tokens spell, `last` being the last of them."""
    ends = ("", last)
    text = joined.lstrip()
    blank = len(joined) - len(text)
    if marked := parted(joined):
        if marked[1].startswith(answer) or UNDECODED in marked[1]:
            return len(joined) - len(marked[1])
    elif text.startswith(answer) and (
        thoughts not in joined or not thoughts or text.removeprefix(answer).strip() in ends
    ):
        return blank  # only the answer's tokens are listed
    elif thoughts and thoughts in joined:
        # The marks are unknown, or no tokens of their own: the answer follows, or ends the text.
        begin = joined.index(thoughts) + len(thoughts)
        for found in re.compile(re.escape(answer)).finditer(joined, begin):
            before, behind = joined[begin : found.start()], joined[found.end() :]
            if not before.strip() or behind.strip() in ends:
                return found.start()
    raise WrongRow(INSEPARABLE)
