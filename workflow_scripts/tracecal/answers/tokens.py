"""The tokens of an answer: a `Step` is one with its log-probability and the likeliest others.

1. `read_logprobs(value, token_ids)` reads them from any of the forms that programs write:
   objects, as OpenAI's chats have, `{"token", "logprob", "top_logprobs": [the same of others]}`,
   perhaps with `id` and `bytes`, in a list or as `content` (TypeScript clients write
   `topLogprobs`, watsonx `text` and `top_tokens`); lists, as OpenAI's older completions have,
   `tokens` (or their ids), `token_logprobs` and `top_logprobs`; a list of text or id and
   log-probability for each token, or SGLang's of three; objects by token id, as vLLM has offline,
   `{"7": {"logprob", "rank", "decoded_token"}, …}`, or its ``FlatLogprobs``, the same in lists.
   `read_steps` reads the first.
2. `generated_entries` finds the generated token among its alternatives.
3. `option_share` is the share of the chosen option among options: `--options A B C D` reads it as a
   further column of each answer, whose path, `options:A,B,C,D`, stands in the calibrator's file.
4. `infer_stop_token` compares the tokens with the text of the answer.
"""

import math
import re
from codecs import getincrementaldecoder
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
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
# Bytes in a text: "bytes: \xf0\x9f" with its blank, or "<0xF0>".
_WRITTEN = re.compile(r"(?:bytes:( ?)(?:\\x[0-9a-f]{2})+|<0x[0-9A-F]{2}>)")
UNDECODED = "\ufffd"  # part of a character, as servers write it


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


def make_step(
    text: str | None,
    token_id: int | None,
    logprob: float | None,
    top: Iterable[tuple[str | None, int | None, float | None]] = (),
    merged: bool = False,
) -> Step:
    """The step of a token whose bytes are unknown; `top` has text, id and log-probability of each.

    >>> make_step("Li", 5, -0.25, [("Ro", 7, -2.0)]).top
    [((7, (), 'Ro'), -2.0)]
    """
    likeliest = [(token_key(number, token), value) for token, number, value in top]
    return Step(text, token_id, logprob, likeliest, token_key(token_id, text), merged)


def is_same_token(key: Hashable, second: Hashable) -> bool:
    """Whether two keys are of one token: by ids where both are known, else by bytes, else by text.

    >>> is_same_token(token_key(text="Oslo"), (None, tuple(b" Oslo"), None))
    True
    """
    if not (isinstance(key, tuple) and isinstance(second, tuple)):
        return key == second
    (token_id, spelling, _), (other_id, other_spelling, _) = key, second
    if token_id is not None and other_id is not None:
        return token_id == other_id
    if spelling and other_spelling:
        return spelling == other_spelling
    return plain_text(key) == plain_text(second)


def token_key(token_id: int | None = None, text: str | None = None) -> TokenKey:
    """The key of a token whose bytes are unknown."""
    return token_id, (), text


def plain_text(key: Hashable) -> str:
    """The text of a token without blanks at its ends, which programs strip on one side."""
    _, spelling, text = key if isinstance(key, tuple) else (None, (), key)
    text = bytes(spelling).decode(errors="replace") if spelling else str(text or "")
    return text.translate(MARKS).strip()


def is_same_logprob(logprob: float, second: float) -> bool:
    """Whether two log-probabilities differ by no more than rounding.

    >>> is_same_logprob(-1.203973, -1.20397)
    True
    """
    return abs(logprob - second) <= SAME * max(1.0, -logprob)


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
        steps = [make_step(*entry) for entry in map(_entry, logprobs)]
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
    if tokens and not any("logprob" in token for token in tokens):
        raise WrongRow(f"an entry of its logprobs is {_described(tokens[0])}; expected {FORMS}")
    require_id_per_step(steps, token_ids)
    return spelled(steps)


def spelled(steps: list[Step]) -> list[Step]:
    """Steps whose texts are what their bytes spell, where these are known, or written in a text.

    A character that is split over tokens is the text of the last of them. OpenAI's older
    completions write "bytes:\\xc3", and SentencePiece "<0xC3>".

    >>> [step.text for step in spelled([Step("?", 1, -0.1, (), (1, (195,), "?"))] +
    ...     [Step("?", 2, -0.1, (), (2, (188,), "?"))])]
    ['', 'ü']
    """
    listed = [
        (step.key[1] if isinstance(step.key, tuple) else ()) or _written_bytes(step.text)
        for step in steps
    ]
    if not any(listed):
        return steps
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


def _written_bytes(text: str | None) -> bytes:
    """The bytes that the text of a token writes in hexadecimal; none where it is a plain text."""
    match = _WRITTEN.fullmatch(text) if text and "x" in text else None
    if match is None:
        return b""
    return (match[1] or "").encode() + bytes.fromhex("".join(re.findall("x([0-9a-fA-F]{2})", text)))


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
        likeliest = [
            (
                (
                    candidate.get("id"),
                    tuple(candidate.get("bytes") or ()),
                    candidate["token"] if "token" in candidate else candidate.get("text"),
                ),
                candidate.get("logprob"),
            )
            for candidate in top
        ]
        if NAMELESS in [key for key, _ in likeliest]:
            raise KeyError("token")
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
        case [str() as text, float() | int() | None as logprob] | [
            float() as logprob,
            str() as text,
        ]:
            pass
        case [str() as text, int() as token_id, float() as logprob]:
            pass
        case [int() as token_id, str() as text, float() as logprob]:
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

    def named(token: Any) -> tuple[str | None, int | None]:
        return (None, int(token)) if are_ids else (token, None)

    steps = []
    for text, value, top in zip(texts, values, tops, strict=True):
        likeliest = [(*named(key), logprob) for key, logprob in (top or {}).items()]
        steps.append(make_step(*named(text), value, likeliest, len(likeliest) < width))
    return spelled(steps)


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


def log_of(probability: float, name: str) -> float:
    """ln p of what has a probability. Raises `WrongRow` where it is none, or 0."""
    if not 0 < probability <= 1 + SLACK:
        raise WrongRow(f"{name} has the probability {probability:g}, not above 0 and at most 1")
    return min(math.log(probability), 0.0)


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
        top = [(each.get("decoded_token"), key, each["logprob"]) for key, each in tokens.items()]
        text = chosen.get("decoded_token")
        require_texts([text])
        steps.append(make_step(text, token_id, chosen.get("logprob"), top))
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
