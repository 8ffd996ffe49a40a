"""The trace of an answer: surprisals, and entropies or their bounds, computed from its steps.

`make_records(drafts)` makes the `Record` of each answer that a format has read. It bounds the
entropies of many answers at once, which takes a tenth of the time.

Where only the likeliest tokens are listed, an entropy has bounds. The listed tokens are the head of
a distribution. Its tail adds least entropy where as few tokens as possible share it, each as likely
as the least likely listed one, and most where all other tokens of the vocabulary share it evenly.
Logs may round log-probabilities: `detect_rounding` says how, and bounds allow for it. Bounds hardly
depend on the size of the vocabulary: `vocabulary_of(model)` takes it from the model's name or
folder where nobody states it; ASSUMED stands for it otherwise (docs/background/entropy_bounds.md).
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from tracecal.answers.raw_answer import (
    Details,
    RawAnswer,
    with_no_answer,
    with_traced_tokens,
    without_text,
)
from tracecal.answers.reading import LARGEST_VOCABULARY, Reading
from tracecal.answers.record import TRACE, Record
from tracecal.answers.tokens import SLACK, UNLISTED, Step, generated_entries, is_same_logprob
from tracecal.errors import InputError, WrongRow
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.regular_files import read_regular

DETAILS = tuple(field.name for field in fields(Details))
# Log-probabilities are normalised in single precision over a vocabulary: the probability of the
# tail is accurate to about this much.
TAIL_TOLERANCE = 2.0**-19
MANY_TOKENS = 2.0**53  # larger floats do not resolve a single token
# Decimal places that logs are rounded to; more are as good as single precision.
DECIMALS = range(1, 6)
# Fewer distinct values may be round by chance; rounding to this many places does no harm then.
MANY, HARMLESS = 8, 4
# The largest relative error of a number rounded to the 8 significant bits of bfloat16.
BFLOAT16 = 2.0**-8
ASSUMED = 200_000
MAX_CONFIG_BYTES = 2**20
# `vocab_size` of config.json, or the tokens of the tokenizer of models that have none to read
# (tiktoken's o200k_base and cl100k_base); the first that a name begins with, after its owner.
SIZES = {
    r"gpt-oss": 201_088,
    r"(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|o1|o3|o4)(-|$|\.)": 200_019,
    r"gpt-(4|3\.5|35)(-|$)|davinci-002|babbage-002": 100_277,
    r"gpt2|distilgpt2": 50_257,
    r"(meta-)?llama-?4": 202_048,
    r"(meta-)?llama-?3|deepseek-r1-distill-llama|smollm3": 128_256,
    r"(meta-)?llama-?2|tinyllama|mixtral-8x7b|mistral-7b-(instruct-)?v0\.[12]": 32_000,
    r"mistral-7b-(instruct-)?v0\.3|mixtral-8x22b": 32_768,
    r"(open-)?mistral-(nemo|small|large)|ministral": 131_072,
    r"qwen3(-|$)|qwen2(\.5)?-(math-|coder-)?(0\.5|1\.5|3)b|deepseek-r1-distill-qwen-1\.5b": 151_936,
    r"qwen2(\.5)?-(math-|coder-)?\d+b|deepseek-r1-distill-qwen": 152_064,
    r"deepseek-(v3|r1|chat|reasoner)": 129_280,
    r"gemma-3|gemini": 262_144,
    r"gemma": 256_000,
    r"phi-4-mini": 200_064,
    r"phi-4|olmo-2": 100_352,
    r"phi-3": 32_064,
    r"smollm": 49_152,
    r"glm-4": 151_552,
}


@dataclass(frozen=True)
class Rounding:
    """The largest error of a log-probability: the larger of `absolute` (nats) and `relative`
    times the log-probability.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def errors(self, logprobs: np.ndarray) -> np.ndarray:
        """The largest error of each log-probability, in nats."""
        return np.maximum(self.absolute, -self.relative * logprobs)


EXACT = Rounding()


@dataclass(frozen=True)
class EntropyBounds:
    """Bounds of entropies, in nats, and their midpoint without allowances."""

    lower: np.ndarray
    middle: np.ndarray
    upper: np.ndarray


class Draft(NamedTuple):
    """An answer that a format has read, with the facts of its row, and how it is read.

    Attributes
    ----------
    logprobs
        Those of `listed_logprobs`, [T, 1 + k], once the answer is cut to the tokens of its trace.
    in_top
        Which of the generated tokens are among the likeliest, [T].
    vocabulary
        How many tokens the vocabulary has.
    exact
        Entropies that the row states for each token.
    """

    example_id: str
    raw: RawAnswer
    reading: Reading
    logprobs: np.ndarray = np.empty((0, 1))
    in_top: np.ndarray = np.empty(0, dtype=bool)
    vocabulary: int = ASSUMED
    exact: Mapping[str, Any] = {}


# Bounds, why there are none for all or some of the steps, or why the row is wrong.
Bounded = tuple[EntropyBounds | None, str | None] | WrongRow


def make_records(drafts: Sequence[Draft | WrongRow]) -> list[Record | WrongRow]:
    """Compute the record of each answer, or say why there is none: a number is wrong.

    An error among the drafts stays.
    """
    traced = [*each_right(_traced, drafts)]
    bounds = iter(bound_entropies([each for each in traced if isinstance(each, Draft)]))
    pairs = [(each, next(bounds)) if isinstance(each, Draft) else each for each in traced]
    return [*each_right(_record, pairs)]


def each_right(make: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """What `make` makes of each item, or the `WrongRow` that it raises or that the item is."""
    for item in items:
        try:
            yield item if isinstance(item, WrongRow) else make(item)
        except WrongRow as error:
            yield error


def _traced(draft: Draft) -> Draft:
    reading, raw = draft.reading, with_no_answer(draft.raw)
    if raw.no_answer is None:
        raw = with_traced_tokens(raw, reading.reasoning)
    logprobs, in_top = listed_logprobs(raw.steps)
    _require_possible(raw.exact, reading.vocabulary)
    exact = {name: values for name, values in raw.exact.items() if None not in values}
    vocabulary = reading.vocabulary
    if vocabulary is None:
        n_listed = int((logprobs > -np.inf).sum(1).max(initial=1))
        vocabulary = max(vocabulary_of(reading.model or raw.model) or ASSUMED, n_listed)
    return Draft(draft.example_id, raw, reading, logprobs, in_top, vocabulary, exact)


def _record(answer: tuple[Draft, Bounded]) -> Record:
    traced, bounded = answer
    if isinstance(bounded, WrongRow):
        raise bounded
    raw, reading = traced.raw, traced.reading
    trace, tokens, reason = _trace(traced, *bounded)
    if not ((raw.answer or "").strip() or trace.get("surprisal") or raw.token_ids or raw.no_answer):
        raw, trace = without_text(raw, raw.thoughts is not None), {}
    if raw.lacks:
        trace, tokens = {}, None
    stop_token = reading.stop_token
    if stop_token == "auto":
        stop_token = "none" if raw.finish_reason == "length" else raw.stop_token
    details = {name: getattr(raw, name) for name in DETAILS} | {
        "tokens": tokens,
        "stop_token": stop_token,
        "processed": raw.processed if reading.processed == "auto" else reading.processed,
        "model": reading.model or raw.model or None,
    }
    lacks = raw.lacks or raw.no_answer or reason
    record = Record(traced.example_id, **trace, lacks=lacks, **details)
    _require_storable(record)
    return record


def _require_storable(record: Record) -> None:
    ids = [*(record.token_ids or ()), *(record.prompt_token_ids or ())]
    if ids and not -(2**31) <= min(ids) <= max(ids) < 2**31:
        raise WrongRow("one of its token ids has more than 32 bits")
    texts = [text for text in vars(record).values() if isinstance(text, str)]
    try:
        "".join([*texts, *(record.tokens or ())]).encode()
    except UnicodeEncodeError as error:
        raise WrongRow("one of its texts holds an unpaired surrogate") from error


def _trace(
    traced: Draft, bounds: EntropyBounds | None, entropy_reason: str | None
) -> tuple[dict[str, Any], Sequence[str] | None, str | None]:
    """Compute the trace of an answer as fields of `Record`, and say why it is incomplete.

    Returns also the texts of its tokens. Lists with missing values are `partial`. Entropies that
    the row states count, or else their `bounds`.
    """
    raw, logprobs, in_top = traced.raw, traced.logprobs, traced.in_top
    listed = logprobs > -np.inf
    lists: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    reason = None
    if not len(logprobs):
        reason = "no log-probabilities are given"
    else:
        lists["surprisal"] = _with_gaps(0.0 - logprobs[:, 0], listed[:, 0])
        if not listed[:, 0].all():
            reason = f"the log-probability of token {listed[:, 0].argmin() + 1} is not given"
    lists |= traced.exact if "entropy" in traced.exact else raw.exact
    if bounds is not None:
        is_bounded = listed.any(1)
        lists["entropy_lower"] = _with_gaps(bounds.lower, is_bounded)
        lists["entropy"] = _with_gaps(bounds.middle, is_bounded)
        lists["entropy_upper"] = _with_gaps(bounds.upper, is_bounded)
        n_distinct = listed.sum(1) - (listed[:, 0] & ~in_top)
        fields |= {"top_k": int(n_distinct.max()), "vocabulary": traced.vocabulary}
    complete = {name: values for name, values in lists.items() if None not in values}
    if not {"surprisal", "entropy"} <= complete.keys() and listed[:, :1].any():
        fields["partial"] = dict.fromkeys(TRACE) | lists
    texts = [step.text for step in raw.steps]
    tokens = texts if raw.tokens is None and texts and None not in texts else raw.tokens
    return fields | complete, tokens, reason or entropy_reason


def _with_gaps(values: np.ndarray, present: np.ndarray) -> list[float | None]:
    """The values as a list, None where they are not present."""
    if present.all():
        return values.tolist()  # type: ignore[no-any-return]
    pairs = zip(values.tolist(), present.tolist(), strict=True)
    return [value if is_present else None for value, is_present in pairs]


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


def listed_logprobs(steps: Sequence[Step]) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probabilities [T, 1 + k]: first the generated token's, then the others'.

    They are at most 0, and -inf where none is listed. Returns also which of the generated tokens
    are among the likeliest [T]. Raises `WrongRow` for NaN or above 0.

    >>> listed_logprobs([Step("a", 1, -0.25, [("b", -2.0)], "a"), Step("c", 3, None)])[0]
    array([[-0.25, -2.  ],
           [ -inf,  -inf]])
    """
    try:
        generated = [generated_entries(step) for step in steps]
        rows = list(map(_distinct_logprobs, steps, generated))
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
    logprobs = np.where(logprobs > UNLISTED, np.minimum(logprobs, 0.0), -np.inf)
    return logprobs, np.array(list(map(bool, generated)), dtype=bool)


def _distinct_logprobs(
    step: Step, generated: Sequence[tuple[Hashable, float | None]]
) -> list[float | None]:
    """Return the log-probabilities of the generated token and of the other listed tokens.

    Servers may add the generated token to the k likeliest ones or list it twice: the list without
    it holds the likeliest of the others. Different tokens of one text differ in probability.
    """
    alternatives = dict.fromkeys(step.top)
    for pair in generated:
        alternatives.pop(pair, None)
    return [step.logprob, *[logprob for _, logprob in alternatives]]


def bound_entropies(answers: Sequence[Draft]) -> list[Bounded]:
    """Bound the entropies of the steps of each answer, and say why there are none, of any or of a
    step that lists no token.

    Answers of one width and rounding are bounded at once: other sums could differ in the last bit.
    """
    is_exact = ["entropy" in answer.exact for answer in answers]
    missing = None, "no top log-probabilities are given"
    outcomes: list[Bounded] = [(None, None) if exact else missing for exact in is_exact]
    places = [
        n
        for n, answer in enumerate(answers)
        if not is_exact[n] and any(step.top for step in answer.raw.steps)
    ]
    groups = defaultdict[tuple[int, Rounding], list[int]](list)
    for place, rounding in zip(places, _roundings([answers[n] for n in places]), strict=True):
        groups[answers[place].logprobs.shape[1], rounding].append(place)
    for (_, rounding), members in groups.items():
        bounds = _bounds_of_width([answers[place] for place in members], rounding)
        for place, outcome in zip(members, bounds, strict=True):
            outcomes[place] = outcome
    return outcomes


def _bounds_of_width(answers: Sequence[Draft], rounding: Rounding) -> list[Bounded]:
    """The outcomes of `bound_entropies` of answers whose log-probabilities have one width."""
    steps = [step for answer in answers for step in answer.raw.steps]
    lengths = np.array([len(answer.raw.steps) for answer in answers])
    ends = np.cumsum(lengths)
    owners = np.repeat(np.arange(len(answers)), lengths)
    vocabulary = np.array([answer.vocabulary for answer in answers])[owners]
    is_greedy = np.array([answer.reading.greedy or answer.raw.is_greedy for answer in answers])
    is_greedy = is_greedy[owners]
    logprobs = np.concatenate([answer.logprobs for answer in answers])
    listed = logprobs > -np.inf
    finite, n_listed = np.where(listed, logprobs, 0.0), listed.sum(1)
    slack = SLACK + np.expm1(rounding.errors(finite).max(1))
    total = np.exp(logprobs).sum(1)
    in_top = np.concatenate([answer.in_top for answer in answers])
    pairs = zip(steps, in_top.tolist(), strict=True)
    contradictions = [None if is_listed else _contradiction(step) for step, is_listed in pairs]
    smallest, generated = finite.min(1), logprobs[:, 0]
    # The generated token may be listed only because it was generated.
    alone = listed[:, 0] & (generated <= smallest) & ~is_greedy
    smallest = np.where(alone, finite[:, 1:].min(1, initial=0.0), smallest)
    cap = np.where([step.merged for step in steps], 1.0, np.exp(smallest))
    bounds = entropy_bounds(logprobs, vocabulary, cap, rounding)
    outcomes: list[Bounded] = [
        (EntropyBounds(bounds.lower[rows], bounds.middle[rows], bounds.upper[rows]), None)
        for rows in map(slice, ends - lengths, ends)
    ]

    def doubtful(is_doubtful: Any) -> Iterator[tuple[int, int, int]]:
        """The steps of which this holds, each with its answer and its number in it.

        The first one of an answer comes last, so that it counts.
        """
        for step in np.flatnonzero(is_doubtful)[::-1].tolist():
            place = int(owners[step])
            yield place, step, step - int(ends[place] - lengths[place]) + 1

    for place, _, t in doubtful(n_listed == 0):
        missing = f"no top log-probabilities are given for token {t}"
        outcomes[place] = outcomes[place][0], missing  # type: ignore[index]
    for place, step, t in doubtful([reason is not None for reason in contradictions]):
        outcomes[place] = None, f"token {t} {contradictions[step]}"
    for place, step, t in doubtful(total > 1 + slack):
        outcomes[place] = WrongRow(
            f"the probabilities listed for token {t} sum to {total[step]:.4g}, above 1"
        )
    for place, step, t in doubtful(n_listed > vocabulary):
        outcomes[place] = WrongRow(
            f"{n_listed[step]} tokens are listed for token {t}, more than the vocabulary's "
            f"{vocabulary[step]}"
        )
    return outcomes


def _contradiction(step: Step) -> str | None:
    """Say why the listed tokens contradict a generated token that is none; None if they do not.

    A generated token that is likelier than the least likely listed one is listed, too. Where no
    entry is known to be it, it would count twice.
    """
    if step.logprob is None or step.merged:
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


def entropy_bounds(
    logprobs: ArrayLike,
    vocabulary: ArrayLike,
    cap: ArrayLike | None = None,
    rounding: Rounding = EXACT,
    tolerance: float = TAIL_TOLERANCE,
) -> EntropyBounds:
    """Bound the entropies [...] of distributions with some log-probabilities [..., k] listed.

    Parameters
    ----------
    logprobs
        In nats, at most 0; -inf where none is listed.
    vocabulary
        The number of tokens.
    cap
        The largest probability that an unlisted token can have; None: the smallest listed one.
    rounding, tolerance
        `lower` and `upper` allow for the rounding of the log-probabilities and for this error of
        the probability of the tail; `middle` is the midpoint of the bounds without either.

    Examples
    --------
    >>> bounds = entropy_bounds(np.log([[0.9, 0.05]]), vocabulary=1000)
    >>> bounds.lower.round(2), bounds.upper.round(2)
    (array([0.39]), array([0.74]))
    """
    logprobs = np.asarray(logprobs, dtype=float)
    listed = logprobs > -np.inf
    logprobs = np.where(listed, logprobs, 0.0)
    p = np.where(listed, np.exp(logprobs), 0.0)
    head, tail = _entropy_terms(p).sum(-1), _tail(p)
    lowest_head, highest_head, smallest_tail, largest_tail, spread = head, head, tail, tail, 1.0
    cap = np.where(listed, p, 1.0).min(-1) if cap is None else np.minimum(cap, 1.0)
    if rounding != EXACT:  # every listed probability can be anywhere in its range
        errors = rounding.errors(logprobs)
        low = np.where(listed, np.exp(logprobs - errors), 0.0)
        high = np.where(listed, np.exp(np.minimum(logprobs + errors, 0.0)), 0.0)
        lowest_head = np.minimum(_entropy_terms(low), _entropy_terms(high)).sum(-1)
        highest_head = _entropy_terms(np.clip(1 / np.e, low, high)).sum(-1)
        smallest_tail, largest_tail, spread = _tail(high), _tail(low), np.exp(errors.max(-1))
    allowance = tolerance * (head + 2)
    ends = np.maximum(smallest_tail - tolerance, 0.0), np.minimum(largest_tail + tolerance, 1.0)
    highest_cap = np.minimum(cap * spread, 1.0)
    lower = np.maximum(lowest_head + _steepest_within(*ends, highest_cap) - allowance, 0.0)
    n_unlisted = np.maximum(vocabulary - listed.sum(-1), 0)
    widest_tail = np.clip(n_unlisted / np.e, *ends)
    upper = highest_head + _flattest(widest_tail, n_unlisted) + allowance
    flattest = head + _flattest(tail, n_unlisted)
    middle = (np.minimum(head + _steepest(tail, cap), flattest) + flattest) / 2
    # Inputs rounded more coarsely than stated can contradict each other.
    return EntropyBounds(np.minimum(lower, middle), middle, np.maximum(upper, middle))


def _tail(probabilities: np.ndarray) -> np.ndarray:
    return np.maximum(1 - probabilities.sum(-1), 0.0)


def _steepest_within(smallest: np.ndarray, largest: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """The smallest `_steepest` of a tail between `smallest` and `largest`.

    It is concave between multiples of `cap` and rises from one multiple to the next.
    """
    with np.errstate(all="ignore"):
        multiple = np.ceil(smallest / cap) * cap
    between = (multiple <= largest) & (smallest < MANY_TOKENS * cap)
    tails = np.array([smallest, largest, np.where(between, multiple, largest)])
    return _steepest(tails, cap).min(0)


def _steepest(tail: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """The least entropy that a tail of tokens with at most `cap` each can add."""
    with np.errstate(all="ignore"):
        # A quotient rounded to just below a whole number changes nothing: the remainder is `cap`.
        n_full = np.floor(tail / cap)
        entropy = n_full * _entropy_terms(cap)
        entropy = entropy + _entropy_terms(np.maximum(tail - n_full * cap, 0.0))
        # Beyond this number floats do not resolve the last token.
        entropy = np.where(tail < MANY_TOKENS * cap, entropy, -tail * np.log(cap))
    return np.where((tail > 0) & (cap > 0), entropy, 0.0)


def _flattest(tail: np.ndarray, n_tokens: np.ndarray) -> np.ndarray:
    """The most entropy that a tail can add, spread evenly over `n_tokens`."""
    spread = _entropy_terms(tail) + tail * np.log(np.maximum(n_tokens, 1))
    return np.where(n_tokens > 0, spread, 0.0)


def _entropy_terms(p: np.ndarray) -> np.ndarray:
    """-p ln p, 0 for 0."""
    return -p * np.log(np.where(p > 0, p, 1.0))


def detect_rounding(logprobs: Sequence[float] | np.ndarray) -> Rounding:
    """Detect how the log-probabilities of an answer were rounded.

    Zeros tell nothing. Up to three decimal places, and bfloat16, take `MANY` distinct values.

    >>> detect_rounding([-0.2512, -1.5021, -3.1415])
    Rounding(absolute=5e-05, relative=0.0)
    """
    values = np.asarray(logprobs, dtype=float)
    values = values[values != 0]
    bfloat16 = _has_bfloat16(values).all()
    # Values of fewer places are values of the most places, too.
    if not len(values) or not (bfloat16 or _has_places(values, DECIMALS[-1]).all()):
        return EXACT
    many = len(np.unique(values)) >= MANY
    if many and bfloat16:
        return Rounding(relative=BFLOAT16)
    for places in DECIMALS if many else DECIMALS[HARMLESS - 1 :]:
        if _has_places(values, places).all():
            return Rounding(absolute=0.5 * 10.0**-places)
    return EXACT


def _roundings(answers: Sequence[Draft]) -> list[Rounding]:
    """The stated or detected rounding of each answer; two tests tell that most are exact."""
    if not answers:
        return []
    values = np.concatenate([answer.logprobs.ravel() for answer in answers])
    owners = np.repeat(np.arange(len(answers)), [answer.logprobs.size for answer in answers])
    has_value = (values > -np.inf) & (values != 0)
    values, owners = values[has_value], owners[has_value]
    is_unlike = (~_has_bfloat16(values), ~_has_places(values, DECIMALS[-1]))
    n_unlike = [np.bincount(owners[unlike], minlength=len(answers)) for unlike in is_unlike]
    is_exact = np.logical_and(*n_unlike)
    return [
        Rounding(answer.reading.rounding)
        if answer.reading.rounding is not None
        else EXACT
        if exact
        else detect_rounding(answer.logprobs[answer.logprobs > -np.inf])
        for answer, exact in zip(answers, is_exact, strict=True)
    ]


def _has_bfloat16(values: np.ndarray) -> np.ndarray:
    """Which values are rounded to the 8 significant bits of bfloat16."""
    return (values.astype(np.float32).view(np.uint32) & 0xFFFF) == 0


def _has_places(values: np.ndarray, places: int) -> np.ndarray:
    """Which values are rounded to `places`, perhaps then to single precision."""
    return np.abs(values - values.round(places)) <= 2.0**-23 * np.abs(values)


@lru_cache(maxsize=1000)
def vocabulary_of(model: str | None) -> int | None:
    """The number of tokens of a model, by its name, or by the configuration in its folder.

    >>> vocabulary_of("Qwen/Qwen2.5-7B-Instruct"), vocabulary_of("my-model")
    (152064, None)
    """
    if model is None:
        return None
    name = model.lower().rstrip("/").rsplit("/", 1)[-1]
    sizes = (size for pattern, size in SIZES.items() if re.match(pattern, name))
    return _configured_size(model) or next(sizes, None)


def _configured_size(folder: str) -> int | None:
    """`vocab_size` in the config.json of a model's folder on this machine."""
    path = Path(folder) / "config.json"
    try:
        content = parsed_json(read_regular(path, MAX_CONFIG_BYTES))
    except (OSError, ValueError, InputError):
        return None
    texts = content.get("text_config") if isinstance(content, dict) else None
    for part in (content, texts):
        size = part.get("vocab_size") if isinstance(part, dict) else None
        if isinstance(size, int) and size > 0:
            return size
    return None


def vocabulary_used(answers: pl.DataFrame, stated: int | None) -> tuple[int | None, str]:
    """The vocabulary that answers were read with, and whence: 'stated', 'model' or 'assumed'."""
    if stated is not None:
        return stated, "stated"
    bounded = answers.select("vocabulary", "model").drop_nulls("vocabulary")
    if bounded.is_empty():
        return None, "stated"
    size, model = bounded.filter(pl.col("vocabulary") == pl.col("vocabulary").max()).row(-1)
    if vocabulary_of(model) == size:
        return size, "model"
    return size, "assumed" if size == ASSUMED else "stated"


def warn_of_assumed(answers: pl.DataFrame, stated: int | None, source: str) -> None:
    """Say once of a file that entropies rest on an assumed vocabulary."""
    size, whence = vocabulary_used(answers, stated)
    if whence == "assumed":
        LOGGER.warning(
            "%s: entropies are computed for a vocabulary of %s tokens, which is assumed and hardly "
            "changes a probability; give the model's with --vocabulary (vocab_size in its "
            "config.json)",
            *(source, f"{size:,}"),
        )
