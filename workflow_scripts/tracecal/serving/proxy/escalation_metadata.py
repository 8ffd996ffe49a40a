"""What a confidence says of escalation: both models' probabilities and tokens, and why."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tracecal.serving.proxy.json_bodies import Object, json_object

DATA = re.compile(rb"^data: (\{.*)$", re.MULTILINE)  # of an event as `ScoredStream` writes it


def resource_usage(probability: float | None, usage: Any, n_generated: int | None = None) -> Object:
    """Return a model's probability and tokens, as its server counted them; None where it did not.

    `n_generated` are the generated tokens where the server does not say.
    """
    usage = usage if isinstance(usage, dict) else {}
    return {
        "probability": probability,
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "generated_tokens": usage.get("completion_tokens", usage.get("output_tokens", n_generated)),
    }


def escalation_metadata(reason: str | None, small: Object, large: Object | None = None) -> Object:
    """Return what is added to a confidence, from each model's `resource_usage`.

    `large` is given where the answer is the large model's.
    """
    escalation = {"why": reason, "small": small, "large": large}
    return {"escalated": large is not None, "escalation": escalation}


def confidences_of(answer: Object) -> list[Object]:
    """Return the confidences of an answer's choices, or of a Responses object."""
    confidences = [holder.get("confidence") for holder in _holders(answer)]
    return [confidence for confidence in confidences if isinstance(confidence, dict)]


def add_metadata(answer: Object, metadata: Object) -> Object:
    """Add metadata to each confidence of an answer, or of a streamed piece, and return it."""
    for holder in _holders(answer):
        if isinstance(holder.get("confidence"), dict):
            holder["confidence"] |= metadata
    return answer


def with_metadata(events: Sequence[bytes], metadata: Object) -> list[bytes]:
    """Return a stream's events with metadata added to each confidence."""
    return [
        _event_with_metadata(event, metadata) if b'"confidence":' in event else event
        for event in events
    ]


def _event_with_metadata(event: bytes, metadata: Object) -> bytes:
    match = DATA.search(event)
    value = match and json_object(match[1])
    if not match or not value:
        return event
    data = orjson.dumps(add_metadata(value, metadata))
    return event[: match.start(1)] + data + event[match.end(1) :]


def _holders(answer: Object) -> Iterator[Object]:
    """Yield where a confidence may be: an answer, a Responses object, choices and their deltas."""
    choices = answer.get("choices")
    choices = choices if isinstance(choices, list) else ()
    for holder in [answer, answer.get("response"), *choices]:
        if isinstance(holder, dict):
            yield holder
            if isinstance(holder.get("delta"), dict):
                yield holder["delta"]
