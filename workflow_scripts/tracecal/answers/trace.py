"""The trace of an answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracecal.answers.raw_answer import Details, RawAnswer
from tracecal.answers.reading import Reading
from tracecal.answers.reasoning import with_kept
from tracecal.answers.record import TRACE, Record
from tracecal.answers.step import SLACK, Step
from tracecal.answers.step_values import entropies, known, most_listed, surprisals
from tracecal.answers.wrong_row import WrongRow

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


def record(example_id: str, raw: RawAnswer, reading: Reading) -> Record:
    """The record of an answer. Raises `WrongRow` where it is empty or its numbers are invalid."""
    raw = with_kept(raw, reading.reasoning)
    values = known(raw.steps)
    surprisal, lacks = surprisals(values)
    exact = {name: one for name, one in raw.exact.items() if None not in one}
    trace, why = _entropies(raw.steps, values, exact, reading)
    lacks = lacks or why
    partial = None
    if surprisal is None or "entropy" not in trace:
        partial, top_k = _partial(raw, values, reading)
        trace["top_k"] = trace.get("top_k", top_k)
    if not (raw.answer or "").strip() and not (surprisal or raw.token_ids):
        raise WrongRow("the answer is empty")
    tokens, texts = raw.tokens, [step.text for step in raw.steps]
    if tokens is None and texts and None not in texts:
        tokens = texts
    finish = FINISHES.get(raw.finish_reason or "", raw.finish_reason)
    ending = reading.stop_token
    if ending == "auto":
        ending = "none" if finish == "length" else raw.stop_token
    details = {name: getattr(raw, name) for name in Details.__dataclass_fields__} | {
        "tokens": tokens,
        "finish_reason": finish,
        "stop_token": ending,
        "processed": raw.processed if reading.processed == "auto" else reading.processed,
        "model": reading.model or raw.model,
    }
    return Record(example_id, surprisal, **trace, lacks=lacks, partial=partial, **details)


def _entropies(
    steps: Sequence[Step], values: np.ndarray, exact: Mapping[str, Any], reading: Reading
) -> tuple[dict[str, Any], str | None]:
    """The entropies of steps by their `known` values or as they are stated, and their bounds, as
    `Record` has them; and why there are none.
    """
    found = dict(exact)
    if entropy := found.get("entropy"):
        if max(entropy) > (most := math.log(reading.vocabulary or math.inf)) + SLACK:
            raise WrongRow(
                f"it has the entropy {max(entropy):g}, above {most:.4g}, the most that the "
                "vocabulary allows: entropies must be in nats"
            )
        return found, None
    how = reading.vocabulary, reading.greedy, reading.rounding
    bounded, why = entropies(steps, values, *how)
    if bounded is None:
        return found, why
    found["entropy_lower"] = bounded.lower.tolist()
    if reading.vocabulary is None:
        return found, "entropies need the vocabulary's size"
    found["entropy"] = bounded.middle.tolist()
    found["top_k"] = most_listed(steps, values)
    found["entropy_upper"] = bounded.upper.tolist()
    return found, None


def _partial(
    raw: RawAnswer, values: np.ndarray, reading: Reading
) -> tuple[dict[str, Any] | None, int | None]:
    """The lists of a trace, null at the tokens that lack a value, and how many tokens are listed;
    null where no token has a log-probability.
    """
    given = values > -np.inf
    if not len(values) or not given[:, 0].any():
        return None, None
    surprisal = [None if value == -np.inf else 0.0 - value for value in values[:, 0].tolist()]
    lists: dict[str, Any] = dict.fromkeys(TRACE) | {"surprisal": surprisal}
    if "entropy" in raw.exact:
        return lists | raw.exact, None
    places = np.flatnonzero(given.any(axis=1)).tolist()
    trace, _ = _entropies([raw.steps[place] for place in places], values[places], {}, reading)
    for name in {*trace} & {*TRACE}:
        of_place = dict(zip(places, trace[name], strict=True))
        lists[name] = [of_place.get(place) for place in range(len(values))]
    return lists, trace.get("top_k")
