"""Requests through `tracecal serve` and to the same server directly, 16 at once.

The server writes each answer of 100 tokens with 5 alternatives anew, with Python's own parser, as
servers do at least; proxy and server are processes of their own. Seconds are by the clock here, as
waiting counts, and the ratio is that of one run: above 4/3 the proxy takes more than a quarter of
the throughput. Beside it stands what the library costs that only passes bytes on.
"""

import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from aiohttp import ClientSession, TCPConnector, web

from benchmarks.timing import REPEATS, Row
from logs.rows import chat, token
from toolkit.made import stored
from toolkit.running import CHAT, command

REQUESTS, AT_ONCE = 600, 16
TOKENS, ALTERNATIVES = 100, 5
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
        json.loads(await request.read())
        return web.Response(body=json.dumps(whole).encode(), content_type="application/json")

    async def start() -> None:
        application = web.Application()
        for path in (CHAT, "/v1/other"):
            application.router.add_post(path, answered)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connection.send(f"http://127.0.0.1:{runner.addresses[0][1]}")
        await asyncio.Event().wait()

    asyncio.run(start())


async def asked(url: str, body: dict) -> float:
    """Seconds that all requests take."""

    async def some(session: ClientSession) -> None:
        for _ in range(REQUESTS // AT_ONCE):
            async with session.post(url, json=body) as response:
                assert response.status == 200
                await response.read()

    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        before = time.perf_counter()
        await asyncio.gather(*(some(session) for _ in range(AT_ONCE)))
        return time.perf_counter() - before


def rows() -> Iterator[Row]:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = ours.recv()
    content = json.loads(json.dumps(stored()))
    content["fitted_on"]["entropy"] = "top-k"
    options = ["--upstream", url, "--error-rate", "0.3", "--top", str(ALTERNATIVES)]
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            command(content, Path(folder), *options) as (_, proxy, _),
        ):
            ways = {
                "a server's answers with confidence": (proxy + CHAT, ASKED),
                "a server's answers passed on": (proxy + "/v1/other", DIRECT),
            }
            for work, way in ways.items():
                asyncio.run(asked(*way))
                pairs = [
                    (asyncio.run(asked(*way)), asyncio.run(asked(url + CHAT, DIRECT)))
                    for _ in range(REPEATS)
                ]
                yield Row(
                    f"{work}, {TOKENS} tokens, by the clock",
                    statistics.median(one for one, _ in pairs),
                    statistics.median(other for _, other in pairs),
                    "the server asked directly",
                    statistics.median(one / other for one, other in pairs),
                    items=REQUESTS // AT_ONCE * AT_ONCE,
                    unit="requests",
                )
    finally:
        server.terminate()
        server.join()
