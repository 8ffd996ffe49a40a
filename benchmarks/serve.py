"""Requests through `tracecal serve` and to the same server directly, 16 at once.

The server writes each answer of 100 tokens with 5 alternatives anew, with Python's own parser, as
servers do at least; proxy and server are processes of their own.

- Throughput: seconds by the clock, which on a machine with fewer than three idle cores is that of all
  CPU time together; and CPU seconds of the proxy beside the server's own, whose larger one bounds
  the throughput of one process each. Above a ratio of 4/3 the proxy takes more than a quarter.
  Beside it stands what the library costs that only passes bytes on.
- Latency, with `--watch`: what a request takes beyond the time that the server was told to wait, as
  a model's answer takes its time. The difference is what the proxy adds; that of answers passed on
  is what any proxy of this kind would.
- Memory, with `--watch`: resident MB at the end, beside those after a tenth of the requests.
"""

import asyncio
import json
import multiprocessing.connection
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from aiohttp import ClientSession, TCPConnector, web

from benchmarks.timing import REPEATS, Row
from support.labelled_answers import stored
from support.load import resident
from support.log_rows import chat, token
from support.running import CHAT, command

OTHER = "/v1/other"  # a path whose answers get no confidence
REQUESTS, AT_ONCE = 600, 16
TOKENS, ALTERNATIVES = 100, 5
WAITS = (0.1, 0.4)  # seconds
MANY = 50_000  # requests
DIRECT = {"model": "m", "temperature": 1, "logprobs": True, "top_logprobs": ALTERNATIVES}
ASKED = {"model": "m", "temperature": 1}


def answer(tokens: int, alternatives: int) -> dict:
    rng = np.random.default_rng(0)
    made = []
    for place in range(tokens):
        logprobs = np.sort(np.log(rng.dirichlet(np.ones(alternatives + 1))))[::-1]
        top = [(f" t{place}x{k}", float(logprobs[k])) for k in range(alternatives)]
        made.append(token(*top[0], top))
    return chat([*made, token("<|im_end|>", -0.01, [("<|im_end|>", -0.01), ("!", -5.0)])],
                "".join(one["token"] for one in made))  # fmt: skip


def serve(connection: multiprocessing.connection.Connection) -> None:
    """A server in this process; its address goes through the connection."""
    whole = answer(TOKENS, ALTERNATIVES)

    async def answered(request: web.Request) -> web.Response:
        await asyncio.sleep(json.loads(await request.read()).get("wait", 0))
        return web.Response(body=json.dumps(whole).encode(), content_type="application/json")

    async def start() -> None:
        application = web.Application()
        for path in (CHAT, OTHER):
            application.router.add_post(path, answered)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connection.send(f"http://127.0.0.1:{runner.addresses[0][1]}")
        await asyncio.Event().wait()

    asyncio.run(start())


async def _asked(url: str, body: dict, requests: int, waits: tuple[float, float]) -> list[float]:
    """Seconds that each request takes beyond the time drawn from `waits`, which the server waits."""
    draw, took = random.Random(0), []

    async def some(session: ClientSession) -> None:
        for _ in range(requests // AT_ONCE):
            wait, before = draw.uniform(*waits), time.perf_counter()
            async with session.post(url, json=body | {"wait": wait}) as response:
                assert response.status == 200
                await response.read()
            took.append(time.perf_counter() - before - wait)

    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        await asyncio.gather(*(some(session) for _ in range(AT_ONCE)))
    return took


def asked(url: str, body: dict, requests: int | None = None) -> float:
    """Seconds that all requests take, which the server answers at once."""
    before = time.perf_counter()
    asyncio.run(_asked(url, body, requests or REQUESTS, (0, 0)))
    return time.perf_counter() - before


def cpu_seconds(process: int) -> float:
    """CPU seconds that a process has used."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def rows() -> Iterator[Row]:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = ours.recv()
    content = json.loads(json.dumps(stored()))
    content["fitted_on"]["entropy"] = "top-k"
    options = ["--upstream", url, "--error-rate", "0.3", "--top", str(ALTERNATIVES)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            with command(content, Path(folder), *options) as (process, proxy, _):
                yield from throughput(proxy, process.pid, url, server.pid)
            watch = ["--watch", f"{folder}/state.db"]
            with command(content, Path(folder), *options, *watch) as (process, proxy, _):
                yield from latency(proxy, url)
                yield memory(proxy, process.pid)
    finally:
        server.terminate()
        server.join()


def throughput(proxy: str, process: int, url: str, server: int) -> Iterator[Row]:
    for work, way in _ways(proxy).items():
        asked(*way)
        clock, cpu = [], []
        for _ in range(REPEATS):
            before = cpu_seconds(process)
            own = asked(*way)
            between = cpu_seconds(process), cpu_seconds(server)
            clock.append((own, asked(url + CHAT, DIRECT)))
            cpu.append((between[0] - before, cpu_seconds(server) - between[1]))
        for how, pairs in (("by the clock", clock), ("CPU", cpu)):
            yield Row(
                f"{work}, {TOKENS} tokens, {how}",
                statistics.median(one for one, _ in pairs),
                statistics.median(other for _, other in pairs),
                "the server asked directly",
                statistics.median(one / other for one, other in pairs),
                items=REQUESTS // AT_ONCE * AT_ONCE,
                unit="requests",
            )


def latency(proxy: str, url: str) -> Iterator[Row]:
    ways = _ways(proxy) | {"directly": (url + CHAT, DIRECT)}
    took: dict[str, list[np.ndarray]] = {work: [] for work in ways}
    for _ in range(REPEATS):
        for work, way in ways.items():
            waited = asyncio.run(_asked(*way, REQUESTS, WAITS))
            took[work].append(np.quantile(waited, (0.5, 0.99)))
    direct = np.median(took.pop("directly"), axis=0)
    for work, repeats in took.items():
        for place, name in enumerate(("median", "99 %")):
            own, other = np.median(repeats, axis=0)[place], direct[place]
            done = f"latency of {work}, watched, by the clock, {name}"
            yield Row(done, own, other, "the server asked directly", own / other)


def _ways(proxy: str) -> dict[str, tuple[str, dict]]:
    """What the proxy does, and where and with what it is asked for that."""
    return {
        "a server's answers with confidence": (proxy + CHAT, ASKED),
        "a server's answers passed on": (proxy + OTHER, DIRECT),
    }


def memory(proxy: str, process: int) -> Row:
    asked(proxy + CHAT, ASKED, MANY // 10)
    before = resident(process)
    asked(proxy + CHAT, ASKED, MANY - MANY // 10)
    after = resident(process)
    work = f"resident MB after {MANY:,} requests, watched"
    return Row(work, after, before, f"after {MANY // 10:,}", after / before)
