"""What a format's reader gives, and the record made of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracecal.logs.options import Reading
from tracecal.logs.record import Details, Record, StopToken
from tracecal.logs.steps import SLACK, Step, WrongRow, entropies, surprisals


@dataclass(frozen=True)
class Given(Details):
    """An answer in a format's own terms; `exact` holds entropies that need no working out."""

    steps: Sequence[Step] = ()
    exact: dict[str, Sequence[float]] = field(default_factory=dict)


BOUNDS = ("entropy_lower", "entropy_upper")
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


def record(example_id: str, given: Given, reading: Reading) -> Record:
    """The record of an answer. Raises `WrongRow` where there is nothing of an answer in it."""
    surprisal, lacks = surprisals(given.steps)
    entropy = given.exact.get("entropy")
    if entropy and max(entropy) > (most := math.log(reading.vocabulary or math.inf)) + SLACK:
        raise WrongRow(
            f"it has the entropy {max(entropy):g}, above {most:.4g}, the most that the vocabulary "
            "allows: entropies are in nats"
        )
    bounds = {key: given.exact[key] for key in BOUNDS if key in given.exact}
    if entropy is None:
        found, why = entropies(given.steps, reading.vocabulary, reading.greedy)
        if found is not None:
            bounds["entropy_lower"] = [one.lower for one in found]
            if reading.vocabulary is None:
                why = "entropies need the vocabulary's size"
            else:
                entropy = [one.middle for one in found]
                bounds["entropy_upper"] = [one.upper for one in found]
        lacks = lacks or why
    if not (given.answer or "").strip() and not (surprisal or given.token_ids):
        raise WrongRow("the answer is empty")
    tokens = given.tokens
    if tokens is None and given.steps and all(step.text is not None for step in given.steps):
        tokens = [step.text for step in given.steps]
    finish = FINISHES.get(given.finish_reason or "", given.finish_reason)
    stated = reading.stop_token
    if stated == "auto":
        stated = "none" if finish == "length" else given.stop_token
    details = {name: getattr(given, name) for name in Details.__dataclass_fields__} | {
        "tokens": tokens,
        "finish_reason": finish,
        "stop_token": stated,
        "processed": given.processed if reading.processed == "auto" else reading.processed,
        "model": reading.model or given.model,
    }
    return Record(example_id, surprisal, entropy, **bounds, lacks=lacks, **details)


def stop_token(
    text: str | None, steps: Sequence[Step], stop_reason: str | int | None = None
) -> StopToken:
    """Whether the last token is the one that ended the answer, which its text leaves out.

    It is where the tokens are more than the text, or where the last one has no text of its own;
    spaces at either end do not count, as servers strip them, and where they alone are more it is
    unknown. A `stop_reason` is vLLM's, whose tokens hold what ended the answer.
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
