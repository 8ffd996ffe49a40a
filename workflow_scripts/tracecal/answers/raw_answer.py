"""An answer as its format states it: a `RawAnswer` of steps and details, without a trace yet.

A `Step` is a generated token with its log-probability and the likeliest tokens.

1. `read_logprobs(value, token_ids)` reads them from any of the forms that programs write:
   objects, as OpenAI's chats have, `{"token", "logprob", "top_logprobs": [the same of others]}`,
   perhaps with `id` and `bytes`, in a list or as `content` (TypeScript clients write
   `topLogprobs`, watsonx `text` and `top_tokens`); lists, as OpenAI's older completions have,
   `tokens` (or their ids), `token_logprobs` and `top_logprobs`; a list of text or id and
   log-probability for each token, or SGLang's of three; objects by token id, as vLLM has offline,
   `{"7": {"logprob", "rank", "decoded_token"}, …}`, or its ``FlatLogprobs``, the same in lists.
   `read_steps` reads the first.
2. `generated_entries` finds the generated token among its alternatives.
3. `trace` computes surprisals and entropies from them, and `option_share` the share of the chosen
   option among options: `--options A B C D` reads it as a further column of each answer, whose
   path, `options:A,B,C,D`, stands in the calibrator's file.
4. Most formats infer the stop token of an answer, by `infer_stop_token`; `reasoning` cuts an
   answer to the tokens of the trace, and `trace` makes the `Record` of it.
"""

import math
from codecs import getincrementaldecoder
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple

from tracecal.errors import WrongRow

# How far above 1 rounding may move a probability or a sum of probabilities.
SLACK = 1e-3
# How far apart two log-probabilities of one token may lie: programs round one of them, or compute
# both in single precision.
SAME = 1e-4
UNLISTED = -9999.0  # what servers write for a token that is not among the likeliest ones
# Tokenizers' marks of a blank and of a new line, where a program does not decode tokens.
MARKS = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n"})
# What identifies a token: its id, else its bytes (empty where unknown), else its text. A plain
# tuple, as an answer has thousands.
TokenKey = tuple[int | None, tuple[int, ...], str | None]
# Most of an answer: checked while it is read, since a model per token takes longest.
Token = dict[str, Any]
ID_PREFIX = "token_id:"  # vLLM's, of a token that it returns as an id instead of text
NAMELESS: TokenKey = (None, (), None)
FORMS = (
    "a list of objects with 'token' and 'logprob', an object with such a list as 'content', one "
    "with 'tokens' and 'token_logprobs', lists of text or id and log-probability, or objects by "
    "token id beside 'token_ids'"
)
# What programs call the list of a token's likeliest alternatives.
TOPS = ("top_logprobs", "topLogprobs", "top_tokens")
NAME, PREFIX = "option_share", "options:"
StopToken = Literal["included", "absent", "none", "unknown"]
Known = Literal["yes", "no", "unknown"]
Reasoning = Literal["none", "apart", "within", "alone"]
# Why a model gave no answer, as it stands beside a score.
NoAnswer = Literal[
    "refused", "called a tool", "empty", "filtered", "cut while reasoning", "request failed"
]
# The words of programs for the end of an answer, in small letters, that say so.
NO_ANSWERS: Mapping[str, NoAnswer] = {
    **dict.fromkeys(("refusal", "refused"), "refused"),
    **dict.fromkeys(
        ("tool_calls", "tool_call", "tool_use", "function_call", "malformed_function_call"),
        "called a tool",
    ),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "blocklist", "spii"),
        "filtered",
    ),
    **dict.fromkeys(("prohibited_content", "guardrail_intervened", "error_toxic"), "filtered"),
    **dict.fromkeys(("error", "abort", "cancelled", "failed"), "request failed"),
}
LIMITS = ("length", "limit", "max_tokens", "model_length")  # words of an answer that was cut
UNDECODED = "\ufffd"  # part of a character, as servers write it
NO_FINISHES = ("", "null", "none")  # what some servers write of an answer that goes on


class Step(NamedTuple):
    """A generated token with its log-probability, and the likeliest tokens.

    `top` holds a (key, log-probability) pair per token; `key` is the key of the generated token.
    `merged` says that tokens of equal text were merged, so that some are missing.
    """

    text: str | None
    token_id: int | None
    logprob: float | None
    top: Sequence[tuple[Hashable, float | None]] = ()
    key: Hashable = None
    merged: bool = False


def is_same_token(key: Hashable, other: Hashable) -> bool:
    """Whether two keys are of one token: by ids where both are known, else by bytes, else by text.

    >>> is_same_token(token_key(text="Oslo"), (None, tuple(b" Oslo"), None))
    True
    """
    if not (isinstance(key, tuple) and isinstance(other, tuple)):
        return key == other
    (token_id, spelling, text), (other_id, other_spelling, other_text) = key, other
    if token_id is not None and other_id is not None:
        return token_id == other_id
    if spelling and other_spelling:
        return spelling == other_spelling
    return _plain_text(spelling, text) == _plain_text(other_spelling, other_text)


def token_key(token_id: int | None = None, text: str | None = None) -> TokenKey:
    """The key of a token whose bytes are unknown."""
    return token_id, (), text


def plain_text(key: Hashable) -> str:
    """The text of the token of a key, without blanks at its ends."""
    _, spelling, text = key if isinstance(key, tuple) else (None, (), key)
    return _plain_text(spelling, text)


def _plain_text(spelling: tuple[int, ...], text: str | None) -> str:
    """The text of a token without blanks at its ends, which programs strip on one side."""
    text = bytes(spelling).decode(errors="replace") if spelling else str(text or "")
    return text.translate(MARKS).strip()


def is_same_logprob(logprob: float, other: float) -> bool:
    """Whether two log-probabilities differ by no more than rounding.

    >>> is_same_logprob(-1.203973, -1.20397)
    True
    """
    return abs(logprob - other) <= SAME * max(1.0, -logprob)


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


def lists_generated(step: Step) -> bool:
    """Whether a pair of `top` stands for the generated token.

    >>> lists_generated(Step("Oslo", None, -0.25, [("Rome", -2.0)], "Oslo"))
    False
    """
    return (step.key, step.logprob) in step.top or bool(generated_entries(step))


def step_token_ids(steps: Sequence[Step]) -> list[int] | None:
    """The token ids of `steps`; None where one is unknown.

    >>> step_token_ids([Step("Li", 5, -0.25), Step("ma", 7, -0.5)])
    [5, 7]
    """
    token_ids = [step.token_id for step in steps]
    return token_ids if token_ids and None not in token_ids else None


def require_id_per_step(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    """Raise `WrongRow` where `steps` and `token_ids` are both known and differ in number."""
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")


def read_logprobs(logprobs: Any, token_ids: Sequence[int] | None = None) -> list[Step]:
    """Read the steps of `logprobs` in any of the forms; none where it is empty or None.

    Raises `WrongRow` where it has another form, or `token_ids` are of another number.

    >>> read_logprobs({"tokens": ["7"], "token_logprobs": [-0.25]})[0].logprob
    -0.25
    """
    if not logprobs:
        return []
    if isinstance(logprobs, dict):
        # DeepSeek lists the tokens of the reasoning apart.
        listed = [logprobs.get(name) for name in ("reasoning_content", "content")]
        if any(isinstance(tokens, list) for tokens in listed):
            return read_steps([token for tokens in listed for token in tokens or ()], token_ids)
        if isinstance(logprobs.get("token_logprobs"), list):
            steps = _read_lists(logprobs)
            require_id_per_step(steps, token_ids)
            return steps
        if "start_indices" in logprobs:
            return _read_by_id(_unflattened(logprobs), token_ids)
        if any(value is not None for value in logprobs.values()):
            raise WrongRow(f"its logprobs are {_described(logprobs)}; expected {FORMS}")
        return []
    if isinstance(logprobs, list) and all(map(_is_by_id, logprobs)):
        return _read_by_id(logprobs, token_ids)
    if isinstance(logprobs, list) and all(map(_is_token, logprobs)):
        return read_steps(logprobs, token_ids)
    if isinstance(logprobs, list) and all(isinstance(entry, list | tuple) for entry in logprobs):
        steps = [Step(*entry, key=token_key(entry[1], entry[0])) for entry in map(_entry, logprobs)]
        require_id_per_step(steps, token_ids)
        return steps
    first = logprobs[0] if isinstance(logprobs, list) else logprobs
    raise WrongRow(f"an entry of its logprobs is {_described(first)}; expected {FORMS}")


def read_steps(
    tokens: Sequence[Token] | None, token_ids: Sequence[int] | None = None
) -> list[Step]:
    """Read the steps of a list of objects.

    Raises `WrongRow` where a token is malformed, or `token_ids` are of another number.

    >>> tokens = [{"token": "7", "logprob": -0.25, "top_logprobs": [{"token": "5", "logprob": -2}]}]
    >>> read_steps(tokens)[0].top[0][1]
    -2
    """
    try:
        steps = [
            read_step(token, next(filter(None, map(token.get, TOPS)), ())) for token in tokens or ()
        ]
    except AttributeError as error:
        raise WrongRow(f"an entry of its logprobs is no object; expected {FORMS}") from error
    require_id_per_step(steps, token_ids)
    return spelled(steps)


def spelled(steps: list[Step]) -> list[Step]:
    """Steps whose texts are what their bytes spell, where these are known.

    A character that is split over tokens is the text of the last of them.

    >>> [step.text for step in spelled([Step("?", 1, -0.1, (), (1, (195,), "?"))] +
    ...     [Step("?", 2, -0.1, (), (2, (188,), "?"))])]
    ['', 'ü']
    """
    listed = [step.key[1] if isinstance(step.key, tuple) else () for step in steps]
    try:
        text = "".join([step.text or "" for step in steps])
        if text.isascii() and bytes(chain.from_iterable(listed)).decode("latin1") == text:
            return steps  # as most are
        parts = [*map(bytes, listed)]
    except (TypeError, ValueError):  # they are no bytes
        return steps
    decoder, texts = getincrementaldecoder("utf-8")("replace"), list[str | None]()
    for part, step, following in zip(parts, steps, [*parts[1:], b""], strict=True):
        text = decoder.decode(part, final=not following)
        texts.append(text if part else step.text)
    return [step._replace(text=text) for step, text in zip(steps, texts, strict=True)]


def read_step(token: Token, top: Sequence[Token]) -> Step:
    """Read the step of a generated token and the `top` likeliest ones. Raises `WrongRow`.

    A token is identified by its id or bytes where these are known, since tokens may share a text.
    """
    try:
        text = (token["token"] if "token" in token else token.get("text")) or ""
        token_id = token.get("id")
        if type(token_id) not in (int, type(None)):
            raise TypeError
        if token_id is not None and _is_merged(token, top):
            return Step(text, None, None)
        key = token_id, tuple(token.get("bytes") or ()), text
        keys = [
            (
                candidate.get("id"),
                tuple(candidate.get("bytes") or ()),
                candidate["token"] if "token" in candidate else candidate.get("text"),
            )
            for candidate in top
        ]
        if NAMELESS in keys:
            raise KeyError("token")
        likeliest = [(key, each.get("logprob")) for key, each in zip(keys, top, strict=True)]
        if text.startswith(ID_PREFIX) and (number := text.removeprefix(ID_PREFIX)).isdecimal():
            token_id = int(number)
        return Step(text, token_id, token.get("logprob"), likeliest, key)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow(
            "its log-probabilities are no list of objects with 'token' and 'logprob'"
        ) from error


def _is_token(value: Any) -> bool:
    return isinstance(value, dict) and ("token" in value or {"text", "logprob"} <= value.keys())


def _entry(entry: Sequence[Any]) -> tuple[str | None, int | None, float | None]:
    """The text, id and log-probability of a token that is a list. Raises `WrongRow`."""
    text, token_id, logprob = None, None, None
    match entry:
        case [float() | int() as logprob, int() as token_id, str() | None as text]:
            pass
        case [str() as text, float() | int() | None as logprob]:
            pass
        case [int() as token_id, float() as logprob] | [float() as logprob, int() as token_id]:
            pass
        case _:
            raise WrongRow(f"an entry of its logprobs is {entry!r:.40}; expected {FORMS}")
    if bool in (type(token_id), type(logprob)):
        raise WrongRow(f"an entry of its logprobs is {entry!r:.40}; expected {FORMS}")
    return text, token_id, logprob


def _is_by_id(value: Any) -> bool:
    """Whether a value is vLLM's: an object by token id, or None."""
    return value is None or (
        isinstance(value, dict)
        and bool(value)
        and all(
            str(key).isdecimal() and isinstance(token, dict) and "logprob" in token
            for key, token in value.items()
        )
    )


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, [*value][:3]))}"
    return f"{value!r:.40}"


def _read_lists(logprobs: Mapping[str, Any]) -> list[Step]:
    """Read `tokens`, `token_logprobs` and `top_logprobs`, which is keyed by text.

    Tokens of equal text (all special tokens are '') were merged in it; a step with fewer of them
    than the rest may lack a likely token.
    """
    values = logprobs["token_logprobs"]
    texts = logprobs.get("tokens") or [None] * len(values)
    tops = logprobs.get("top_logprobs") or [None] * len(values)
    if not isinstance(texts, list) or len(texts) != len(values):
        n_texts = len(texts) if isinstance(texts, list) else "no list of"
        raise WrongRow(f"it has {n_texts} tokens and {len(values)} log-probabilities")
    if not isinstance(tops, list) or len(tops) != len(values):
        n_tops = len(tops) if isinstance(tops, list) else "no list of"
        raise WrongRow(f"it has {n_tops} lists of the likeliest and {len(values)} tokens")
    if not all(top is None or isinstance(top, dict) for top in tops):
        raise WrongRow("its top_logprobs are no objects with a log-probability by text")
    width = max((len(top) for top in tops if top), default=0)
    are_ids = all(type(text) is int for text in texts) and all(
        key.lstrip("-").isdecimal() for top in tops for key in top or ()
    )
    if not are_ids:
        require_texts(texts)
    keys = [token_key(text) if are_ids else token_key(text=text) for text in texts]
    return [
        Step(
            None if are_ids else text,
            key[0],
            value,
            [
                (token_key(int(each)) if are_ids else token_key(text=each), listed)
                for each, listed in (top or {}).items()
            ],
            key,
            len(top or ()) < width,
        )
        for text, key, value, top in zip(texts, keys, values, tops, strict=True)
    ]


def _unflattened(flat: Mapping[str, Any]) -> list[dict[str, Token]]:
    """The objects by token id that vLLM's ``FlatLogprobs`` holds in lists."""
    try:
        tokens = [
            (token_id, {"logprob": logprob, "decoded_token": text})
            for token_id, logprob, text in zip(
                flat["token_ids"], flat["logprobs"], flat["decoded_tokens"], strict=True
            )
        ]
        if not all(str(token_id).isdecimal() for token_id, _ in tokens):
            raise TypeError
        ranges = zip(flat["start_indices"], flat["end_indices"], strict=True)
        return [dict(tokens[start:end]) for start, end in ranges]
    except (KeyError, TypeError, ValueError) as error:
        raise WrongRow(
            "its logprobs are not vLLM's FlatLogprobs, in lists of one length"
        ) from error


def require_texts(values: Iterable[Any]) -> None:
    """Raise `WrongRow` where the text of a token is none."""
    for value in values:
        if not isinstance(value, str | None):
            raise WrongRow(f"one of its tokens is {value!r:.40}, no text")


def _read_by_id(
    logprobs: Sequence[Mapping[str, Token] | None], token_ids: Sequence[int | None] | None
) -> list[Step]:
    """Read objects by token id; `token_ids` say which of the tokens was generated."""
    if token_ids is None:
        if any(listed and len(listed) > 1 for listed in logprobs):
            raise WrongRow(
                "its logprobs are objects by token id, and no token_ids say which of the tokens "
                "were generated"
            )
        token_ids = [int(next(iter(listed))) if listed else None for listed in logprobs]
    if len(token_ids) != len(logprobs):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(logprobs)} log-probabilities")
    steps = []
    for token_id, listed in zip(token_ids, logprobs, strict=True):
        tokens = {int(key): token for key, token in (listed or {}).items()}
        chosen = {} if token_id is None else tokens.get(token_id, {})
        top = [
            (token_key(key, token.get("decoded_token")), token["logprob"])
            for key, token in tokens.items()
        ]
        text = chosen.get("decoded_token")
        require_texts([text])
        steps.append(Step(text, token_id, chosen.get("logprob"), top, token_key(token_id)))
    return steps


def _is_merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    llama.cpp reports tokens that together form one character as the last of them, with all bytes.
    """
    n_bytes = len(token.get("bytes") or ())
    return any(
        candidate.get("id") == token["id"] and n_bytes > len(candidate.get("bytes") or ())
        for candidate in top
    )


def options_path(options: Sequence[str]) -> dict[str, str]:
    """The further column of these options and its path; empty without options.

    >>> options_path(["A", "B"])
    {'option_share': 'options:A,B'}
    """
    return {NAME: PREFIX + ",".join(options)} if options else {}


def option_share(steps: Sequence[Step], path: str) -> float | None:
    """Return the share of the option that the last option token chose; None without one."""
    options = {option.strip() for option in path.removeprefix(PREFIX).split(",")}
    for step in reversed(steps):
        chosen = (step.text or "").strip()
        if chosen in options and step.logprob is not None and step.top:
            likeliest = {chosen: step.logprob}
            for key, logprob in step.top:
                text = plain_text(key)
                if text in options and text != chosen and logprob is not None:
                    likeliest[text] = max(logprob, likeliest.get(text, -math.inf))
            return math.exp(step.logprob) / sum(map(math.exp, likeliest.values()))
    return None


def is_finish(reason: Any) -> bool:
    """Whether a `finish_reason` says that the answer has ended.

    >>> is_finish("stop"), is_finish("null"), is_finish(None)
    (True, False, False)
    """
    return bool(reason) and str(reason).strip().lower() not in NO_FINISHES


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
    holds_text
        Whether an empty answer is one that the model gave; a log may leave all texts out.
    """

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float | None]] = field(default_factory=dict)
    thoughts: str | None = None
    refusal: str | None = None
    calls_tool: bool = False
    verdicts: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    lacks: str | None = None
    holds_text: bool = True


def infer_stop_token(
    text: str | None, steps: Sequence[Step], stop_reason: str | int | None = None
) -> StopToken:
    """Whether the last token is the stop token, which the text of the answer leaves out.

    It is if the tokens spell more than the text, or if the last one has no text. Spaces at either
    end do not count, since servers strip them; where only spaces differ, it is unknown. Only vLLM
    states a `stop_reason`, and its tokens include the stop token or stop string.

    >>> infer_stop_token("Lima", [Step("Lima", 5, -0.25), Step("</s>", 2, -0.5)])
    'included'
    """
    if stop_reason is not None and steps:
        return "included"
    if text is None or not steps or any(step.text is None for step in steps):
        return "unknown"
    spelled = "".join(step.text for step in steps).lstrip()
    if spelled == text.lstrip():
        return "absent" if steps[-1].text else "included"
    longer = spelled.startswith(text.strip()) and spelled.strip() != text.strip()
    # Parts of a character spell nothing, so only the end is compared.
    last = steps[-1].text.strip(UNDECODED + " ") if UNDECODED in spelled else ""
    return "included" if longer or (last and not text.rstrip().endswith(last)) else "unknown"


def with_no_answer(raw: RawAnswer) -> RawAnswer:
    """An answer that says why it is none, where the model gave none, without its tokens.

    A text before a tool call is an answer where its tokens can be told from those of the call.

    >>> with_no_answer(RawAnswer(answer="", finish_reason="tool_calls")).no_answer
    'called a tool'
    """
    text, is_blank = raw.answer, not (raw.answer or "").strip()
    reason = raw.no_answer or NO_ANSWERS.get(str(raw.finish_reason or "").lower())
    if is_blank and raw.refusal:
        reason, text = "refused", raw.refusal
    elif raw.calls_tool or reason == "called a tool":
        n_tokens = None if is_blank else _n_spelling(str(text).strip(), raw.steps)
        if n_tokens is not None and n_tokens < len(raw.steps):
            return replace(
                raw, steps=raw.steps[:n_tokens], tokens=None, token_ids=None, stop_token="none"
            )
        reason = "called a tool" if n_tokens is None else None
    elif reason is None and is_blank and text is not None and raw.thoughts is None:
        reason = "empty" if raw.holds_text else None
    return raw if reason is None else _unanswered(raw, reason, text)


def without_text(raw: RawAnswer, has_reasoning: bool) -> RawAnswer:
    """An answer without a text: its reasoning reached the limit, or it is empty."""
    is_cut = not is_finish(raw.finish_reason) or raw.finish_reason in LIMITS
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


def _n_spelling(text: str, steps: Sequence[Step]) -> int | None:
    """How many steps spell a text; None where none do."""
    if any(step.text is None for step in steps):
        return None
    spelled = accumulate(str(step.text) for step in steps)
    return next((n for n, part in enumerate(spelled, 1) if part.strip() == text), None)
