"""Surprisals and entropies from the tokens and log-probabilities that other programs record."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel

# Log-probabilities are normalised in single precision over a vocabulary: the tail's probability is
# accurate to about this much.
ROUNDING = 2.0**-19
# Decimal places that logs are rounded to; more are as good as single precision.
DECIMALS = range(1, 6)
# Fewer different values may be round by chance; to this many places that costs next to nothing.
MANY, HARMLESS = 8, 4
# The largest relative error of a number rounded to bfloat16's 8 significant bits.
BFLOAT16 = 2.0**-8
MANY_TOKENS = 2.0**53  # from which on floats have no last one


@dataclass(frozen=True)
class Rounding:
    """How far the log-probabilities listed may lie from those computed: the larger of `absolute`
    (nats) and `relative` times the log-probability.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def of(self, logprobs: np.ndarray) -> np.ndarray:
        """The largest error of each log-probability, in nats."""
        return np.maximum(self.absolute, -self.relative * logprobs)


EXACT = Rounding()


@dataclass(frozen=True)
class Entropy:
    """Bounds of entropies, in nats; `middle` and `upper` are null without a vocabulary."""

    lower: np.ndarray
    middle: np.ndarray | None
    upper: np.ndarray | None


def detect_rounding(logprobs: Sequence[float] | np.ndarray) -> Rounding:
    """How an answer's log-probabilities were rounded: to decimal places, to bfloat16, or neither.

    Zeros say nothing. Up to three decimal places and bfloat16 are told from `MANY` values.
    """
    values = np.asarray(logprobs, dtype=float)
    values = values[values != 0]
    bfloat16 = not (values.astype(np.float32).view(np.uint32) & 0xFFFF).any()
    # Rounded to fewer places, they are rounded to the most, too.
    if not len(values) or not (bfloat16 or _to_places(values, DECIMALS[-1])):
        return EXACT
    many = len(np.unique(values)) >= MANY
    if many and bfloat16:
        return Rounding(relative=BFLOAT16)
    for places in DECIMALS if many else DECIMALS[HARMLESS - 1 :]:
        if _to_places(values, places):
            return Rounding(absolute=0.5 * 10.0**-places)
    return EXACT


def _to_places(values: np.ndarray, places: int) -> bool:
    """Whether values are rounded to decimal places, perhaps stored in single precision after."""
    return bool((np.abs(values - values.round(places)) <= 2.0**-23 * np.abs(values)).all())


def entropy_bounds(
    logprobs: ArrayLike,
    vocabulary: int | None,
    cap: ArrayLike | None = None,
    rounding: Rounding = EXACT,
    tolerance: float = ROUNDING,
) -> Entropy:
    """The entropies [...] of distributions some of whose log-probabilities [..., k] are known, in
    nats and at most 0; -inf stands for none.

    `cap` is the largest probability that any other token can have; null: the smallest one known.
    `lower` and `upper` allow for the `rounding` of the inputs and for a `tolerance` of the tail's
    probability; `middle` is the midpoint of the bounds without either. `vocabulary` is V, the
    number of tokens.
    """
    values = np.asarray(logprobs, dtype=float)
    given = values > -np.inf
    values = np.where(given, values, 0.0)
    p = np.where(given, np.exp(values), 0.0)
    head, tail = _entr(p).sum(-1), _tail(p)
    lower, known, least, most, spread = head, head, tail, tail, 1.0
    cap = np.where(given, p, 1.0).min(-1) if cap is None else np.minimum(cap, 1.0)
    if rounding != EXACT:  # every known probability can be anywhere in its range
        errors = rounding.of(values)
        low = np.where(given, np.exp(values - errors), 0.0)
        high = np.where(given, np.exp(np.minimum(values + errors, 0.0)), 0.0)
        lower = np.minimum(_entr(low), _entr(high)).sum(-1)
        known = _entr(np.clip(1 / np.e, low, high)).sum(-1)
        least, most, spread = _tail(high), _tail(low), np.exp(errors.max(-1))
    allowed = tolerance * (head + 2)
    ends = np.maximum(least - tolerance, 0.0), np.minimum(most + tolerance, 1.0)
    highest = np.minimum(cap * spread, 1.0)
    lower = np.maximum(lower + _steepest_within(*ends, highest) - allowed, 0.0)
    if vocabulary is None:
        return Entropy(lower, None, None)
    rest = np.maximum(vocabulary - given.sum(-1), 0)
    widest = np.clip(rest / np.e, *ends)
    upper = known + _flattest(widest, rest) + allowed
    flattest = head + _flattest(tail, rest)
    middle = (np.minimum(head + _steepest(tail, cap), flattest) + flattest) / 2
    # Inputs rounded more coarsely than stated can contradict each other.
    return Entropy(np.minimum(lower, middle), middle, np.maximum(upper, middle))


def _tail(probabilities: np.ndarray) -> np.ndarray:
    return np.maximum(1 - probabilities.sum(-1), 0.0)


def _steepest_within(least: np.ndarray, most: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """The smallest `_steepest` of a tail between `least` and `most`.

    It is concave between multiples of `cap` and rises from one multiple to the next.
    """
    with np.errstate(all="ignore"):
        multiple = np.ceil(least / cap) * cap
    between = (multiple <= most) & (least < MANY_TOKENS * cap)
    tails = np.stack([least, most, np.where(between, multiple, most)])
    return _steepest(tails, cap).min(0)


def _steepest(tail: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """The least entropy that a tail of tokens with at most `cap` each can add."""
    with np.errstate(all="ignore"):
        # A quotient rounded to just below a whole number changes nothing: then ρ is p_k.
        whole = np.floor(tail / cap)
        added = whole * _entr(cap) + _entr(np.maximum(tail - whole * cap, 0.0))
        # So many tokens that the last one counts for nothing.
        added = np.where(tail < MANY_TOKENS * cap, added, -tail * np.log(cap))
    return np.where((tail > 0) & (cap > 0), added, 0.0)


def _flattest(tail: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The most entropy that a tail can add, spread evenly over `tokens`."""
    return np.where(tokens > 0, _entr(tail) + tail * np.log(np.maximum(tokens, 1)), 0.0)


def _entr(p: np.ndarray) -> np.ndarray:
    """-p ln p, 0 for 0."""
    return -p * np.log(np.where(p > 0, p, 1.0))


# Servers write this for a token that is not among the most likely ones.
UNLISTED = -9999.0
# How far above 1 rounding may move a probability or a sum of probabilities.
SLACK = 1e-3


class WrongRow(ValueError):
    """A row of a file is invalid; the message says why, without naming the row."""


class Step(NamedTuple):
    """One generated token, its log-probability, and the most likely tokens.

    `top` holds (key, log-probability) of each, `key` the token's own key. Where `merged`, tokens
    of the same text were merged and some are missing.
    """

    text: str | None
    token_id: int | None
    logprob: float | None
    top: Sequence[tuple[Hashable, float | None]] = ()
    key: Hashable = None
    merged: bool = False


def known(steps: Sequence[Step]) -> np.ndarray:
    """The log-probabilities of each step [T, 1 + most], at most 0 and -inf where none is known: of
    the chosen token, and of the other tokens listed. Raises `WrongRow`.
    """
    try:
        rows = [_distinct(step) for step in steps]
        most = max(map(len, rows), default=1)
        padded = [row + [None] * (most - len(row)) for row in rows]
        values = np.array(padded, dtype=float).reshape(len(rows), most)
    except (TypeError, ValueError) as error:
        raise WrongRow("one of its log-probabilities is no number") from error
    for t, place in np.argwhere(~(values <= SLACK)):  # null and NaN too
        if padded[t][place] is not None:
            value = values[t, place]
            told = "NaN" if np.isnan(value) else f"{value:g}, above 0"
            raise WrongRow(f"token {t + 1} has the log-probability {told}")
    return np.where(values > UNLISTED, np.minimum(values, 0.0), -np.inf)


def _distinct(step: Step) -> list[float | None]:
    """The log-probabilities of the chosen token and of the others listed.

    Servers may add the chosen token to the k likeliest or list it twice: the list without it holds
    the likeliest of the others. Different tokens of one text differ in probability.
    """
    others = dict.fromkeys(step.top)
    others.pop((step.key, step.logprob), None)
    return [step.logprob, *[value for _, value in others]]


def surprisals(values: np.ndarray) -> tuple[list[float] | None, str | None]:
    """-ln p of each token (nats) by `known` values; or null and the reason."""
    if not len(values):
        return None, "no log-probabilities are given"
    if len(unknown := np.flatnonzero(values[:, 0] == -np.inf)):
        return None, f"the log-probability of token {unknown[0] + 1} is not given"
    return (0.0 - values[:, 0]).tolist(), None


def entropies(
    steps: Sequence[Step],
    values: np.ndarray,
    vocabulary: int | None,
    greedy: bool,
    error: float | None = None,
) -> tuple[Entropy | None, str | None]:
    """Bounds of each step's entropy by their `known` values; or null and the reason. Raises
    `WrongRow`.

    `greedy`: the answers were decoded greedily, so the chosen token is the likeliest one. `error`
    is the largest rounding error of a log-probability (nats); null: detected.
    """
    if not any(step.top for step in steps):
        return None, "no top log-probabilities are given"
    given = values > -np.inf
    logprobs, listed = np.where(given, values, 0.0), given.sum(1)
    if vocabulary is not None and listed.max() > vocabulary:
        t = (listed > vocabulary).argmax()
        more = f"{listed[t]} tokens are listed for token {t + 1}"
        raise WrongRow(f"{more}, more than the vocabulary's {vocabulary}")
    rounding = detect_rounding(values[given]) if error is None else Rounding(error)
    slack, total = SLACK + np.expm1(rounding.of(logprobs).max(1)), np.exp(values).sum(1)
    if (total > 1 + slack).any():
        t = (total > 1 + slack).argmax()
        raise WrongRow(f"the probabilities listed for token {t + 1} sum to {total[t]:.4g}, above 1")
    if not listed.all():
        return None, f"no top log-probabilities are given for token {listed.argmin() + 1}"
    least, own = logprobs.min(1), values[:, 0]
    if not greedy:  # the chosen token may be listed only because it was chosen
        of_others = logprobs[:, 1:].min(1, initial=0.0)
        least = np.where(given[:, 0] & (own <= least), of_others, least)
    cap = np.where([step.merged for step in steps], 1.0, np.exp(least))
    return entropy_bounds(values, vocabulary, cap, rounding), None


def most_listed(steps: Sequence[Step], values: np.ndarray) -> int:
    """How many different tokens a step lists with their `known` log-probability, at most."""
    given = values > -np.inf
    given[:, 0] &= [(step.key, step.logprob) in step.top for step in steps]
    return int(given.sum(1).max())


# Tokens with their log-probabilities, as OpenAI's chat format and others write them: `{"token",
# "logprob", "top_logprobs": [the same of others]}`, perhaps with `id` and `bytes`.


Token = dict[str, Any]  # most of an answer: checked as it is read, as models of each take longest
_WRONG = "its log-probabilities are no list of objects with 'token' and 'logprob'"
_AS_ID = "token_id:"  # vLLM's prefix of a token that it returns as an id instead of text


class Logprobs(BaseModel):
    content: list[Token] | None = None


def token_steps(
    tokens: Sequence[Token] | None, token_ids: Sequence[int] | None = None
) -> list[Step]:
    """The steps of `logprobs.content`. Raises `WrongRow` where they are not as its format has them,
    or unless `token_ids`, if any, match them.
    """
    steps = [token_step(token, token.get("top_logprobs") or ()) for token in tokens or ()]
    require_id_each(steps, token_ids)
    return steps


def token_step(token: Token, top: Iterable[Token]) -> Step:
    """The step of a chosen token and the `top` most likely ones. Raises `WrongRow`.

    What identifies a token is its id or bytes where known, as several tokens share a text.
    """
    try:
        text, token_id = token.get("token", ""), token.get("id")
        if token_id is not None and merged(token, top):
            return Step(text, None, None)
        if text.startswith(_AS_ID) and (number := text.removeprefix(_AS_ID)).isdecimal():
            token_id = int(number)
        likely = [
            (one.get("id") or tuple(one.get("bytes") or ()) or one["token"], one.get("logprob"))
            for one in top
        ]
        key = token.get("id") or tuple(token.get("bytes") or ()) or text
        return Step(text, token_id, token.get("logprob"), likely, key)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow(
            "its log-probabilities are no list of objects with 'token' and 'logprob'"
        ) from error


def merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    llama.cpp reports tokens that form one character together as the last of them, with all bytes.
    """
    size = len(token.get("bytes") or ())
    return any(
        other.get("id") == token["id"] and size > len(other.get("bytes") or ()) for other in top
    )


def require_id_each(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    """Raise `WrongRow` where steps and token ids are both known but differ in number."""
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")


def ids_of(steps: Sequence[Step]) -> list[int] | None:
    """The steps' token ids; null where one is unknown."""
    ids = [step.token_id for step in steps]
    return ids if ids and None not in ids else None
