"""A streamed answer that may be escalated: the small server's events, or the large one's."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from aiohttp import ClientResponse

from tracecal.toolkit.serve.answers import events
from tracecal.toolkit.serve.bodies import UnreadableError
from tracecal.toolkit.serve.escalation import (
    Escalation,
    and_failed,
    first_probability,
    has_several,
    judged,
    stream_options,
)
from tracecal.toolkit.serve.events import Stream
from tracecal.toolkit.serve.forms import Object
from tracecal.toolkit.serve.marks import NO_CHOICES, marked, marks, spent
from tracecal.toolkit.serve.messages import FAILURES, LargeServerError


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
        return marked(ready, marks(self.why, _spent(self.small)))

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
        return marked(ready, marks(self.why, _spent(self.small), _spent(self.large)))


def _spent(stream: Stream) -> Object:
    """As `spent`; tokens are counted here where a server does not say how many."""
    tokens = sum(choice.tokens for choice in stream.choices.values())
    return spent(first_probability(stream.confidences), stream.usage, tokens or None)
