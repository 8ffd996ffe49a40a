"""A streamed answer that may be escalated: the small server's events, or the large one's."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import orjson
from aiohttp import ClientResponse

from tracecal.toolkit.serve.answers import events
from tracecal.toolkit.serve.assembled import Assembled
from tracecal.toolkit.serve.bodies import UnreadableError
from tracecal.toolkit.serve.confidence import Unscored
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
from tracecal.toolkit.serve.marks import NO_CHOICES, as_second, closing, marked, marks, spent
from tracecal.toolkit.serve.messages import FAILURES, LargeServerError

ESCALATED = ("escalated", "early")


@dataclass
class Streamed:
    """One streamed answer. `outcome` is null until it is known; then `why` says why."""

    escalation: Escalation
    small: Stream
    held: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes that are held
    outcome: str | None = None
    why: str | None = None
    failure: Exception | None = None
    large: ClientResponse | None = None
    first: list[bytes] = field(default_factory=list)  # of the large server's events
    early: float | None = None
    judged_early: bool = False

    def __post_init__(self) -> None:
        settings = self.escalation.settings
        self.most = settings.most_bytes
        self.passes = settings.escalate_stream == "pass" and self.small.form.has_choices
        self.of_large = Stream(
            self.escalation.scorer, self.small.request, self.small.form, self.most
        )
        if has_several(self.small.request):
            self.outcome, self.why = judged([], self.small.request, None)

    async def events(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """The small server's events, which are held back until the answer is kept (where they are
        passed on, only the last ones); or the large one's.

        Raises the small server's failure where both fail.
        """
        try:
            async with aclosing(self._small(response)) as of_small:
                async for ready in of_small:
                    yield ready
            if self.outcome in ESCALATED:
                response.close()
                async with aclosing(self._large()) as of_large:
                    async for ready in of_large:
                        yield ready
            else:
                yield self._unescalated()
                if self.failure is not None:
                    raise self.failure
        finally:
            if self.outcome is not None:
                self.escalation.counts[self.outcome] += 1
            if self.large is not None:
                self.large.close()

    async def whole(self, response: ClientResponse) -> bytes:
        """As `events`, as the bytes of an answer that is not streamed.

        Where the large server breaks off, a small one's answer that is complete counts.
        """
        self.passes = False
        told = Assembled(self.most)
        try:
            async with aclosing(self.events(response)) as arriving:
                async for arrived in arriving:
                    told.add(arrived)
        except LargeServerError as error:
            if not self.small.confidences:
                raise
            self.why, told = f"{self.why}; {error}", Assembled(self.most)
            told.add(self._unescalated())
        return orjson.dumps(told.answer())

    async def _small(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """The small server's events that need not be held back, until it is known what to do."""
        try:
            async for arrived in events(response, self.small):
                self.held += arrived
                self.size += sum(map(len, arrived))
                if self.outcome is None and self.size > self.most:
                    self.outcome, self.why = "too_large", "it is too large to be held (--max-body)"
                if self.outcome is not None or (self.passes and not self.small.confidences):
                    yield self._unescalated()
                if self._is_doubtful():
                    await self._ask("early")
                if self.outcome == "early":
                    return
        except FAILURES as error:
            self.failure = error
        if self.outcome is None:
            self.outcome, self.why = judged(
                self.small.confidences, self.small.request, self.failure
            )
            if self.outcome == "escalated":
                await self._ask(self.outcome)

    def _unescalated(self) -> list[bytes]:
        """The events held back, as the ones to pass on."""
        ready, self.held, self.size = self.held, [], 0
        return marked(ready, marks(self.why, self._spent()))

    def _spent(self) -> Object:
        probability = first_probability(self.small.confidences)
        probability = self.early if probability is None else probability
        return spent(probability, self.small.usage, _tokens(self.small) or None)

    def _is_doubtful(self) -> bool:
        """Whether the first tokens say so; asked once, as soon as there are enough."""
        early, settings, small = self.escalation.early, self.escalation.settings, self.small
        undecided = self.outcome is None and not self.judged_early and not small.confidences
        if early is None or not undecided or _tokens(small) < (settings.early or 0):
            return False
        self.judged_early = True
        whole = small.so_far()
        self.early = early.of_answer(whole, small.request)["probability"] if whole else None
        if self.early is None or self.early >= (settings.early_below or 0):
            return False
        self.why = f"after {settings.early} tokens its probability was {self.early:.3f}"
        return True

    async def _ask(self, outcome: str) -> None:
        """Ask the large server and wait for its first event; until then the small one is there."""
        small = self.small
        try:
            self.large = await self.escalation.ask(small.request, small.form, stream=True)
            self.arriving = events(self.large, self.of_large)
            while not self.of_large.size:
                self.first += await anext(self.arriving)
            self._require_answer()
            self.outcome = outcome
        except StopAsyncIteration:
            self._failed(UnreadableError("its answer is none"))
        except FAILURES as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.outcome, self.why = "failed", and_failed(self.why, error)

    def _require_answer(self) -> None:
        if self.of_large.failed:
            raise UnreadableError("it sent an error")

    async def _large(self) -> AsyncGenerator[list[bytes], None]:
        """The large server's events, the last ones with what it counted.

        Raises `LargeServerError` where it fails by now.
        """
        yield self._closing()
        told = stream_options(self.small.request).get("include_usage")
        tail: list[bytes] = []
        arrived: list[bytes] | None = self.first
        try:
            while arrived is not None:
                self._require_answer()
                tail += [one for one in arrived if told or NO_CHOICES not in one]
                if not self.of_large.confidences or self.of_large.size > self.most:
                    yield self._of_large(tail)
                    tail = []
                arrived = await anext(self.arriving, None)
        except FAILURES as error:
            self.outcome = "failed"
            raise LargeServerError(and_failed(None, error)) from error
        yield self._of_large(tail)

    def _marks(self) -> Object:
        """What an escalated answer says."""
        large = self.of_large
        probability = first_probability(large.confidences)
        return marks(
            self.why, self._spent(), spent(probability, large.usage, _tokens(large) or None)
        )

    def _of_large(self, events: Sequence[bytes]) -> list[bytes]:
        """Events of the large server: those of a second choice, where a first was passed on."""
        ready = marked(events, self._marks())
        second = self.passes and self.small.chunk
        return [as_second(event) for event in ready] if second else ready

    def _closing(self) -> list[bytes]:
        """The end of the small server's choice, where that was passed on."""
        if not self.passes:
            return []
        unknown = Unscored().unknown(self.why or "") | {"probability": self.early}
        return closing(self.held, self.small, self._marks(), unknown)


def _tokens(stream: Stream) -> int:
    return sum(choice.tokens for choice in stream.choices.values())
