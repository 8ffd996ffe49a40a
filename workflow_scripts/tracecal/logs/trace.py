"""The answer that a format's reader returns, and the record made from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracecal.logs.options import Reading
from tracecal.logs.record import Details, Record, StopToken
from tracecal.logs.steps import SLACK, Step, WrongRow, entropies, surprisals


@dataclass(frozen=True)
class RawAnswer(Details):
    """An answer as its format states it; `exact` holds entropies that need not be computed."""

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float]] = field(default_factory=dict)


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
    surprisal, lacks = surprisals(raw.steps)
    bounds = dict(raw.exact)
    entropy = bounds.pop("entropy", None)
    if entropy and max(entropy) > (most := math.log(reading.vocabulary or math.inf)) + SLACK:
        raise WrongRow(
            f"it has the entropy {max(entropy):g}, above {most:.4g}, the most that the vocabulary "
            "allows: entropies must be in nats"
        )
    if entropy is None:
        bounded, why = entropies(raw.steps, reading.vocabulary, reading.greedy)
        if bounded is not None:
            bounds["entropy_lower"] = [bound.lower for bound in bounded]
            if reading.vocabulary is None:
                why = "entropies need the vocabulary's size"
            else:
                entropy = [bound.middle for bound in bounded]
                bounds["entropy_upper"] = [bound.upper for bound in bounded]
        lacks = lacks or why
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
    return Record(example_id, surprisal, entropy, **bounds, lacks=lacks, **details)


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
    return "included" if more else "unknown"
