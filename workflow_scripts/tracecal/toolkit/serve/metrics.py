"""What a proxy that watches tells: `/metrics` for Prometheus, and the page `/watch`."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import prometheus_client as prometheus
from aiohttp import web
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tracecal.errors import InputError
from tracecal.toolkit.serve.escalation import OUTCOMES
from tracecal.toolkit.serve.pictures import page
from tracecal.toolkit.serve.watcher import Watcher
from tracecal.watch.monitors import ERROR

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Metrics:
    """Requests of this process, and what its `watcher` knows.

    `escalated` counts answers by what became of them; null: nothing is escalated.
    """

    def __init__(self, watcher: Watcher, escalated: Counter[str] | None = None) -> None:
        self.watcher, self.escalated = watcher, escalated
        self.registry = prometheus.CollectorRegistry()
        own = {"namespace": "tracecal", "registry": self.registry}
        self.requests = prometheus.Counter(
            "requests", "requests answered by this process", ["status"], **own
        )
        self.seconds = prometheus.Histogram(
            "request_seconds", "from a request to its whole answer", buckets=BOUNDS, **own
        )
        self.registry.register(self)

    def install(self, application: web.Application) -> None:
        """Answer the two paths, count the others, and watch while the application runs."""
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/watch", self._watch)
        application.middlewares.append(self._counted)
        application.on_startup.append(self._start)
        application.on_cleanup.append(self._stop)

    async def _start(self, application: web.Application) -> None:
        self.watcher.start()

    async def _stop(self, application: web.Application) -> None:
        await asyncio.to_thread(self.watcher.stop)

    @web.middleware
    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in ("/metrics", "/watch"):
            return await handler(request)
        begun = time.perf_counter()
        response = await handler(request)
        self.seconds.observe(time.perf_counter() - begun)
        self.requests.labels(response.status).inc()
        return response

    async def _metrics(self, request: web.Request) -> web.Response:
        body = prometheus.generate_latest(self.registry)
        return web.Response(body=body, headers={"Content-Type": prometheus.CONTENT_TYPE_LATEST})

    async def _watch(self, request: web.Request) -> web.Response:
        try:
            body = await asyncio.to_thread(page, self.watcher)
        except InputError as error:
            return web.Response(text=f"The proxy does not watch: {error}", status=503)
        return web.Response(text=body, content_type="text/html")

    def collect(self) -> Iterator[Metric]:
        """What the library asks for at each request to `/metrics`."""
        watcher, state = self.watcher, self.watcher.state
        kinds = {kind: watcher.answers[kind] for kind in ("true", "false", "none", "unknown")}
        yield _counter("answers", "answers by keep; unknown: no probability", "keep", kinds)
        if self.escalated is not None:
            outcomes = {kind: self.escalated[kind] for kind in OUTCOMES}
            yield _counter("escalations", "answers by what became of them", "outcome", outcomes)
        unwatched, watching = watcher.unwatched, float(watcher.failure is None)
        yield CounterMetricFamily(
            "tracecal_unwatched", "answers that monitors never saw", unwatched
        )
        told = "0: the monitors' state fails, see the log"
        yield GaugeMetricFamily("tracecal_watching", told, watching)
        every = {name: (one, state.promise.limit) for name, one in state.monitors.items()}
        every[ERROR] = (state.errors, 1 / state.promise.chance)
        for name, what, value in (
            ("evidence", "of each monitor that something changed", lambda one, _: one.total),
            ("evidence_limit", "at which each monitor raises its alarm", lambda _, limit: limit),
            ("alarm", "1: the monitor raised its alarm", lambda one, _: one.alarm is not None),
        ):
            family = GaugeMetricFamily(f"tracecal_{name}", what, labels=["monitor"])
            for monitor, one in every.items():
                family.add_metric([monitor], float(value(*one)))
            yield family


def _counter(name: str, what: str, label: str, values: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"tracecal_{name}", what, labels=[label])
    for kind, value in values.items():
        family.add_metric([kind], value)
    return family
