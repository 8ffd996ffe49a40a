"""The proxy's metrics for Prometheus, at `/metrics`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import prometheus_client as prometheus
from aiohttp import web
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tracecal.serving.proxy.watcher import Watcher

PATH = "/metrics"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds
KEEP_VALUES = ("true", "false", "none", "unknown")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Metrics:
    """Requests of this process, and what its watcher knows."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.registry = prometheus.CollectorRegistry()
        options = {"namespace": "tracecal", "registry": self.registry}
        self.requests = prometheus.Counter("requests", "requests answered", ["status"], **options)
        self.seconds = prometheus.Histogram(
            "request_seconds", "from a request to its whole answer", buckets=BUCKETS, **options
        )
        self.registry.register(self)

    def install(self, application: web.Application) -> None:
        """Serve the metrics, count other requests, and watch while the application runs."""
        application.router.add_get(PATH, self._serve)
        application.middlewares.append(self._count)
        application.on_startup.append(self._start_watching)
        application.on_cleanup.append(self._stop_watching)

    async def _start_watching(self, application: web.Application) -> None:
        self.watcher.start()

    async def _stop_watching(self, application: web.Application) -> None:
        await asyncio.to_thread(self.watcher.stop)

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path == PATH:
            return await handler(request)
        start = time.perf_counter()
        response = await handler(request)
        self.seconds.observe(time.perf_counter() - start)
        self.requests.labels(response.status).inc()
        return response

    async def _serve(self, request: web.Request) -> web.Response:
        body = prometheus.generate_latest(self.registry)
        return web.Response(body=body, headers={"Content-Type": prometheus.CONTENT_TYPE_LATEST})

    def collect(self) -> Iterator[Metric]:
        """Yield what the Prometheus library asks for at each request to `/metrics`."""
        yield from self._answer_counts()
        yield from self._state_gauges()
        yield from self._monitor_gauges()

    def _answer_counts(self) -> Iterator[Metric]:
        watcher = self.watcher
        answers = CounterMetricFamily(
            "tracecal_answers", "answers by keep; unknown: no probability", labels=["keep"]
        )
        for value in KEEP_VALUES:
            answers.add_metric([value], watcher.keeps[value])
        yield answers
        yield CounterMetricFamily(
            "tracecal_unwatched", "answers that monitors never saw", watcher.n_unwatched
        )
        yield CounterMetricFamily(
            "tracecal_repeated_ids",
            "answers whose id their server had given before",
            watcher.n_repeated,
        )

    def _state_gauges(self) -> Iterator[Metric]:
        state = self.watcher.state
        answers = GaugeMetricFamily(
            "tracecal_state_answers", "answers in the state, and those watched", labels=["which"]
        )
        answers.add_metric(["seen"], float(state.n_answers))
        answers.add_metric(["watched"], float(state.n_watched))
        yield answers
        yield GaugeMetricFamily(
            "tracecal_neighbours_alike",
            "1: so alike that alarms may be false",
            float(state.dependence_alarm is not None),
        )
        yield GaugeMetricFamily(
            "tracecal_watching",
            "0: the monitors' state fails, see the log",
            float(self.watcher.failure is None),
        )

    def _monitor_gauges(self) -> Iterator[Metric]:
        state = self.watcher.state
        gauges = {
            "evidence": "of each monitor that something changed",
            "evidence_limit": "at which each monitor raises its alarm",
            "alarm": "1: the monitor raised its alarm",
        }
        families = [
            GaugeMetricFamily(f"tracecal_{name}", description, labels=["monitor"])
            for name, description in gauges.items()
        ]
        for name, monitor in state.all_monitors.items():
            values = monitor.evidence, state.limit_of(name), monitor.alarm is not None
            for family, value in zip(families, values, strict=True):
                family.add_metric([name], float(value))
        yield from families
