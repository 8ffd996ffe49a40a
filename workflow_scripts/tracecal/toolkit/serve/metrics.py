"""What a proxy that watches tells: `/metrics` for Prometheus, and the page `/watch`."""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

from aiohttp import web

from tracecal.errors import InputError
from tracecal.toolkit.serve.escalation import OUTCOMES
from tracecal.toolkit.serve.pictures import page
from tracecal.toolkit.serve.watcher import Watcher
from tracecal.watch.monitors import ERROR

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds
TEXT = "text/plain; version=0.0.4; charset=utf-8"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]


class Metrics:
    """Requests of this process: how many by status, and how long they took."""

    def __init__(self, watcher: Watcher, escalated: Counter[str] | None = None) -> None:
        self.watcher = watcher
        self.escalated = escalated  # answers by what became of them; null: nothing is escalated
        self.statuses: Counter[int] = Counter()
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def install(self, application: web.Application) -> None:
        """Answer the two paths, count the others, and watch while the application runs."""
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/watch", self._watch)
        application.middlewares.append(self._counting())
        application.on_startup.append(self._start)
        application.on_cleanup.append(self._stop)

    async def _start(self, application: web.Application) -> None:
        self.watcher.start()

    async def _stop(self, application: web.Application) -> None:
        await asyncio.to_thread(self.watcher.stop)

    def _counting(self) -> Middleware:
        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.path in ("/metrics", "/watch"):
                return await handler(request)
            begun = time.perf_counter()
            response = await handler(request)
            took = time.perf_counter() - begun
            self.statuses[response.status] += 1
            self.buckets[bisect_left(BOUNDS, took)] += 1
            self.seconds += took
            return response

        return counted

    async def _metrics(self, request: web.Request) -> web.Response:
        body = "\n".join([*self._lines(), ""]).encode()
        return web.Response(body=body, headers={"Content-Type": TEXT})

    async def _watch(self, request: web.Request) -> web.Response:
        try:
            body = await asyncio.to_thread(page, self.watcher)
        except InputError as error:
            return web.Response(text=f"The proxy does not watch: {error}", status=503)
        return web.Response(text=body, content_type="text/html")

    def _lines(self) -> Iterator[str]:
        watcher, state = self.watcher, self.watcher.state
        yield from _told("requests_total", "counter", "requests answered by this process")
        for status, count in sorted(self.statuses.items()):
            yield f'tracecal_requests_total{{status="{status}"}} {count}'
        yield from _told("request_seconds", "histogram", "from a request to its whole answer")
        below = 0
        for bound, count in zip((*BOUNDS, "+Inf"), self.buckets, strict=True):
            below += count
            yield f'tracecal_request_seconds_bucket{{le="{bound}"}} {below}'
        yield f"tracecal_request_seconds_sum {self.seconds:.6f}"
        yield f"tracecal_request_seconds_count {below}"
        yield from _told("answers_total", "counter", "answers by keep; unknown: no probability")
        for kind in ("true", "false", "none", "unknown"):
            yield f'tracecal_answers_total{{keep="{kind}"}} {watcher.answers[kind]}'
        if self.escalated is not None:
            yield from _told("escalations_total", "counter", "answers by what became of them")
            for kind in OUTCOMES:
                yield f'tracecal_escalations_total{{outcome="{kind}"}} {self.escalated[kind]}'
        yield from _told("unwatched_total", "counter", "answers that monitors never saw")
        yield f"tracecal_unwatched_total {watcher.unwatched}"
        yield from _told("watching", "gauge", "0: the monitors' state fails, see the log")
        yield f"tracecal_watching {int(watcher.failure is None)}"
        every = {name: (one, state.promise.limit) for name, one in state.monitors.items()}
        every[ERROR] = (state.errors, 1 / state.promise.chance)
        yield from _told("evidence", "gauge", "of each monitor that something changed")
        for name, (one, _) in every.items():
            yield f'tracecal_evidence{{monitor="{name}"}} {one.total!r}'
        yield from _told("evidence_limit", "gauge", "at which each monitor raises its alarm")
        for name, (_, limit) in every.items():
            yield f'tracecal_evidence_limit{{monitor="{name}"}} {limit!r}'
        yield from _told("alarm", "gauge", "1: the monitor raised its alarm")
        for name, (one, _) in every.items():
            yield f'tracecal_alarm{{monitor="{name}"}} {int(one.alarm is not None)}'


def _told(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP tracecal_{name} {what}"
    yield f"# TYPE tracecal_{name} {kind}"
