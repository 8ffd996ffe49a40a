"""The proxy's metrics for Prometheus, at `/metrics`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

import prometheus_client as prometheus
from aiohttp import web
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tracecal.serving.watcher import Watcher

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
        watcher, state = self.watcher, self.watcher.state
        keeps = {value: watcher.keeps[value] for value in KEEP_VALUES}
        yield counter("answers", "answers by keep; unknown: no probability", keeps, "keep")
        yield counter("unwatched", "answers that monitors never saw", watcher.n_unwatched)
        repeats = "answers whose id their server had given before"
        yield counter("repeated_ids", repeats, watcher.n_repeated)
        n_answers = {"seen": state.n_answers, "watched": state.n_watched}
        yield gauge("state_answers", "answers in the state, and those watched", n_answers, "which")
        is_alike = state.dependence_alarm is not None
        yield gauge("neighbours_alike", "1: so alike that alarms may be false", is_alike)
        is_watching = watcher.failure is None
        yield gauge("watching", "0: the monitors' state fails, see the log", is_watching)
        monitors = state.all_monitors.items()
        evidence = {name: monitor.evidence for name, monitor in monitors}
        yield gauge("evidence", "of each monitor that something changed", evidence, "monitor")
        limits = {name: state.limit_of(name) for name, _ in monitors}
        yield gauge("evidence_limit", "at which each monitor raises its alarm", limits, "monitor")
        alarms = {name: monitor.alarm is not None for name, monitor in monitors}
        yield gauge("alarm", "1: the monitor raised its alarm", alarms, "monitor")


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    description: str,
    values: Mapping[str, float] | float,
    label: str | None = None,
) -> Metric:
    """Make a metric of a value, or of values by a `label`."""
    if not isinstance(values, Mapping):
        return kind(f"tracecal_{name}", description, float(values))
    family = kind(f"tracecal_{name}", description, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family


counter, gauge = partial(_family, CounterMetricFamily), partial(_family, GaugeMetricFamily)
