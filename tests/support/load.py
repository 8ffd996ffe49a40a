"""Many clients at once, some of whom leave, before a server that hangs and lies now and then.

Run as a program, with the packages `tracecal` and `toolkit` (of the tests) on the path:
    PYTHONPATH=workflow_scripts:tests python -m support.load --minutes 10 --clients 200
"""

import argparse
import asyncio
import gzip
import json
import random
import socket
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

from support.labelled_answers import stored
from support.log_rows import END, TWO, chat, token
from support.running import command
from support.upstream import Background, piece

PATH = "/v1/chat/completions"
STALL = 5.0  # seconds that the proxy lets the server be silent; some more than a busy machine needs
# How the server behaves, and how often.
HONEST = {"whole": 30, "slow": 15, "stream": 20, "refused": 5}
LYING = ["nothing", "hang", "hang midway", "cut", "hang up", "null choices", "wrong types"]
LYING += ["invalid UTF-8", "deep", "no HTTP", "broken stream", "compressed", "failed"]
BEHAVIOURS = [name for name, often in HONEST.items() for _ in range(often)] + LYING * 2


@dataclass
class Load:
    """What happened. Every request carries its client's name as key, cookie and text."""

    clients: int
    seconds: float
    seed: int = 1
    happened: Counter = field(default_factory=Counter)
    crossed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    answering: int = 0

    # The server.

    async def serve(self, request):
        """Answer as the request says; see that nothing of another client came with it."""
        self.answering += 1
        try:
            return await self._behave(request)
        finally:
            self.answering -= 1

    async def _behave(self, request):
        asked = await request.json()
        who, behaviour = asked["user"], asked["behaviour"]
        told = [request.headers.getall(name, []) for name in ("authorization", "cookie", "x-own")]
        if told != [[f"Bearer {who}"], [f"session={who}"], [f"{who} a", f"{who} b"]]:
            self.crossed.append(f"{who}: {told}")
        self.happened["reached the server"] += 1
        headers = [("set-cookie", f"session={who}"), ("set-cookie", f"other={who}")]
        likely = [(who, -0.25), *TWO[1:]]
        answer = chat([token(who, -0.25, likely), token("<|im_end|>", -0.01, END)], who)
        if asked.get("stream") or behaviour in ("hang midway", "cut", "broken stream"):
            return await self._stream(request, who, behaviour, headers, likely)
        if behaviour == "hang":
            await asyncio.sleep(600)
        if behaviour == "slow":
            await asyncio.sleep(random.random() * 0.3)
        if behaviour == "refused" and "top_logprobs" in asked:
            return web.json_response({"error": "no"}, status=random.choice([400, 422]))
        if behaviour in ("hang up", "no HTTP"):
            request.transport.write(b"lies\r\n\r\n" if behaviour == "no HTTP" else b"")
            request.transport.close()
            return web.Response()
        content = {
            "nothing": b"",
            "null choices": json.dumps(answer | {"choices": [None]}).encode(),
            "wrong types": json.dumps(
                answer | {"choices": [{"logprobs": [1], "message": 3}]}
            ).encode(),
            "invalid UTF-8": b'{"choices": [{"logprobs": {"content": "\xff"}}]}',
            "deep": b'{"logprobs":' * 50_000 + b"1" + b"}" * 50_000,
        }.get(behaviour, json.dumps(answer).encode())
        if behaviour == "compressed":
            content = gzip.compress(content)
            headers.append(("content-encoding", "gzip"))
        headers.append(("content-type", "application/json"))
        status = 500 if behaviour == "failed" else 200
        return web.Response(body=content, headers=headers, status=status)

    async def _stream(self, request, who, behaviour, headers, likely):
        response = web.StreamResponse(headers=[*headers, ("content-type", "text/event-stream")])
        await response.prepare(request)
        chunks = [
            piece(who, [token(who, -0.25, likely)]),
            piece("", [token("<|im_end|>", -0.01, END)], "stop"),
        ]
        for chunk in chunks:
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            if behaviour == "hang midway":
                await asyncio.sleep(600)
            if behaviour == "cut":
                request.transport.abort()
            if behaviour == "broken stream":
                await response.write(b'data: {"logprobs": \xff\n\n')
            await asyncio.sleep(random.random() * 0.05)
        await response.write(b"data: [DONE]\n\n")
        return response

    # The clients.

    async def client(self, number, session, url, until):
        draw = random.Random(f"{self.seed} {number}")
        while time.monotonic() < until:
            who, behaviour = f"c{number}n{draw.randrange(10**9)}", draw.choice(BEHAVIOURS)
            leaves = draw.random() * 0.3 if draw.random() < 0.2 else None
            asking = self._ask(session, url, who, behaviour)
            try:
                async with asyncio.timeout(leaves):
                    wrong = await asking
            except TimeoutError:
                self.happened["left"] += 1
                continue
            except (ClientError, ValueError) as error:
                wrong = f"{type(error).__name__}: {error}"
            self.happened["answered"] += 1
            if wrong:
                self.lost.append(f"{behaviour}: {wrong}")

    async def _ask(self, session, url, who, behaviour):
        """What is wrong with the answer; null where it is what it should be."""
        stream = behaviour in ("stream", "hang midway", "cut", "broken stream")
        body = {"model": "m", "user": who, "behaviour": behaviour, "stream": stream}
        headers = [("authorization", f"Bearer {who}"), ("cookie", f"session={who}")]
        headers += [("x-own", f"{who} a"), ("x-own", f"{who} b")]
        async with session.post(url + PATH, json=body, headers=headers) as response:
            content = await response.text()
        cookies = response.headers.getall("set-cookie", [])
        if any(who not in cookie for cookie in cookies) or "-0.25" in content:
            return f"another's cookies, or log-probabilities: {cookies} {content}"
        if behaviour in HONEST:
            told = f'"content":"{who}"' in content and '"probability":0.' in content
            told |= behaviour == "refused" and who in content
            return None if response.status == 200 and told else f"{response.status} {content}"
        if stream:
            return None if content.count('"error":{') == 1 else f"{response.status} {content}"
        if not content and behaviour != "nothing":
            return f"{response.status} without content"
        return None

    async def run(self, url, pid):
        """All clients until the time is over; `rss` is the proxy's memory [MB] on the way."""
        until = time.monotonic() + self.seconds
        connector = TCPConnector(limit=0)
        rss = []
        async with ClientSession(
            connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(60)
        ) as session:
            clients = [
                asyncio.create_task(self.client(n, session, url, until))
                for n in range(self.clients)
            ]
            while time.monotonic() < until:
                await asyncio.sleep(self.seconds / 20)
                rss.append(resident(pid))
            await asyncio.gather(*clients)
        return rss


def resident(pid):
    """A process's resident memory, MB."""
    status = Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1]
    return int(status.split()[0]) / 1024


def sockets(pid):
    """The open connections of a process."""
    connections = psutil.Process(pid).net_connections("tcp")
    return sum(connection.status != psutil.CONN_LISTEN for connection in connections)


def warm_up(url):
    """Wait until the proxy answers, here a request that is none and stays in the proxy."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"GET nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while connection.recv(1000):
            pass


def run(clients, seconds, folder, seed=1):
    """The load's `Load`, the sockets of the proxy before and after it, and its memory."""
    load = Load(clients, seconds, seed)
    application = web.Application()
    application.router.add_post(PATH, load.serve)
    content = json.loads(json.dumps(stored()))
    content["fitted_on"]["entropy"] = "top-k"
    with Background(application, handler_cancellation=True) as server:
        options = ["--upstream", server.url, "--timeout", str(STALL), "--processed", "no"]
        options += ["--error-rate", "0.3"]
        with command(content, folder, *options) as (process, url, log):
            warm_up(url)
            before = sockets(process.pid)
            rss = asyncio.run(load.run(url, process.pid))
            until = time.monotonic() + 4  # connections close a moment after their answer
            while (after := sockets(process.pid)) > before and time.monotonic() < until:
                time.sleep(0.1)
        return load, (before, after), rss, log.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load, (before, after), rss, log = run(
            args.clients, args.minutes * 60, Path(folder), args.seed
        )
    print(dict(load.happened))
    print(f"lost by living clients: {len(load.lost)}", *load.lost[:5], sep="\n  ")
    print(f"with another's key or cookie: {len(load.crossed)}", *load.crossed[:5], sep="\n  ")
    print(f"still answering: {load.answering}; sockets before {before}, after {after}")
    print("memory [MB]:", *(f"{one:.0f}" for one in rss))
    print(f"tracebacks: {log.count('Traceback')}", log[-2000:] if "Traceback" in log else "")


if __name__ == "__main__":
    main()
