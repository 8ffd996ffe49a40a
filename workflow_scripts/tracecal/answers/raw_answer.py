"""An answer as its format states it, and what of its text and tokens is the answer.

A format makes a `RawAnswer`, of tokens and details without a trace yet. `split_reasoning` splits a
text, `with_traced_tokens` an answer with its tokens; `with_no_answer` says of an answer that was
not given why.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from tracecal.answers.tokens import ID_PREFIX, UNDECODED, Step, StopToken, infer_stop_token
from tracecal.answers.tokens import MARKS as BLANKS
from tracecal.errors import WrongRow

Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]
# Why a model gave no answer, as it stands beside a score.
NoAnswer = Literal[
    "refused", "called a tool", "empty", "filtered", "cut while reasoning", "request failed"
]


class Marks(NamedTuple):
    """What opens and what closes reasoning; ``{name}`` is the name in the opening mark.

    Of marks that are `words`, both are there. Else a template may have written the first into the
    prompt, and the second is missing where reasoning has not ended.
    """

    opening: str
    closing: str
    words: bool = False


_NAME = (
    r"(?P<name>[\w:.-]*"
    r"(?:think|thought|reason|analys|scratchpad|reflect|deliberat|monologue)[\w:.-]*)"
)
_HEADER = r"[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
# The marks of families of models, as they stand in texts. The last are Granite's.
MARKS = (
    Marks(rf"<(?i:{_NAME})>", "</{name}>"),  # DeepSeek, Qwen, Seed and most others
    Marks(  # OpenThinker
        rf"<\|begin_of_(?i:{_NAME})\|>", r"<\|end_of_{name}\|>\s*(?:<\|begin_of_solution\|>)?"
    ),
    Marks(r"\[THINK\]", r"\[/THINK\]"),  # Mistral
    Marks(rf"\[(?i:{_NAME})\]", r"\[/{name}\]", words=True),
    Marks("◁think▷", "◁/think▷"),  # Kimi
    Marks(  # gpt-oss
        rf"(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary){_HEADER}",
        rf"<\|channel\|>final{_HEADER}",
    ),
    Marks("analysis", "assistantfinal", words=True),  # gpt-oss, where a server drops its marks
    Marks(r"<\|channel>thought", r"<channel\|>"),  # Gemma
    Marks(
        r"<\|START_THINKING\|>", r"<\|END_THINKING\|>\s*(?:<\|START_(?:RESPONSE|TEXT)\|>)?"
    ),  # Cohere
    Marks(r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    Marks(r"Here(?:'s| is) my thought process:", r"Here(?:'s| is) my response:", words=True),
)
# What each of the marks has one of.
_ANY_MARK = re.compile(r"<[/|\w]|\[/?\w|◁|assistantfinal|my response:")
# What ends an answer behind such marks, where a server leaves it in the text.
_ANSWER_END = re.compile(r"\s*<\|(?:return|end|end_of_solution|END_RESPONSE|END_TEXT)\|>\s*$")
# What opens an answer among its tokens, which a server's parser drops.
_ANSWER_MARK = re.compile(r"<\|?\w{1,40}\|?>\s*")
# Pieces of words without their blanks ("Par@@ is", "Par ##is").
_IS_PIECE = re.compile(r"##\w|\w+@@$").match
# Special tokens, blanks and parts of characters.
_INVISIBLE = re.compile(rf"<\|?[^<>\s]{{1,40}}\|?>|[\s{UNDECODED}]+")
# The words for the end of an answer that say so.
NO_ANSWERS: Mapping[str, NoAnswer] = {
    **dict.fromkeys(("refusal", "refused"), "refused"),
    **dict.fromkeys(
        ("tool_calls", "tool_call", "tool_use", "function_call", "malformed_function_call"),
        "called a tool",
    ),
    **dict.fromkeys(("unexpected_tool_call", "too_many_tool_calls"), "called a tool"),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "blocklist", "spii"),
        "filtered",
    ),
    **dict.fromkeys(("prohibited_content", "guardrail_intervened", "error_toxic"), "filtered"),
    **dict.fromkeys(("sensitive", "image_safety", "image_prohibited_content"), "filtered"),
    **dict.fromkeys(("error", "abort", "timeout", "network_error"), "request failed"),
    "insufficient_system_resource": "request failed",  # DeepSeek's
}
# The words of programs for the end of an answer, in small letters, as records have them.
FINISHES = {
    **dict.fromkeys(("complete", "completed", "word", "stop_sequence"), "stop"),
    **dict.fromkeys(("eos_token", "end_turn"), "eos"),
    **dict.fromkeys(("limit", "max_tokens", "model_length", "incomplete"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("failed", "cancelled"), "error"),
}
NO_FINISHES = ("", "null", "none", "in_progress", "queued")  # of an answer that goes on
OTHER_TEXT = "the tokens spell another text"
# The content of a message: a text, or parts, which may be texts.
Content = str | list[str | dict[str, JsonValue]] | None
# The types of parts that hold reasoning, and the fields of them that hold its text.
THOUGHTS = ("thinking", "reasoning", "redacted_thinking", "reasoning_content")
THOUGHT_TEXTS = ("thinking", "reasoning", "reasoning_content", "text", "summary")
INSEPARABLE = (
    "its tokens do not spell its reasoning and then its answer, so they cannot be told apart; give "
    "the texts of all tokens, or read both as one (--reasoning within)"
)


@dataclass(frozen=True, kw_only=True)
class Details:
    """Facts that a row states about its answer besides the trace; None if it states none.

    Attributes
    ----------
    asked
        A digest of what was sent and of the row's own columns of the question, where the prompt
        alone does not say it.
    stop_token
        Whether the trace includes the stop token; 'none' where the answer ended without one.
    processed
        Whether the probabilities are those after temperature, penalties or truncation.
    decoding
        The settings of the request that change probabilities; None where it leaves them open.
    reasoning
        Whether reasoning precedes the answer, and whose tokens the trace then holds: the answer's
        ('apart'), the reasoning's ('alone') or both ('within').
    group_id
        Shared by the answers to variants of one question.
    row_task
        The task that the row names.
    unsure
        Whether the verdict was "unsure", which counts as wrong.
    asked_for
        True where 'tracecal label --error-rate' asked for the verdict, as it decides.
    created
        When the answer was given, in seconds since 1970.
    no_answer
        Why the model gave no answer; `answer` may then hold its refusal, or what it said before.
    also
        The user's own columns: `name`, `path` and `value` of each.
    """

    answer: str | None = None
    prompt: str | None = None
    asked: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    decoding: str | None = None
    reasoning: Reasoning = "none"
    model: str | None = None
    group_id: str | None = None
    row_task: str | None = None
    correct: bool | None = None
    unsure: bool = False
    asked_for: bool | None = None
    created: float | None = None
    no_answer: NoAnswer | None = None
    also: Sequence[Mapping[str, str | float | None]] | None = None


@dataclass(frozen=True)
class RawAnswer(Details):
    """An answer as its format states it.

    Attributes
    ----------
    exact
        Entropies that need not be computed, by name; None at tokens that lack one.
    thoughts
        The reasoning beside the answer, empty where it is hidden; None without reasoning.
    refusal
        The model's refusal, where a program keeps it apart from the answer.
    calls_tool
        Whether the model called a tool, which a text may precede.
    verdicts
        The verdicts of a harness, by their paths in the row; one counts where no label is named.
    stated
        The verdicts beside the answer, by name, as they are written; they must agree.
    lacks
        Why there is no trace, where tokens are listed that are not the answer's.
    stop
        The stop string or token that ended the answer, where its program says so.
    is_greedy
        Whether the likeliest token was taken at each step.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float | None]] = field(default_factory=dict)
    thoughts: str | None = None
    refusal: str | None = None
    calls_tool: bool = False
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    lacks: str | None = None
    stop: str | int | None = None
    is_greedy: bool = False


def split_reasoning(text: str) -> tuple[str, str] | None:
    """Split a text into the reasoning at its beginning and the rest; None without reasoning.

    A template may have written the opening mark into the prompt. Nothing follows reasoning that
    does not end.

    >>> split_reasoning("<think>5 or 7?</think>\\n\\n7")
    ('5 or 7?', '7')
    """
    if _ANY_MARK.search(text) is None:
        return None
    for opening, closing, words in MARKS:
        begin = re.match(opening, text.lstrip())
        end = re.search(closing.replace("{name}", f"(?i:{_NAME})"), text)
        if words and not (begin and end):
            continue
        if begin is not None:
            inner = text.lstrip()[begin.end() :]
            name = re.escape(begin["name"]) if "{name}" in closing else ""
            thoughts, *after = re.split(closing.replace("{name}", name), inner, maxsplit=1)
            rest = "".join(after).lstrip()
            further = split_reasoning(rest) if re.match(opening, rest) else None
            return (thoughts + further[0], further[1]) if further else (thoughts, rest)
        if end is not None and not re.search(opening, text[: end.start()]):
            return text[: end.start()], text[end.end() :].lstrip()
    return None


def is_spelled(text: str, tokens: Sequence[str | None], stops: Sequence[Any] = ()) -> bool:
    """Return whether tokens spell a text, which a stop token or stop string may follow.

    Blanks at both ends are ignored, as servers strip them. Tokens that hold part of a character
    are skipped; those that are ids have no text to compare.

    >>> is_spelled("Paris", ["Par", "is", "END"], ["END"]), is_spelled("Paris", ["Rome"], [])
    (True, False)
    """
    if not tokens or None in tokens:
        return False
    if any(str(token).startswith(ID_PREFIX) for token in tokens):
        return True
    spelled, text = "".join(map(str, tokens)).lstrip(), text.strip()
    if spelled.startswith(text):
        rest = spelled.removeprefix(text)
        is_stopped = any(isinstance(stop, str) and stop and stop in rest for stop in stops)
        return rest.strip() in ("", str(tokens[-1]).strip()) or is_stopped
    return UNDECODED in spelled and _is_spelled_around(spelled, text)


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
    >>> counts_reasoning({"candidatesTokenCount": 2, "thoughtsTokenCount": 88})
    True
    """
    if not isinstance(usage, dict):
        return isinstance(usage, int) and usage > 0
    return any(
        counts_reasoning(count)
        for name, count in usage.items()
        if isinstance(count, dict) or any(word in name.lower() for word in ("reason", "thought"))
    )


def with_traced_tokens(raw: RawAnswer, reasoning: Reasoning) -> RawAnswer:
    """Cut an answer to the tokens of its trace.

    With `reasoning` 'apart' the trace covers the answer, with 'alone' its reasoning, and with
    'within' both. An answer without a trace is returned unchanged, for a replay. Raises `WrongRow`
    if the tokens of both cannot be separated.
    """
    if reasoning == "within":
        return replace(raw, reasoning="within")
    texts = list(raw.tokens or [step.text for step in raw.steps])
    if inside := split_reasoning(raw.answer or ""):
        end = _ANSWER_END.search(inside[1])
        inside = inside[0], inside[1][: end.start()] if end else inside[1]
        raw = replace(raw, stop_token="unknown" if end else raw.stop_token)
    thoughts, answer = inside or (raw.thoughts, raw.answer)
    if thoughts is None and None not in texts and (spelled := split_reasoning("".join(texts))):
        thoughts = spelled[0]
    if thoughts is None:
        if reasoning == "alone":
            raise WrongRow("it holds no reasoning")
        return _with_own_tokens(raw, texts)
    if not (answer or "").strip():
        return without_text(raw, has_reasoning=True)
    if not (raw.steps or raw.exact):
        return replace(raw, reasoning="within" if inside else "apart")
    first = _first_answer_token(texts, answer, thoughts)
    if reasoning == "alone" and not first:
        raise WrongRow("the tokens of its reasoning are not listed")
    traced = slice(first, None) if reasoning == "apart" else slice(0, first)
    raw = replace(_with_tokens(raw, traced), answer=answer, reasoning=reasoning)
    ending = raw.stop_token
    if ending == "unknown":
        ending = infer_stop_token(answer, raw.steps)
    return replace(raw, stop_token=ending if reasoning == "apart" else "none")


def _with_tokens(raw: RawAnswer, tokens: slice) -> RawAnswer:
    """An answer with some of its tokens alone."""
    token_ids = raw.token_ids
    has_ids = token_ids is not None and len(token_ids) == len(raw.tokens or raw.steps)
    return replace(
        raw,
        steps=raw.steps[tokens],
        exact={name: values[tokens] for name, values in raw.exact.items()},
        tokens=raw.tokens and raw.tokens[tokens],
        token_ids=token_ids[tokens] if token_ids and has_ids else None,
    )


def _with_own_tokens(raw: RawAnswer, texts: Sequence[str | None]) -> RawAnswer:
    """An answer with its own tokens alone, where those before it are of something that is left out.

    Without a trace where they spell another text.
    """
    answer = (raw.answer or "").strip()
    if not answer or not texts or None in texts:
        return raw
    tokens = [str(text) for text in texts]
    spelled = "".join(tokens)
    starts = [0, *accumulate(map(len, tokens))]
    if (text := spelled.lstrip()).startswith(answer):
        rest, end = text[len(answer) :], len(spelled) - len(text) + len(answer)
        is_cut = end not in starts and rest.strip() and not rest[0].isspace()
        if not is_cut or is_spelled(answer, tokens, [raw.stop]):
            return raw  # a stop token or stop string may follow
        return replace(raw, token_ids=None, lacks=OTHER_TEXT)
    visible = _INVISIBLE.sub("", spelled.translate(BLANKS))
    is_own = is_spelled(answer, [text or UNDECODED for text in tokens])
    if is_own or visible.startswith(_INVISIBLE.sub("", answer)):
        return raw
    has_marks = bool(raw.tokens) or visible != _INVISIBLE.sub("", spelled)
    if any(map(_IS_PIECE, tokens)) or (has_marks and not answer.isascii()):
        return raw  # the tokens are pieces, or write the bytes of letters
    begin = spelled.rfind(answer)
    if begin in starts and spelled[begin + len(answer) :].strip() in ("", tokens[-1].strip()):
        rest = _with_tokens(raw, slice(starts.index(begin), None))
        ending = infer_stop_token(answer, rest.steps)
        return replace(rest, stop_token=ending, reasoning="apart")
    return replace(raw, token_ids=None, lacks=OTHER_TEXT)


def _is_spelled_around(spelled: str, text: str) -> bool:
    """Return whether the text holds the tokens around split characters, in the same order."""
    end, n_parts = 0, spelled.count(UNDECODED)
    *fragments, last = spelled.split(UNDECODED)
    for fragment in fragments:
        start = text.find(fragment, end, end + n_parts + len(fragment))
        if start < 0:
            return False
        end = start + len(fragment)
    rest = text[end:]
    return any(last.startswith(rest[skipped:]) for skipped in range(n_parts + 1))


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
        for text in (marked[1], _ANSWER_MARK.sub("", marked[1], count=1)):
            if text.startswith(answer) or UNDECODED in text:
                return len(spelled) - len(text)
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


def finish(reason: Any) -> str | None:
    """Why an answer has ended, in small letters; None where a `finish_reason` says that it goes on.

    >>> finish("COMPLETE"), finish("null"), finish(None)
    ('stop', None, None)
    """
    word = str(reason or "").strip().removeprefix("FinishReason.").lower().replace("-", "_")
    return None if word in NO_FINISHES else FINISHES.get(word, word)


def stated_error(row: Any) -> Any:
    """What a program writes where there is no answer, or where a stream has failed; else nothing.

    LiteLLM writes `error_str`, vLLM an object 'error', and Langfuse its level.

    >>> stated_error({"object": "error", "message": "too long"})
    'too long'
    """
    if not isinstance(row, dict):
        return None
    is_error = "error" in (row.get("object"), row.get("type")) or row.get("level") == "ERROR"
    return row.get("error") or row.get("error_str") or (is_error and row.get("message", True))


def with_no_answer(raw: RawAnswer) -> RawAnswer:
    """An answer that says how it ended, and why it is none where the model gave none.

    A text before a tool call is an answer where its tokens can be told from those of the call.

    >>> with_no_answer(RawAnswer(answer="", finish_reason="tool_calls")).no_answer
    'called a tool'
    """
    if (ending := finish(raw.finish_reason)) != raw.finish_reason:
        raw = replace(raw, finish_reason=ending)
    text, is_blank = raw.answer, not (raw.answer or "").strip()
    reason = raw.no_answer or NO_ANSWERS.get(raw.finish_reason or "")
    if is_blank and raw.refusal:
        reason, text = "refused", raw.refusal
    elif raw.calls_tool or reason == "called a tool":
        n_tokens = None if is_blank else _n_before_call(raw)
        if n_tokens is not None and n_tokens < len(raw.steps):
            raw = _with_tokens(raw, slice(n_tokens))
            return replace(raw, tokens=None, token_ids=None, stop_token="none")
        reason = "called a tool" if n_tokens is None else None
    elif reason is None and is_blank and text is not None and raw.thoughts is None:
        reason = "empty"
    return raw if reason is None else _unanswered(raw, reason, text)


def _n_before_call(raw: RawAnswer) -> int | None:
    """How many tokens spell an answer and its reasoning; None where none do."""
    thoughts, text = split_reasoning(raw.answer or "") or (raw.thoughts or "", raw.answer or "")
    texts = [step.text for step in raw.steps]
    try:
        begin = _first_answer_token(texts, text, thoughts)
    except WrongRow:
        return None
    spelled = enumerate(accumulate(map(str, texts[begin:])), begin + 1)
    return next((n for n, part in spelled if part.strip() == text.strip()), None)


def without_text(raw: RawAnswer, has_reasoning: bool) -> RawAnswer:
    """An answer without a text: its reasoning reached the limit, or it is empty."""
    is_cut = raw.finish_reason in (None, "length")
    return _unanswered(raw, "cut while reasoning" if has_reasoning and is_cut else "empty", None)


def _unanswered(raw: RawAnswer, reason: NoAnswer, text: str | None) -> RawAnswer:
    """What is known of an answer that was not given; it has no tokens."""
    return replace(
        raw,
        answer=text,
        no_answer=reason,
        steps=(),
        exact={},
        tokens=None,
        token_ids=None,
        stop_token="none",
    )
