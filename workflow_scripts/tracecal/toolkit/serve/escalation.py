"""Escalation: a large server is asked what the small one's answer is not kept for.

    client -> proxy -> small server: kept                     -> client
                    -> small server: not kept -> large server -> client

Only answers are escalated, and no refusal, so that the small server decides who may ask. The large
one gets the body of the request with its own model's name and its own key, and nothing else of the
client; its headers stay here.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import orjson
from aiohttp import ClientResponse
from multidict import CIMultiDict

from tracecal.jobs.progress import LOGGER
from tracecal.toolkit.serve.answers import whole
from tracecal.toolkit.serve.bodies import UnreadableError, json_object
from tracecal.toolkit.serve.confidence import Scorer, Unscored
from tracecal.toolkit.serve.forms import Form, Object
from tracecal.toolkit.serve.marks import confidences, mark, marks, spent
from tracecal.toolkit.serve.messages import FAILURES, sentence
from tracecal.toolkit.serve.server import Server
from tracecal.toolkit.serve.settings import Settings

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
        of_small = spent(first_probability(found), (answer or {}).get("usage"))
        if outcome == "escalated":
            try:
                large = await self._whole(request, form)
            except FAILURES as error:
                outcome, why = "failed", and_failed(why, error)
            else:
                self.counts[outcome] += 1
                of_large = spent(first_probability(confidences(large)), large.get("usage"))
                return orjson.dumps(mark(large, marks(why, of_small, of_large)))
        self.counts[outcome] += 1
        if failure is not None:
            raise failure
        return orjson.dumps(mark(answer, marks(why, of_small))) if answer else content

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
