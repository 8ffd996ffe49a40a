"""One answer as read from any source: what is known of it, and what is missing."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Literal

import polars as pl

from tracecal.answers.tokens import Step, WrongRow

StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]

FLOATS = pl.List(pl.Float32)  # as in the traces
TRACE = ("surprisal", "entropy", "entropy_lower", "entropy_upper")
RECORDS = {
    "example_id": pl.String,
    "prompt": pl.String,
    "prompt_token_ids": pl.List(pl.Int32),
    "answer": pl.String,
    "token_ids": pl.List(pl.Int32),
    "tokens": pl.List(pl.String),
    "surprisal": FLOATS,
    "entropy": FLOATS,
    "entropy_lower": FLOATS,
    "entropy_upper": FLOATS,
    "top_k": pl.Int32,
    "finish_reason": pl.String,
    "stop_token": pl.String,
    "processed": pl.String,
    "reasoning": pl.String,
    "model": pl.String,
    "group_id": pl.String,
    "correct": pl.Boolean,
    "created": pl.Float64,
    "lacks": pl.String,
    "partial": pl.Struct(dict.fromkeys(TRACE, FLOATS)),
    "also": pl.List(pl.Struct({"name": pl.String, "path": pl.String, "value": pl.Float64})),
}


@dataclass(frozen=True, kw_only=True)
class Details:
    """What a row says of its answer besides the trace; null where it says nothing.

    `stop_token` says whether the trace includes the stop token ('none': it ended without one),
    `processed` whether its probabilities are those after temperature, penalties or truncation.
    `reasoning` says whether it precedes the answer, and of which tokens the trace then is: of the
    answer ('apart'), of the reasoning ('alone') or of both ('within'). Answers to variants of one
    question share a `group_id`. `created` is when it was given, in seconds since 1970.
    """

    answer: str | None = None
    prompt: str | None = None
    prompt_token_ids: Sequence[int] | None = None
    token_ids: Sequence[int] | None = None
    tokens: Sequence[str] | None = None
    finish_reason: str | None = None
    stop_token: StopToken = "unknown"
    processed: Known = "unknown"
    reasoning: Reasoning = "none"
    model: str | None = None
    group_id: str | None = None
    correct: bool | None = None
    created: float | None = None


@dataclass(frozen=True)
class Record(Details):
    """One answer and its trace.

    `surprisal` and the entropies have an entry per token, in nats. `entropy` is exact where there
    are no bounds, else their midpoint, from `top_k` tokens at each step; `lacks` says why a trace
    is incomplete. `partial` then holds its lists, null at the tokens that lack a value, for parts
    of the answer that lack none. `also` holds the columns of a user's own that were asked for.
    """

    example_id: str
    surprisal: Sequence[float] | None = None
    entropy: Sequence[float] | None = None
    entropy_lower: Sequence[float] | None = None
    entropy_upper: Sequence[float] | None = None
    top_k: int | None = None
    lacks: str | None = None
    partial: Mapping[str, Sequence[float | None] | None] | None = None
    also: Sequence[Mapping[str, str | float | None]] | None = None


# Whether an answer has exact entropies, the middle of top-k bounds, or none.
ENTROPY_KIND = (
    pl.when(pl.col("entropy").is_null())
    .then(pl.lit("none"))
    .when(pl.col("entropy_upper").is_null())
    .then(pl.lit("exact"))
    .otherwise(pl.lit("top-k"))
)


def entropy_kind(answers: pl.DataFrame) -> str:
    """The `ENTROPY_KIND` of answers (columns of `RECORDS`): top-k where any answer's is."""
    kinds = set(answers.select(ENTROPY_KIND).to_series())
    return next((kind for kind in ("top-k", "exact") if kind in kinds), "none")


def with_partial(answers: pl.DataFrame) -> pl.DataFrame:
    """The answers with lists that are null at the tokens that lack a value, where whole ones are
    missing.
    """
    parts = pl.col("partial").struct
    return answers.with_columns(pl.coalesce(name, parts.field(name)) for name in TRACE)


# The folder of a user's own columns, which answers hold as `also`.
ALSO = "also."


def own_column(name: str) -> pl.Expr:
    """The value of a user's own column."""
    own = pl.element().struct.field("name") == name
    values = pl.element().filter(own).struct.field("value")
    return pl.col("also").list.eval(values).list.first()


def also_in(answers: pl.DataFrame) -> dict[str, str]:
    """The further columns of answers by name, with their paths in a row."""
    told = answers.select(pl.col("also").explode()).unnest("also").drop_nulls("name")
    return dict(
        told.unique("name", keep="first", maintain_order=True).select("name", "path").rows()
    )


def as_frame(records: Iterable[Record]) -> pl.DataFrame:
    """The columns of `RECORDS`, a row per record, in their order."""
    return pl.DataFrame([vars(record) for record in records], schema=RECORDS)


# When an answer was given.


CENTURY = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def moment(value: Any) -> float | None:
    """A time in seconds since 1970: such a number, or as ISO 8601, which without an offset is UTC.

    Null for anything else, and for times outside this century, which are placeholders or durations.

    >>> moment("2026-03-01T12:00:00Z"), moment(0)
    (1772366400.0, None)
    """
    try:
        if isinstance(value, datetime | str) and not str(value).replace(".", "").isdecimal():
            when = datetime.fromisoformat(str(value))
            seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if CENTURY[0].timestamp() <= seconds < CENTURY[1].timestamp() else None


# The answer that a format's reader returns.


@dataclass(frozen=True)
class RawAnswer(Details):
    """An answer as its format states it; `exact` holds entropies that need not be computed, null
    at tokens that lack one.

    `thoughts` is the reasoning that is stated beside the answer, empty where it is not shown; null
    where there is none.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float | None]] = field(default_factory=dict)
    thoughts: str | None = None


def stop_token(
    text: str | None, steps: Sequence[Step], stop_reason: str | int | None = None
) -> StopToken:
    """Whether the last token is the stop token, which the answer's text leaves out.

    It is if the tokens spell more than the text, or if the last one has no text. Spaces at either
    end do not count, as servers strip them; where only spaces differ it is unknown. Only vLLM gives
    a `stop_reason`, and its tokens include the stop token or stop string.
    """
    if stop_reason is not None and steps:
        return "included"
    if text is None or not steps or any(step.text is None for step in steps):
        return "unknown"
    joined = "".join(step.text for step in steps).lstrip()
    if joined == text.lstrip():
        return "absent" if steps[-1].text else "included"
    more = joined.startswith(text.strip()) and joined.strip() != text.strip()
    # Parts of a character spell nothing, so the end alone is compared.
    last = steps[-1].text.strip(UNDECODED + " ") if UNDECODED in joined else ""
    return "included" if more or (last and not text.rstrip().endswith(last)) else "unknown"


# The reasoning of a model before its answer, and which tokens are of which.


# Marks that begin and end reasoning: of DeepSeek, Qwen and most others, of Mistral and of Seed.
MARKS = {"<think>": "</think>", "[THINK]": "[/THINK]", "<seed:think>": "</seed:think>"}
UNDECODED = "\ufffd"  # part of a character, as servers write it
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
