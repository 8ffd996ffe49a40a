"""A streamed answer that may be escalated: the small server's events, or the large one's."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from aiohttp import ClientResponse

from tracecal.serving.proxy.escalation import (
    Escalation,
    decide,
    escalation_metadata,
    first_probability,
    has_several_choices,
    resource_usage,
    stream_options,
    with_failure,
    with_metadata,
)
from tracecal.serving.proxy.failures import SERVER_FAILURES, LargeServerError
from tracecal.serving.proxy.json_bodies import Object, UnreadableError
from tracecal.serving.proxy.scored_stream import ScoredStream

NO_CHOICES = b'"choices":[]'  # not in a text, whose quotation marks are escaped


@dataclass
class EscalatedStream:
    """One streamed answer. `pending` are the events held back, of `pending_size` bytes.

    `outcome` says what becomes of the answer, None until it is known, and `reason` why.
    """

    escalation: Escalation
    small: ScoredStream
    pending: list[bytes] = field(default_factory=list)
    pending_size: int = 0
    outcome: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        small = self.small
        self.large = ScoredStream(
            self.escalation.scorer, small.request, small.endpoint, small.max_bytes
        )
        if has_several_choices(small.request):
            self.outcome, self.reason = decide([], small.request, None)

    async def events(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """Yield the small server's events, held back until the answer is kept, or the large one's.

        The small server's failure is raised where both fail.
        """
        failure = None
        try:
            try:
                async with aclosing(self.small.events(response)) as arriving:
                    async for events in arriving:
                        self._hold_back(events)
                        if self.outcome is not None:
                            yield self._release()
            except SERVER_FAILURES as error:
                failure = error
            if self.outcome is None:
                confidences, request = self.small.confidences, self.small.request
                self.outcome, self.reason = decide(confidences, request, failure)
            if self.outcome == "escalated":
                async with aclosing(self._large_events()) as arriving:
                    async for events in arriving:
                        yield events
            if self.outcome != "escalated":
                yield self._release()
                if failure is not None:
                    raise failure
        finally:
            if self.outcome is not None:
                self.escalation.outcomes[self.outcome] += 1

    def _hold_back(self, events: list[bytes]) -> None:
        self.pending += events
        self.pending_size += sum(map(len, events))
        if self.outcome is None and self.pending_size > self.small.max_bytes:
            self.outcome, self.reason = "too_large", "it is too large to be held (--max-body)"

    def _release(self) -> list[bytes]:
        """Return the events held back, with metadata."""
        events, self.pending, self.pending_size = self.pending, [], 0
        return with_metadata(events, escalation_metadata(self.reason, _usage(self.small)))

    async def _large_events(self) -> AsyncGenerator[list[bytes], None]:
        """Yield the large server's events, the last ones with what it counted.

        Yields nothing where the server fails before its answer begins; raises `LargeServerError`
        where it fails later.
        """
        small, large, tail, has_passed_on = self.small, self.large, [], False
        wants_usage = stream_options(small.request).get("include_usage")
        try:
            async with asyncio.timeout(self.escalation.settings.escalate_timeout) as limit:
                response = await self.escalation.ask(small.request, small.endpoint, stream=True)
                async with response, aclosing(large.events(response)) as arriving:
                    async for events in arriving:
                        if large.has_failed:
                            raise UnreadableError("it sent an error")
                        tail += [
                            event for event in events if wants_usage or NO_CHOICES not in event
                        ]
                        is_open = not large.confidences or large.size > large.max_bytes
                        if large.has_begun and is_open:
                            limit.reschedule(None)
                            has_passed_on = True
                            yield self._large_with_metadata(tail)
                            tail = []
            if not large.has_begun:
                raise UnreadableError("its answer is none")
        except SERVER_FAILURES as error:
            self.outcome = "failed"
            if has_passed_on:
                raise LargeServerError(with_failure(None, error)) from error
            self.reason = with_failure(self.reason, error)
        else:
            yield self._large_with_metadata(tail)

    def _large_with_metadata(self, events: list[bytes]) -> list[bytes]:
        usages = _usage(self.small), _usage(self.large)
        return with_metadata(events, escalation_metadata(self.reason, *usages))


def _usage(stream: ScoredStream) -> Object:
    """Return a model's usage; tokens are counted here where the server does not say how many."""
    n_tokens = sum(choice.n_tokens for choice in stream.choices.values())
    return resource_usage(first_probability(stream.confidences), stream.usage, n_tokens or None)
