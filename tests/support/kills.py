"""A proxy that watches, killed at random moments under traffic, and what its state then holds;
every second kill comes while it writes.

The suite kills it twice, `make soak` twenty times.
"""

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from aiohttp import ClientError, ClientSession, TCPConnector, web

from support.labelled_answers import batch_of_answers, predictor_of, stored
from support.log_rows import token, write
from support.running import CHAT, PROMPTLY, READING, command
from support.upstream import Background
from tracecal.answers.answers import read_file
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.database import StateDatabase
from tracecal.monitoring.monitor_settings import MonitorSettings
from tracecal.monitoring.state import as_json
from tracecal.monitoring.traffic import (
    alarm_settings,
    calibrator_identity,
    request_and_choice,
)

RATE, CLIENTS, LONGEST_RUN = 0.3, 4, 1.5  # s
PER_ALARM = 10**6  # answers: a monitor that raised its alarm no longer moves


@cache
def answer(name: str) -> str:
    """The JSON of a chat completion that follows from its name alone, now and then without
    log-probabilities or of two choices.
    """
    draw = np.random.default_rng([*name.encode()])
    choices = [_choice(draw, index) for index in range(1 + (draw.random() < 0.1))]
    return json.dumps({"id": name, "model": "m", "choices": choices})


def _choice(draw: np.random.Generator, index: int) -> dict:
    concentration, tokens = draw.gamma(2.0), []
    for place in range(draw.integers(1, 9)):
        top = np.sort(np.log(draw.dirichlet(np.full(6, 0.1 + concentration)) + 1e-6))[::-1][:5]
        words = [f" w{place}x{rank}" for rank in range(5)]
        tokens.append(token(words[0], top[0], list(zip(words, top.tolist(), strict=True))))
    text = "".join(one["token"] for one in tokens)
    logprobs = {"content": tokens} if draw.random() < 0.95 else None
    told = {"message": {"role": "assistant", "content": text}, "logprobs": logprobs}
    return {"index": index, "finish_reason": "length"} | told


def rows(name: str) -> dict[str, dict]:
    """By their ids in the state, the choices of an answer as rows that `score` reads."""
    whole = json.loads(answer(name))
    named = {f"{name}#{one['index']}".removesuffix("#0"): one for one in whole["choices"]}
    return {own: {"id": own, "response": whole | {"choices": [one]}} for own, one in named.items()}


@dataclass
class Traffic:
    """Clients of a proxy that comes and goes, and the server behind it. `answered` holds the names
    of answers that a client has got whole, by the proxy's number, `given` all that the server gave.
    """

    url: str | None = None
    proxy: int = 0
    ended: bool = False
    given: set[str] = field(default_factory=set)
    answered: dict[int, list[str]] = field(default_factory=dict)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        whole = json.loads(answer(asked["user"]))
        self.given.add(asked["user"])
        if not asked["stream"]:
            return web.json_response(whole)
        for choice in whole["choices"]:
            choice["delta"] = choice.pop("message")
        body = f"data: {json.dumps(whole)}\n\ndata: [DONE]\n\n".encode()
        return web.Response(body=body, content_type="text/event-stream")

    async def run(self) -> None:
        async with ClientSession(connector=TCPConnector(limit=0)) as session:
            await asyncio.gather(*(self._client(session, place) for place in range(CLIENTS)))

    async def _client(self, session: ClientSession, place: int) -> None:
        number = 0
        while not self.ended:
            number, proxy, url = number + 1, self.proxy, self.url
            user = f"c{place}n{number}"
            body = {"model": "m", "user": user, "stream": number % 2 == 0, "n": 2}
            try:
                async with session.post(f"{url}{CHAT}", json=body) as response:
                    content = await response.read()
                assert b'"confidence":' in content, content
                self.answered.setdefault(proxy, []).append(user)
            except (ClientError, ValueError):  # it is killed, or not there yet
                await asyncio.sleep(0.05)


def run(kills: int, folder: Path, seed: int = 1) -> str:
    """What happened; raises `AssertionError` where the state is not that of one pass over answers
    that were given, each once.
    """
    draw, traffic = random.Random(seed), Traffic()
    names = [f"known{number}" for number in range(300)]
    known = write(folder / "known.jsonl", [row for name in names for row in rows(name).values()])
    frame = read_file(known, READING).frame.filter(pl.col("surprisal").is_not_null())
    sure = frame["surprisal"].list.mean().to_numpy()
    chance = 1 / (1 + np.exp(8 * (sure - np.median(sure))))
    right = np.random.default_rng(seed).random(len(sure)) < chance
    content = json.loads(json.dumps(stored(frame.with_columns(correct=right))))
    state = folder / "state.db"
    application = web.Application()
    application.router.add_post(CHAT, traffic.serve)
    options = ["--error-rate", str(RATE), "--processed", "no", "--watch", str(state)]
    options += ["--answers-per-alarm", str(PER_ALARM)]
    clients = threading.Thread(target=lambda: asyncio.run(traffic.run()), daemon=True)
    with Background(application) as server:
        clients.start()
        for left in range(kills, -1, -1):
            with command(content, folder, "--upstream", server.url, *options) as (process, url, _):
                traffic.proxy, traffic.url = left, url
                time.sleep(draw.uniform(0, LONGEST_RUN) if left else LONGEST_RUN)
                if left % 2:
                    _wait_for_writing(folder / "state.db-wal")
                traffic.ended = not left
                if left:
                    process.kill()
                else:
                    clients.join()
        assert not clients.is_alive()
    return _checked(folder, content, traffic)


def _wait_for_writing(log: Path) -> None:
    """Wait until SQLite appends to its log, a moment that a random one seldom meets."""
    before = _written(log)
    _wait_for(lambda: _written(log) != before)


def _wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PROMPTLY
    while not happened() and time.monotonic() < end:
        time.sleep(0.0005)


def _written(log: Path) -> int:
    """When the log was last written, 0 where there is none: it is there while the state is open."""
    try:
        return log.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _checked(folder: Path, content: dict, traffic: Traffic) -> str:
    fitted = predictor_of(content, None, "made up")
    watching = MonitorSettings(answers_per_alarm=PER_ALARM)
    own = (
        calibrator_identity(fitted, RATE),
        alarm_settings(fitted, watching, RATE),
        fitted.reference,
    )
    killed = StateDatabase(folder / "state.db", *own)
    whole = StateDatabase(folder / "whole.db", *own, seed=killed.state.seed)
    told = killed.query("SELECT id, probability, length, kept, place FROM answers ORDER BY place")
    ids, *values, places = zip(*told, strict=True)
    assert list(places) == list(range(1, len(ids) + 1)), "an answer is missing or there twice"
    expected = {own: row for name in traffic.given for own, row in rows(name).items()}
    assert set(ids) <= expected.keys(), "an answer that the server never gave"
    read = read_file(write(folder / "r.jsonl", [expected[one] for one in ids]), READING).frame
    batch = Batch(*np.array(values, dtype=float))
    again = batch_of_answers(read, fitted, RATE)
    for ours, theirs in zip(vars(batch).values(), vars(again).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    keys, choices = zip(*(request_and_choice(one, expected[one]) for one in ids), strict=True)
    whole.add_answers(ids, batch, keys, choices)
    assert as_json(killed.state) == as_json(whole.state), "not the state of one pass"
    assert not killed.state.alarms, "a monitor that raised its alarm no longer moves"
    lost = {
        proxy: len({one for name in named for one in rows(name)} - set(ids))
        for proxy, named in traffic.answered.items()
    }
    assert killed.counts()["kept"] > 0
    assert not lost.pop(0), "a proxy that was stopped in order forgot answers"
    for store in (killed, whole):
        store.close()
    return f"{len(ids)} answers watched; answered but not yet watched at a kill: {[*lost.values()]}"
