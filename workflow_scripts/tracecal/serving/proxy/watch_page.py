"""What a proxy that watches tells: `/metrics` for Prometheus, and the page `/watch`."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import prometheus_client as prometheus
from aiohttp import web
from jinja2 import Environment, StrictUndefined
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tracecal.errors import InputError
from tracecal.serving.monitoring.state import ERROR, State
from tracecal.serving.monitoring.traffic import NAMES, alike, went_in
from tracecal.serving.proxy.escalation import OUTCOMES
from tracecal.serving.proxy.watcher import Watcher

DAYS, BINS, POINTS = 7, 20, 200
WIDTH, HEIGHT = 480, 160  # of a picture, in its own units
DAY = 86_400
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>What the proxy watches</title>
<style>
:root { color-scheme: light dark; --wrong: #b02a18; --own: #2a78b5; }
@media (prefers-color-scheme: dark) { :root { --wrong: #ff8f7f; --own: #8fbde6; } }
body { margin: 1.5rem auto; max-width: 72rem; padding: 0 1rem;
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
main { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
figure { margin: 0; display: flex; flex-direction: column; justify-content: end; }
svg { border-bottom: 1px solid; border-left: 1px solid; overflow: visible; }
svg * { vector-effect: non-scaling-stroke; }
.ends { display: flex; justify-content: space-between; font-size: 13px; opacity: .75;
  white-space: pre-line; }
.ends span:nth-child(2) { text-align: center; } .ends span:last-child { text-align: right; }
.alarm { color: var(--wrong); }
.loud { padding: .6rem 1rem; border: 3px solid var(--wrong); font-size: 1.2rem; }
.own { fill: var(--own); stroke: var(--own); } .known { fill: none; stroke: currentColor; }
.line { fill: none; stroke: var(--own); stroke-width: 2; }
.limit { stroke: var(--wrong); stroke-dasharray: 6 4; }
</style>
</head>
<body>
<h1>What the proxy watches</h1>
<p{% if wrong %} class="alarm"{% endif %}><strong>{{ told }}</strong></p>
{% if undecided %}<p class="alarm loud"><strong>{{ undecided }}</strong></p>{% endif %}
{% if warning %}<p class="alarm"><strong>WARNING: {{ warning }}.</strong></p>{% endif %}
<p>{{ watched }}. Pictures of the last {{ days }} days, {{ recent }} answers, in their order; times
in UTC.</p>
<p>{{ evidence }}</p>
<main>
{% for one in pictures -%}
<figure role="img" aria-label="{{ one.title }}"><figcaption>{{ one.title }}</figcaption>
<svg viewBox="0 0 {{ width }} {{ height }}">{{ one.drawn | safe }}</svg>
<span class="ends">{% for end in one.ends %}<span>{{ end }}</span>{% endfor %}</span></figure>
{% endfor -%}
</main>
</body>
</html>
"""


# Of the last days; SQLite counts, as a week may have more answers than memory should hold.
RECENT = """
SELECT count(*), min(place), max(place), count(kept), count(probability)
FROM answers WHERE time >= ?"""
# The first answer, one in the middle and the last, with their times.
TIMES = """
SELECT min(place), time FROM answers WHERE time >= ? GROUP BY (place - ?) * 2 / ?
UNION SELECT max(place), time FROM answers WHERE time >= ? ORDER BY 1"""
PROBABILITIES = f"""
SELECT min(CAST(probability * {BINS} AS INTEGER), {BINS - 1}), count(*)
FROM answers WHERE time >= ? AND probability IS NOT NULL GROUP BY 1"""
KEPT = """
SELECT avg(kept) FROM answers WHERE time >= ? AND kept IS NOT NULL
GROUP BY (place - ?) * ? / ? ORDER BY min(place)"""
EVIDENCE = """
SELECT evidence, max(place) FROM history WHERE time >= ?
GROUP BY (place - ?) * ? / ? ORDER BY 2"""  # of the row that has the largest place


def page(watcher: Watcher) -> str:
    """The page; raises `InputError` where the state cannot be read."""
    store = watcher.opened()
    try:
        state, warning, since = store.state, alike(store), time.time() - DAYS * DAY
        ((recent, first, last, decided, known),) = store.rows(RECENT, (since,))
        probabilities = dict(store.rows(PROBABILITIES, (since,)))
        first, span = first or 0, (last or 0) - (first or 0) + 1
        times = store.rows(TIMES, (since, first, span, since)) if recent else []
        pieces = min(POINTS, max(1, recent // 20))
        kept = [share for (share,) in store.rows(KEPT, (since, first, pieces, span))]
        history = [row for row, _ in store.rows(EVIDENCE, (since, first, POINTS, span))]
    finally:
        store.close()
    told = f"ALARM: {watcher.reason}." if watcher.reason else "No alarm."
    if watcher.failure:
        told = f"The proxy does not watch: {watcher.failure}"
    ends = [f"answer {place:,}\n{_clock(moment)}" for place, moment in times]
    pictures = [
        {
            "title": "Probability: bars of the traffic, outline of the calibration",
            "ends": ("0", "1"),
            "drawn": _distribution(
                [probabilities.get(place, 0) for place in range(BINS)],
                np.histogram(watcher.fitted.reference.probability, BINS, (0, 1))[0],
            ),
        },
        {
            "title": "Share kept of decided answers, from 0 to 1",
            "ends": ends,
            "drawn": _line([HEIGHT * (1 - share) for share in kept]),
        },
        *({"ends": ends} | one for one in _evidence(state, history)),
    ]
    return (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string(PAGE)
        .render(
            told=told,
            wrong=watcher.reason or watcher.failure,
            warning=warning,
            undecided=_undecided(watcher, recent, decided, known),
            evidence=_what_evidence_is(state),
            watched=went_in(state),
            recent=f"{recent:,}",
            days=DAYS,
            width=WIDTH,
            height=HEIGHT,
            pictures=pictures,
        )
    )


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%d %b %H:%M")


def _undecided(watcher: Watcher, recent: int, decided: int, known: int) -> str | None:
    """That none of the `recent` answers has a decision, though an error rate was asked for; null
    where that is not so.
    """
    if watcher.error_rate is None or decided or not recent:
        return None
    why = watcher.fitted.why_not(watcher.error_rate)
    if not known:
        why = "none has a probability, so that the server may give no log-probabilities"
    told = f"No answer has a decision, {recent:,} of {recent:,}: calibrate on answers like these"
    return f"{told} ({why})." if why else f"{told}."


def _what_evidence_is(state: State) -> str:
    settings = state.settings
    of_labels = f", that of labels ever with a chance of at most {settings.chance:.0%}"
    return (
        "Evidence is what bets that something has changed have won so far: while nothing changes "
        f"it reaches its limit, dashed, at most once in {settings.answers_per_alarm:,} answers on "
        f"average{of_labels if settings.error_rate is not None else ''}, and there the alarm is "
        "raised."
    )


def _distribution(own: Sequence[int], known: Sequence[int]) -> str:
    """Shares of probabilities from their counts by bin, those of the traffic filled."""
    drawn, wide = [], WIDTH / BINS
    shares = [np.array(counts) / max(sum(counts), 1) for counts in (own, known)]
    most = max(float(np.max(shares)), 1e-9)
    for kind, heights in zip(("own", "known"), shares, strict=True):
        for place, share in enumerate(heights):
            high = HEIGHT * share / most
            drawn.append(
                f'<rect class="{kind}" x="{place * wide:.1f}" y="{HEIGHT - high:.1f}" '
                f'width="{wide:.1f}" height="{high:.1f}"/>'
            )
    return "\n".join(drawn)


def _evidence(state: State, history: Sequence[str]) -> list[dict[str, str]]:
    """The evidence of each monitor on a logarithmic scale, its limit dashed."""
    limits = {name: (one.total, state.settings.limit) for name, one in state.monitors.items()}
    if state.settings.error_rate is not None:
        limits["labels"] = state.errors.total, 1 / state.settings.chance
    rows = [json.loads(row) for row in history]
    pictures = []
    for name, (now, limit) in limits.items():
        top = math.log(10 * limit)
        logs = [math.log(min(max(row[name], 1.0), 10 * limit)) for row in rows]
        line = HEIGHT * (1 - math.log(limit) / top)
        drawn = f'<line class="limit" x1="0" x2="{WIDTH}" y1="{line:.1f}" y2="{line:.1f}"/>'
        drawn += _line([HEIGHT * (1 - one / top) for one in logs])
        what = NAMES.get(name, name).capitalize()
        title = f"{what}: evidence {now:,.1f}, on a logarithmic scale; dashed: its limit {limit:,g}"
        pictures.append({"title": title, "drawn": drawn})
    return pictures


def _line(heights: Sequence[float]) -> str:
    step = WIDTH / max(len(heights) - 1, 1)
    points = " ".join(f"{place * step:.1f},{high:.1f}" for place, high in enumerate(heights))
    return f'<polyline class="line" points="{points}"/>'


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
        repeated = "answers whose id their server had given before"
        yield CounterMetricFamily("tracecal_repeated_ids", repeated, watcher.repeated)
        told = "answers in the state, and those watched of them"
        of_state = GaugeMetricFamily("tracecal_state_answers", told, labels=["which"])
        of_state.add_metric(["seen"], float(state.seen))
        of_state.add_metric(["watched"], float(state.answers))
        yield of_state
        told = "1: so alike that alarms may be false"
        alike = float(state.neighbours.alarm is not None)
        yield GaugeMetricFamily("tracecal_neighbours_alike", told, alike)
        told = "0: the monitors' state fails, see the log"
        yield GaugeMetricFamily("tracecal_watching", told, watching)
        every = {name: (one, state.settings.limit) for name, one in state.monitors.items()}
        every[ERROR] = (state.errors, 1 / state.settings.chance)
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
