"""Escalation: a large server is asked what the small one's answer is not kept for.

    client -> proxy -> small server: kept                     -> client
                    -> small server: not kept -> large server -> client

Only answers are escalated, and no refusal, so that the small server decides who may ask. The large
one gets the body of the request with its own model's name and its own key, and nothing else of the
client; its headers stay here.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import orjson
from aiohttp import ClientResponse
from multidict import CIMultiDict

from tracecal.jobs.progress import LOGGER
from tracecal.toolkit.serve.answers import events, whole
from tracecal.toolkit.serve.bodies import UnreadableError, json_object
from tracecal.toolkit.serve.confidence import Scorer, Unscored
from tracecal.toolkit.serve.events import Stream
from tracecal.toolkit.serve.forms import Form, Object
from tracecal.toolkit.serve.marks import (
    NO_CHOICES,
    as_second,
    closing,
    confidences,
    mark,
    marked,
    marks,
    spent,
)
from tracecal.toolkit.serve.messages import FAILURES, LargeServerError, sentence
from tracecal.toolkit.serve.server import Server
from tracecal.toolkit.serve.settings import Settings

# What becomes of answers: the last three are passed on unescalated, though they are not kept.
OUTCOMES = ("kept", "escalated", "early", "failed", "several", "too_large")


@dataclass
class Escalation:
    """The large server, asked with its `key`, and what is known of its answers by `scorer`.

    `early` judges the first tokens of the small server's. `counts` tells what became of answers.
    """

    settings: Settings
    scorer: Unscored = field(default_factory=Unscored)
    early: Scorer | None = None
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
        of_small = spent(_probability(found), (answer or {}).get("usage"))
        if outcome == "escalated":
            try:
                large = await self._whole(request, form)
            except FAILURES as error:
                outcome, why = "failed", _and_failed(why, error)
            else:
                self.counts[outcome] += 1
                of_large = spent(_probability(confidences(large)), large.get("usage"))
                return orjson.dumps(mark(large, marks(why, of_small, of_large)))
        self.counts[outcome] += 1
        if failure is not None:
            raise failure
        return orjson.dumps(mark(answer, marks(why, of_small))) if answer else content

    async def _whole(self, request: Object, form: Form) -> Object:
        """The large server's answer."""
        response = await self.ask(request, form, stream=False)
        async with response:
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
            body["stream_options"] = {**_stream_options(request), "include_usage": True}
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

    def stream(self, response: ClientResponse, small: Stream) -> AsyncGenerator[list[bytes], None]:
        """The events to pass on instead of the small server's `response`."""
        return _Streamed(self, small).events(response)


@dataclass
class _Streamed:
    """One streamed answer. `outcome` is null until it is known; then `why` says why."""

    escalation: Escalation
    small: Stream
    held: list[bytes] = field(default_factory=list)
    size: int = 0  # bytes that are held
    outcome: str | None = None
    why: str | None = None
    failure: Exception | None = None
    large: ClientResponse | None = None
    early: float | None = None
    judged_early: bool = False

    def __post_init__(self) -> None:
        settings = self.escalation.settings
        self.most = settings.most_bytes
        self.passes = settings.escalate_stream == "pass" and self.small.form.has_choices
        if _several(self.small.request):
            self.outcome, self.why = judged([], self.small.request, None)

    async def events(self, response: ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """The small server's events, which are held back until the answer is kept (where they are
        passed on, only the last ones); or the large one's.

        Raises the small server's failure where both fail.
        """
        async with aclosing(self._small(response)) as of_small:
            async for ready in of_small:
                yield ready
        if self.outcome in ("escalated", "early"):
            async with aclosing(self._large()) as of_large:
                async for ready in of_large:
                    yield ready
        self.escalation.counts[self.outcome or ""] += 1
        if self.outcome not in ("escalated", "early"):
            yield self._unescalated()
            if self.failure is not None:
                raise self.failure

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
                    if self.large is not None:
                        response.close()
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
        probability = _probability(self.small.confidences)
        probability = self.early if probability is None else probability
        return spent(probability, self.small.usage, _tokens(self.small))

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
        try:
            self.large = await self.escalation.ask(self.small.request, self.small.form, True)
            self.outcome = outcome
        except FAILURES as error:
            self.outcome, self.why = "failed", _and_failed(self.why, error)

    async def _large(self) -> AsyncGenerator[list[bytes], None]:
        """The large server's events, with what it counted in the last ones.

        Where it fails before the first, the outcome says so, unless the small one's answer was cut
        off. Raises `LargeServerError` where it cannot be made good.
        """
        assert self.large is not None
        request = self.small.request
        stream = Stream(self.escalation.scorer, request, self.small.form, self.most)
        told = _stream_options(request).get("include_usage")
        begun, tail = False, []
        async with self.large:
            try:
                async for arrived in events(self.large, stream):
                    if stream.failed:
                        raise UnreadableError("it sent an error")
                    tail += [one for one in arrived if told or NO_CHOICES not in one]
                    if stream.size and (not stream.confidences or stream.size > self.most):
                        yield self._of_large(tail, stream, begun)
                        begun, tail = True, []
                if not stream.size:
                    raise UnreadableError("its answer is none")
            except FAILURES as error:
                if begun or self.outcome == "early":
                    self.escalation.counts["failed"] += 1
                    raise LargeServerError(_and_failed(None, error)) from error
                self.outcome, self.why = "failed", _and_failed(self.why, error)
                return
        yield self._of_large(tail, stream, begun)

    def _of_large(self, events: Sequence[bytes], large: Stream, begun: bool) -> list[bytes]:
        """Events of the large server, behind the end of the small one's where they are the first
        and that was passed on.
        """
        small = self._spent()
        found = _probability(large.confidences)
        of_large = spent(found, large.usage, _tokens(large) or None)
        ready = marked(events, marks(self.why, small, of_large))
        if not self.passes or not self.small.chunk:
            return ready
        ready = [as_second(event) for event in ready]
        if begun:
            return ready
        unknown = Unscored().unknown(self.why or "") | {"probability": self.early}
        return [*closing(self.held, self.small, marks(self.why, small, of_large), unknown), *ready]


def judged(
    found: Sequence[Object], request: Object, failure: Exception | None
) -> tuple[str, str | None]:
    """What is to become of an answer with the confidences `found`, one of OUTCOMES, and why."""
    if _several(request) or len(found) > 1:
        return "several", "an answer of several choices is not escalated"
    if failure is not None:
        return "escalated", sentence(failure)
    if not found:
        return "escalated", "the small server's answer is none"
    if found[0]["keep"]:
        return "kept", None
    return "escalated", found[0]["reason"] or "it is not kept"


def _several(request: Object) -> bool:
    return isinstance(request.get("n"), int) and request["n"] > 1


def _and_failed(why: str | None, error: Exception) -> str:
    told = sentence(error, "the large server")
    LOGGER.warning("%s", told)
    return f"{why}; {told}" if why else told


def _probability(found: Sequence[Object]) -> float | None:
    return found[0]["probability"] if found else None


def _tokens(stream: Stream) -> int:
    return sum(choice.tokens for choice in stream.choices.values())


def _stream_options(request: Object) -> Object:
    options = request.get("stream_options")
    return options if isinstance(options, dict) else {}
