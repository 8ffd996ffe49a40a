"""A headless Chromium, spoken to over the pipe of its DevTools protocol: no driver, no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from maintenance.pictures import BROWSERS

PATIENCE = 20


def installed() -> str:
    """The program; without one the test skips."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("no Chromium here (Debian's package is called chromium)")
    return program


@contextmanager
def started(profile: Path, **size: int) -> Iterator["Chromium"]:
    """A browser with a profile in a folder, until the block ends; without one the test skips."""
    browser = Chromium(installed(), profile, **size)
    try:
        yield browser
    finally:
        browser.close()


class Chromium:
    """One browser with one page. `requests` lists what the page asked for, `complaints` what the
    console said of errors."""

    def __init__(self, program: str, profile: Path, width: int = 1300, height: int = 850) -> None:
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        switches = "--headless=new --no-sandbox --disable-gpu --no-first-run --hide-scrollbars"
        own = [
            "--remote-debugging-pipe",
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
            "--host-resolver-rules=MAP *.example 127.0.0.1",  # sites that point at this machine
        ]
        # The protocol is spoken on the file descriptors 3 and 4.
        redirected = f'exec "$@" 3<&{reads} 4>&{writes}'
        self._process = subprocess.Popen(
            ["bash", "-c", redirected, "bash", program, *switches.split(), *own],
            pass_fds=(reads, writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._buffer, self._last, self._session = b"", 0, {}
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        self._session = {}
        self._call("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._to)
        os.close(self._from)

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a page of this machine anew and wait until it shows something."""
        self.visit(page.as_uri() + fragment)

    def visit(self, address: str) -> None:
        """As `open`, of a page at an address."""
        self._call("Page.navigate", url="about:blank")
        self.requests.clear()
        self.complaints.clear()
        self._call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete' && !document.getElementById('wait')")

    def resize(self, width: int, height: int) -> None:
        """Show pages as in a window of this size, in CSS pixels, which may be a telephone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", **size)

    def ask(self, expression: str) -> object:
        """The value of a JavaScript expression; of a promise, what it comes to."""
        reply = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in reply:
            raise AssertionError(reply["exceptionDetails"]["exception"]["description"])
        return reply["result"].get("value")

    def wait_for(self, expression: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.ask(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"the page never came to {expression}")
            time.sleep(0.02)

    def press(self, *keys: str) -> None:
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def point(self, x: float, y: float) -> None:
        """Press and release at a place of the window, in CSS pixels."""
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **params: object) -> dict:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params, **self._session}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._last:
                if "error" in reply:
                    raise AssertionError(f"{method}: {reply['error']['message']}")
                return reply["result"]
            self._note(reply)

    def _note(self, event: dict) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"]["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], PATIENCE)[0]:
                raise TimeoutError("Chromium does not answer")
            if not (part := os.read(self._from, 1 << 20)):
                raise AssertionError(f"Chromium ended with status {self._process.wait()}")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
