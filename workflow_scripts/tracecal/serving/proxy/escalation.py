"""Escalation: a large server is asked what the small one's answer is not kept for."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import ClientResponse
from multidict import CIMultiDict

from tracecal.io.log import LOGGER
from tracecal.serving.proxy.confidence import Scorer, Unscored
from tracecal.serving.proxy.settings import Settings
from tracecal.serving.proxy.stream import Stream, events, whole
from tracecal.serving.proxy.wire import (
    FAILURES,
    Form,
    LargeServerError,
    Object,
    Server,
    UnreadableError,
    json_object,
    sentence,
)

DATA = re.compile(rb"^data: (\{.*)$", re.MULTILINE)  # of an event as `Stream` writes it
NO_CHOICES = b'"choices":[]'  # not in a text, whose quotation marks are escaped


def confidences(answer: Object) -> list[Object]:
    """Those of a whole answer's choices, or of the Responses object."""
    told = [holder.get("confidence") for holder in _holders(answer)]
    return [one for one in told if isinstance(one, dict)]


def resource_usage(probability: float | None, usage: Any, generated: int | None = None) -> Object:
    """A model's probability and tokens: those that its server counted, null where it does not say.

    `generated` counts where the server said nothing.
    """
    usage = usage if isinstance(usage, dict) else {}
    return {
        "probability": probability,
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "generated_tokens": usage.get("completion_tokens", usage.get("output_tokens", generated)),
    }


def escalation_metadata(why: str | None, small: Object, large: Object | None = None) -> Object:
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


# What becomes of answers. For the last three the large server failed, there were several choices,
# or there was too much to hold back.
OUTCOMES = ("kept", "escalated", "failed", "several", "too_large")


@dataclass
class Escalation:
    """The large server, asked with its `key`, and what is known of its answers by `scorer`.

    `counts` tells what became of answers.
    """

    settings: Settings
    scorer: Unscored = field(default_factory=Unscored)
    key: str | None = None
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.server = Server(self.settings.escalate or "", self.settings)

    async def whole(self, small: Awaitable[bytes], request: Object, form: Form) -> bytes:
        """The small server's answer, read and scored by `small`, or the large one's, both marked.

        Raises the small server's failure where both fail.
        """
        content, failure = b"", None
        try:
            content = await small
        except FAILURES as error:
            failure = error
        answer = json_object(content)
        found = confidences(answer or {})
        outcome, why = judged(found, request, failure)
        of_small = resource_usage(first_probability(found), (answer or {}).get("usage"))
        if outcome == "escalated":
            try:
                large = await self._whole(request, form)
            except FAILURES as error:
                outcome, why = "failed", and_failed(why, error)
            else:
                self.counts[outcome] += 1
                of_large = resource_usage(first_probability(confidences(large)), large.get("usage"))
                return orjson.dumps(mark(large, escalation_metadata(why, of_small, of_large)))
        self.counts[outcome] += 1
        if failure is not None:
            raise failure
        return orjson.dumps(mark(answer, escalation_metadata(why, of_small))) if answer else content

    async def _whole(self, request: Object, form: Form) -> Object:
        """The large server's answer."""
        async with (
            asyncio.timeout(self.settings.escalate_timeout),
            await self.ask(request, form, stream=False) as response,
        ):
            content = await whole(response, self.scorer, request, form, self.settings.most_bytes)
        answer = json_object(content)
        if answer is None or not confidences(answer):
            raise UnreadableError("its answer is none")
        return answer

    async def ask(self, request: Object, form: Form, stream: bool) -> ClientResponse:
        """The large server's response, whose body is still unread; raises where it is no answer."""
        body = request | {"model": self.settings.escalate_model, "stream": stream}
        if isinstance(self.scorer, Scorer):
            body |= form.additions(request, self.settings.top) or {}
        body.pop("stream_options", None)
        if stream and form.has_choices:
            body["stream_options"] = {**stream_options(request), "include_usage": True}
        kind = "text/event-stream" if stream else "application/json"
        headers = CIMultiDict(
            {"Content-Type": "application/json", "Accept": kind, "Accept-Encoding": "identity"}
        )
        headers["User-Agent"] = "tracecal"
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        response = await self.server.send("POST", form.path, orjson.dumps(body), headers)
        wrong = f"status {response.status}" if response.status != 200 else None
        if stream and response.content_type != kind:
            wrong = wrong or "its answer is no stream"
        if wrong:
            response.close()
            raise UnreadableError(wrong)
        return response


def judged(
    found: Sequence[Object], request: Object, failure: Exception | None
) -> tuple[str, str | None]:
    """What is to become of an answer with the confidences `found`, one of OUTCOMES, and why."""
    if has_several(request) or len(found) > 1:
        return "several", "an answer of several choices is not escalated"
    if failure is not None:
        return "escalated", sentence(failure)
    if not found:
        return "escalated", "the small server's answer is none"
    if found[0]["keep"]:
        return "kept", None
    return "escalated", found[0]["reason"] or "it is not kept"


def has_several(request: Object) -> bool:
    """Whether it asks for several choices, or has several prompts (a list of numbers is one)."""
    n, prompt = request.get("n"), request.get("prompt")
    prompts = isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int)
    return prompts or (isinstance(n, int) and n > 1)


def and_failed(why: str | None, error: Exception) -> str:
    """Why an answer was to be escalated, and why it was not."""
    if type(error) is TimeoutError:
        error = UnreadableError("it did not answer in time, --escalate-timeout")
    told = sentence(error, "the large server")
    LOGGER.warning("%s", told)
    return f"{why}; {told}" if why else told


def first_probability(found: Sequence[Object]) -> float | None:
    return found[0]["probability"] if found else None


def stream_options(request: Object) -> Object:
    options = request.get("stream_options")
    return options if isinstance(options, dict) else {}


# A streamed answer that may be escalated: the small server's events, or the large one's.


@dataclass
class Streamed:
    """One streamed answer. `outcome` is null until it is known; then `why` says why."""

    escalation: Escalation
    small: Stream
    held: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes that are held
    outcome: str | None = None
    why: str | None = None

    def __post_init__(self) -> None:
        small = self.small
        self.large = Stream(self.escalation.scorer, small.request, small.form, small.most)
        if has_several(small.request):
            self.outcome, self.why = judged([], small.request, None)

    async def events(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """The small server's events, which are held back until the answer is kept, or the large
        one's. Raises the small server's failure where both fail.
        """
        failure = None
        try:
            try:
                async with aclosing(events(response, self.small)) as arriving:
                    async for arrived in arriving:
                        self._hold(arrived)
                        if self.outcome is not None:
                            yield self._released()
            except FAILURES as error:
                failure = error
            if self.outcome is None:
                found, request = self.small.confidences, self.small.request
                self.outcome, self.why = judged(found, request, failure)
            if self.outcome == "escalated":
                async with aclosing(self._of_large()) as arriving:
                    async for ready in arriving:
                        yield ready
            if self.outcome != "escalated":
                yield self._released()
                if failure is not None:
                    raise failure
        finally:
            if self.outcome is not None:
                self.escalation.counts[self.outcome] += 1

    def _hold(self, arrived: list[bytes]) -> None:
        self.held += arrived
        self.size += sum(map(len, arrived))
        if self.outcome is None and self.size > self.small.most:
            self.outcome, self.why = "too_large", "it is too large to be held (--max-body)"

    def _released(self) -> list[bytes]:
        """The events held back, as the ones to pass on."""
        ready, self.held, self.size = self.held, [], 0
        return marked(ready, escalation_metadata(self.why, _usage_of(self.small)))

    async def _of_large(self) -> AsyncGenerator[list[bytes], None]:
        """The large server's events, the last ones with what it counted; none where it fails before
        its answer begins. Raises `LargeServerError` where it fails later.
        """
        small, large, tail, passed_on = self.small, self.large, [], False
        told = stream_options(small.request).get("include_usage")
        try:
            async with asyncio.timeout(self.escalation.settings.escalate_timeout) as limit:
                response = await self.escalation.ask(small.request, small.form, stream=True)
                async with response, aclosing(events(response, large)) as arriving:
                    async for arrived in arriving:
                        if large.failed:
                            raise UnreadableError("it sent an error")
                        tail += [one for one in arrived if told or NO_CHOICES not in one]
                        if large.begun and (not large.confidences or large.size > large.most):
                            limit.reschedule(None)
                            passed_on = True
                            yield self._marked(tail)
                            tail = []
            if not large.begun:
                raise UnreadableError("its answer is none")
        except FAILURES as error:
            self.outcome = "failed"
            if passed_on:
                raise LargeServerError(and_failed(None, error)) from error
            self.why = and_failed(self.why, error)
        else:
            yield self._marked(tail)

    def _marked(self, ready: list[bytes]) -> list[bytes]:
        return marked(
            ready, escalation_metadata(self.why, _usage_of(self.small), _usage_of(self.large))
        )


def _usage_of(stream: Stream) -> Object:
    """As `resource_usage`; tokens are counted here where a server does not say how many."""
    tokens = sum(choice.tokens for choice in stream.choices.values())
    return resource_usage(first_probability(stream.confidences), stream.usage, tokens or None)
