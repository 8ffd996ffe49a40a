"""Escalation: the large server is asked where the small one's answer is not kept.

Each confidence then says why, and what either model used (`escalation_metadata`).
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import ClientResponse
from multidict import CIMultiDict

from tracecal.io.log import LOGGER
from tracecal.serving.proxy.answer import scored_answer
from tracecal.serving.proxy.endpoints import Endpoint, confidence_holders
from tracecal.serving.proxy.failures import SERVER_FAILURES, failure_sentence
from tracecal.serving.proxy.json_bodies import Object, UnreadableError, json_object, require_utf8
from tracecal.serving.proxy.scorer import Scorer, Unscored
from tracecal.serving.proxy.settings import ProxySettings
from tracecal.serving.proxy.upstream import UpstreamServer

# What becomes of answers. In the last three cases the large server failed, there were several
# choices, or the answer was too large to be held back.
OUTCOMES = ("kept", "escalated", "failed", "several", "too_large")
DATA = re.compile(rb"^data: (\{.*)$", re.MULTILINE)  # of an event as `ScoredStream` writes it


@dataclass
class Escalation:
    """The large server, its `key`, and the `scorer` of its answers.

    `outcomes` counts answers by what became of them.
    """

    settings: ProxySettings
    scorer: Unscored = field(default_factory=Unscored)
    key: str | None = None
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.server = UpstreamServer(self.settings.escalate or "", self.settings)

    async def answer(self, small: Awaitable[bytes], request: Object, endpoint: Endpoint) -> bytes:
        """Return the small server's answer or the large one's, with both models' usage.

        `small` reads and scores the small server's answer; its failure is raised where both fail.
        """
        content, failure = b"", None
        try:
            content = await small
        except SERVER_FAILURES as error:
            failure = error
        answer = json_object(content)
        confidences = confidences_of(answer or {})
        outcome, reason = decide(confidences, request, failure)
        small_usage = resource_usage(first_probability(confidences), (answer or {}).get("usage"))
        if outcome == "escalated":
            try:
                large = await self._large_answer(request, endpoint)
            except SERVER_FAILURES as error:
                outcome, reason = "failed", with_failure(reason, error)
            else:
                self.outcomes[outcome] += 1
                probability = first_probability(confidences_of(large))
                large_usage = resource_usage(probability, large.get("usage"))
                metadata = escalation_metadata(reason, small_usage, large_usage)
                return orjson.dumps(add_metadata(large, metadata))
        self.outcomes[outcome] += 1
        if failure is not None:
            raise failure
        if not answer:
            return content
        return orjson.dumps(add_metadata(answer, escalation_metadata(reason, small_usage)))

    async def _large_answer(self, request: Object, endpoint: Endpoint) -> Object:
        async with (
            asyncio.timeout(self.settings.escalate_timeout),
            await self.ask(request, endpoint, stream=False) as response,
        ):
            max_bytes = self.settings.max_bytes
            content = await scored_answer(response, self.scorer, request, endpoint, max_bytes)
        answer = json_object(content)
        if answer is None or not confidences_of(answer):
            raise UnreadableError("its answer is none")
        return answer

    async def ask(self, request: Object, endpoint: Endpoint, stream: bool) -> ClientResponse:
        """Return the large server's response, whose body is still unread.

        Raises `UnreadableError` where it is no answer, or no stream where one was asked for.
        """
        body = request | {"model": self.settings.escalate_model, "stream": stream}
        if isinstance(self.scorer, Scorer):
            body |= endpoint.additions(request, self.settings.top) or {}
        body.pop("stream_options", None)
        if stream and endpoint.has_choices:
            body["stream_options"] = {**stream_options(request), "include_usage": True}
        content_type = "text/event-stream" if stream else "application/json"
        headers = CIMultiDict(
            {
                "Content-Type": "application/json",
                "Accept": content_type,
                "Accept-Encoding": "identity",
                "User-Agent": "tracecal",
            }
        )
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        response = await self.server.send("POST", endpoint.path, orjson.dumps(body), headers)
        wrong = f"status {response.status}" if response.status != 200 else None
        if stream and response.content_type != content_type:
            wrong = wrong or "its answer is no stream"
        if wrong:
            response.close()
            raise UnreadableError(wrong)
        require_utf8(response)
        return response


def decide(
    confidences: Sequence[Object], request: Object, failure: Exception | None
) -> tuple[str, str | None]:
    """Return what becomes of the small server's answer, one of OUTCOMES, and why."""
    if has_several_choices(request) or len(confidences) > 1:
        return "several", "an answer of several choices is not escalated"
    if failure is not None:
        return "escalated", failure_sentence(failure)
    if not confidences:
        return "escalated", "the small server's answer is none"
    if confidences[0]["keep"]:
        return "kept", None
    return "escalated", confidences[0]["reason"] or "it is not kept"


def has_several_choices(request: Object) -> bool:
    """Return whether a request asks for several choices, or has several prompts.

    A prompt that is a list of numbers is one prompt.

    >>> has_several_choices({"n": 2}), has_several_choices({"prompt": [1, 2]})
    (True, False)
    """
    n, prompt = request.get("n"), request.get("prompt")
    if isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int):
        return True
    return isinstance(n, int) and n > 1


def with_failure(reason: str | None, error: Exception) -> str:
    """Log that the large server failed; return why an answer was to be escalated and was not."""
    if type(error) is TimeoutError:
        error = UnreadableError("it did not answer in time, --escalate-timeout")
    failure = failure_sentence(error, "the large server")
    LOGGER.warning("%s", failure)
    return f"{reason}; {failure}" if reason else failure


def first_probability(confidences: Sequence[Object]) -> float | None:
    """Return the first choice's probability, None without choices."""
    return confidences[0]["probability"] if confidences else None


def stream_options(request: Object) -> Object:
    """Return a request's `stream_options`, empty where it has none."""
    options = request.get("stream_options")
    return options if isinstance(options, dict) else {}


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
    confidences = [holder.get("confidence") for holder in confidence_holders(answer)]
    return [confidence for confidence in confidences if isinstance(confidence, dict)]


def add_metadata(answer: Object, metadata: Object) -> Object:
    """Add metadata to each confidence of an answer, or of a streamed piece, and return it."""
    for holder in confidence_holders(answer):
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
