"""A running `tracecal serve`, as a process or in the background of a test."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx

from support.upstream import Background
from tracecal.answers.reading import Reading
from tracecal.serving.proxy import Proxy
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.server import server_options

REPOSITORY = Path(__file__).resolve().parents[2]
READING = Reading(vocabulary=1000, processed="no")
KEY = "sk-very-secret"
PROMPTLY = 15.0  # seconds that nothing here may take, on a busy machine
CHAT = "/v1/chat/completions"
OF_JSON = {"content-type": "application/json"}
ASK = {"model": "m", "messages": [{"role": "user", "content": "how many?"}]}


@contextmanager
def command(content, folder, *options):
    """The process of a calibrator's content, its address, and the file of all that it says."""
    path, log = folder / "C.json", folder / "log"
    path.write_text(json.dumps(content), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["serve", "--calibrator", str(path), "--port", str(port), *options]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    program = [sys.executable, "-m", "tracecal.cli.main", *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(program, stdout=output, stderr=output, env=environment)
        try:
            while "answers for" not in log.read_text():
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield process, f"http://127.0.0.1:{port}", log
        finally:
            process.terminate()
            process.wait(60)


def proxied(scorer, upstream, **settings):
    """A proxy before an upstream's address, in the background."""
    settings = ProxySettings(upstream=upstream, **settings)
    proxy = Proxy(scorer, settings)
    serving = Background(proxy.application(), **server_options(settings) | {"shutdown_timeout": 1})
    serving.proxy = proxy
    return serving


@contextmanager
def connected(scorer, upstream, **settings):
    """A client of a proxy, `proxy`, before an `Upstream`."""
    with (
        upstream.serving() as before,
        proxied(scorer, before.url, **settings) as serving,
        httpx.Client(base_url=serving.url, timeout=30) as http,
    ):
        http.proxy = serving.proxy
        yield http


def events(response):
    """The JSON of a stream's events, which ends as it should."""
    lines = [line for line in response.text.split("\n") if line.startswith("data:")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data:")) for line in lines[:-1]]


def by_hand(url, content):
    """A connection to a server, with `content` sent."""
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(content)
    return connection


def asked_by_hand(path, *headers, body=b"", method="GET"):
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        *["Content-Type: application/json"] * bool(body),
        *headers,
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def until(condition):
    """Wait until a condition holds; whether it came to hold."""
    end = time.monotonic() + PROMPTLY
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()
