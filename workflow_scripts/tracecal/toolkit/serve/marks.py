"""What an answer says of its escalation, beside its confidence: in JSON, and in streamed events.

"escalated": whether it is the large model's,
"escalation": {"why": ..., "small": {"probability", "prompt_tokens", "generated_tokens"},
               "large": the same of the large model, null where it was not asked}
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tracecal.toolkit.serve.bodies import json_object
from tracecal.toolkit.serve.forms import Object

DATA = re.compile(rb"^data: (\{.*)$", re.MULTILINE)  # of an event as `Stream` writes it
NO_CHOICES = b'"choices":[]'  # not in a text, whose quotation marks are escaped


def confidences(answer: Object) -> list[Object]:
    """Those of a whole answer's choices, or of the Responses object."""
    told = [holder.get("confidence") for holder in _holders(answer)]
    return [one for one in told if isinstance(one, dict)]


def spent(probability: float | None, usage: Any, generated: int | None = None) -> Object:
    """A model's probability and tokens: those that its server counted, null where it does not say.

    `generated` counts where the server said nothing.
    """
    usage = usage if isinstance(usage, dict) else {}
    return {
        "probability": probability,
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "generated_tokens": usage.get("completion_tokens", usage.get("output_tokens", generated)),
    }


def marks(why: str | None, small: Object, large: Object | None = None) -> Object:
    """What is set in the confidence of an answer; it is the `large` model's where that is given."""
    escalation = {"why": why, "small": small, "large": large}
    return {"escalated": large is not None, "escalation": escalation}


def mark(answer: Object, told: Object) -> Object:
    """`answer`, a whole one or a streamed piece, whose confidences hold `told` too."""
    for holder in _holders(answer):
        if isinstance(holder.get("confidence"), dict):
            holder["confidence"] |= told
    return answer


def _holders(answer: Object) -> Iterator[Object]:
    """Where a confidence may stand: an answer, a Responses object, choices and their deltas."""
    choices = answer.get("choices")
    for choice in [answer, answer.get("response"), *(choices if isinstance(choices, list) else ())]:
        if isinstance(choice, dict):
            yield choice
            if isinstance(choice.get("delta"), dict):
                yield choice["delta"]


def marked(events: Sequence[bytes], told: Object) -> list[bytes]:
    """Events whose confidences hold `told` too."""
    return [_marked(event, told) if b'"confidence":' in event else event for event in events]


def _marked(event: bytes, told: Object) -> bytes:
    found = DATA.search(event)
    value = found and json_object(found[1])
    if not found or not value:
        return event
    return event[: found.start(1)] + orjson.dumps(mark(value, told)) + event[found.end(1) :]
