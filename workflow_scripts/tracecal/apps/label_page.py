"""The page on which answers are labelled, and the file of verdicts."""

import asyncio
import fcntl
import json
import os
import secrets
import shlex
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import StrictBool, StrictInt

from tracecal.calibration.labelling import Verdict
from tracecal.calibrator.report import flags
from tracecal.errors import InputError
from tracecal.explorer.page import page
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.settings import Strict, parse

try:
    from aiohttp import web
except ModuleNotFoundError as error:
    raise InputError(
        "the page for labels needs aiohttp, which is not installed: pip install 'tracecal[serve]'"
    ) from error

Row = Mapping[str, Any]


class Verdicts:
    """The verdicts in a file, `given` in their order, by id; only one process may hold it."""

    def __init__(
        self, path: str | Path, rows: Mapping[str, Row], parts: Mapping[str, str] | None = None
    ) -> None:
        """Open the file, or begin it, for answers whose `rows` are known by their ids; or for parts
        of them, of which `parts` are the names.

        A last line that a kill left incomplete is removed. Raises `InputError` where the file
        holds anything else than verdicts on these answers, or is in use.
        """
        self.path, self._rows, self._parts = Path(path), rows, parts or {}
        self.given: dict[str, Verdict] = {}
        self._ends = [0]  # bytes before each verdict's line, and the file's
        try:
            self._file: BinaryIO = self.path.open("a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path} is in use by another 'tracecal label': end that one, or name another "
                "--output."
            ) from None
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}.") from error
        self._read()

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                if _is_json(line):  # perhaps another's file, which is not to be cut
                    self._parsed(line, number)
                LOGGER.warning("%s: its last line is incomplete and is removed", self.path)
                self._cut()
                return
            example, verdict = self._parsed(line, number)
            self.given[example] = verdict
            self._ends.append(self._ends[-1] + len(line))

    def _parsed(self, line: bytes, number: int) -> tuple[str, Verdict]:
        where = f"{self.path}, line {number}"
        try:
            held = parsed_json(line)["labelled"]
            example, verdict = held["example_id"], Verdict(held["correct"], held.get("note", ""))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{where} is not a verdict as 'tracecal label' writes it: name another --output."
            ) from error
        if example not in self._rows or example in self.given:
            why = "a second verdict on" if example in self.given else "a verdict on"
            what = "" if example in self.given else ", which is not among the answers to label"
            raise InputError(f"{where}: {why} {example!r}{what}: name another --output.")
        return example, verdict

    def give(self, example: str, verdict: Verdict) -> None:
        """Append a verdict; it is on disk when this returns, and not in the file after an
        `OSError`.
        """
        if example in self.given:
            raise ValueError(f"{example!r} has a verdict already")
        held = {"example_id": example, "correct": verdict.correct}
        held |= {"part": self._parts[example]} if example in self._parts else {}
        held |= {"note": verdict.note} if verdict.note else {}
        line = f"{json.dumps({**self._rows[example], 'labelled': held}, ensure_ascii=False)}\n"
        content = line.encode()
        try:
            written = self._file.write(content)
            if written != len(content):
                raise OSError("only a part of the line was written: the disk may be full")
            os.fsync(self._file.fileno())
        except OSError:
            self._cut()
            raise
        self._ends.append(self._ends[-1] + len(content))
        self.given[example] = verdict

    def take(self, found: Mapping[str, bool | None]) -> int:
        """Append verdicts from elsewhere, in the order of the answers; how many are on others.

        Raises `InputError`, and appends nothing, where one contradicts the file or none is on an
        answer of it.
        """
        known = [example for example in self._rows if example in found]
        if not known:
            raise InputError(
                f"none of the {len(found)} verdicts is on one of the {len(self._rows)} answers: "
                "their ids differ."
            )
        for example in known:
            if example in self.given and self.given[example].correct != found[example]:
                raise InputError(
                    f"{self.path} holds another verdict on {example!r}: name another --output, and "
                    "compare the two."
                )
        for example in known:
            if example not in self.given:
                self.give(example, Verdict(found[example]))
        return len(found) - len(known)

    def undo(self) -> str | None:
        """Take the last verdict back; the answer's id, or null where there is none."""
        if not self.given:
            return None
        self._ends.pop()
        self._cut()
        example, _ = self.given.popitem()
        return example

    def _cut(self) -> None:
        """Shorten the file to the verdicts that count."""
        self._file.truncate(self._ends[-1])
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _is_json(line: bytes) -> bool:
    try:
        parsed_json(line)
    except ValueError:
        return False
    return True


# The page on which answers are labelled: served to this machine alone, at a secret address.


HOST = "127.0.0.1"
# What is hidden of an answer until its verdict is given.
HIDDEN = ("surprisal", "entropy", "peak")
OF_ESTIMATORS = ("probability", "held_out", "score")
MOST_BYTES = 2**20  # of a request: a verdict and its note
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# The answer to label next, by the verdicts so far, and what to say of the state of affairs. It may
# raise an `OSError` where it writes that state down.
Ask = Callable[[Mapping[str, Verdict]], tuple[str | None, str]]


class Given(Strict):
    """A verdict as the page sends it: on the answer with that number."""

    answer: StrictInt
    correct: StrictBool | None
    note: str = ""


class Labelling:
    """The application. `data` are those of `shown.page_data`, whose answers are labelled; `then` is
    the command to type at the end.
    """

    def __init__(
        self, data: Mapping[str, Any], verdicts: Verdicts, ask: Ask, then: str = ""
    ) -> None:
        self._data, self._columns, self._verdicts, self._ask = data, data["answers"], verdicts, ask
        self._then = then
        self._ids: list[str] = self._columns["example_id"]
        self._place = {example: place for place, example in enumerate(self._ids)}
        self.token = secrets.token_urlsafe(16)
        self._look()

    def application(self) -> web.Application:
        """Answers at `/{token}/` and nowhere else."""
        application = web.Application(
            client_max_size=MOST_BYTES, middlewares=[self._only_from_here]
        )
        base = f"/{self.token}/"
        application.router.add_get(base, self.page)
        application.router.add_post(f"{base}verdict", self.verdict)
        application.router.add_post(f"{base}undo", self.undo)
        return application

    @web.middleware
    async def _only_from_here(self, request: web.Request, handler: Callable) -> web.StreamResponse:
        """Refuses requests by another name, as of a site whose name was pointed at this machine."""
        if request.url.host not in (HOST, "localhost"):
            raise web.HTTPForbidden(text="open the address that the command printed")
        response = await handler(request)
        response.headers.update(HEADERS)
        return response

    async def page(self, request: web.Request) -> web.Response:
        """The page, with what is known so far."""
        content = await asyncio.to_thread(page, self.shown())
        return web.Response(text=content, content_type="text/html")

    def shown(self) -> dict[str, Any]:
        """The page's data, without what is hidden of answers that have no verdict."""
        given = self._verdicts.given
        known = [example in given for example in self._ids]

        def masked(values: list[Any]) -> list[Any]:
            return [value if one else None for value, one in zip(values, known, strict=True)]

        columns = dict(self._columns)
        columns |= {name: masked(columns[name]) for name in HIDDEN}
        columns |= {
            name: {id: masked(values) for id, values in columns[name].items()}
            for name in OF_ESTIMATORS
        }
        # An answer's tokens would tell of the parts of it that have no verdict yet.
        places, parents = self._data["places"], dict(self._data["parents"])
        rows = zip(places.get("row", ()), places.get("parent", ()), strict=True)
        waiting = {parent for row, parent in rows if not known[row]}
        for name in {*HIDDEN} & {*parents}:
            values = enumerate(parents[name])
            parents[name] = [None if parent in waiting else value for parent, value in values]
        columns["correct"] = [given[id].correct if id in given else None for id in self._ids]
        order = [self._place[example] for example in given]
        notes = {str(self._place[id]): one.note for id, one in given.items() if one.note}
        probabilities = self._columns["probability"].items()
        calibrated = [id for id, values in probabilities if any(one is not None for one in values)]
        labelling = {"order": order, "notes": notes, "file": str(self._verdicts.path)}
        labelling |= {"calibrated": calibrated, "then": self._then}
        own = {"answers": columns, "parents": parents, "labelling": labelling | self._next}
        return self._data | own

    def _look(self) -> None:
        """Ask anew which answer is next: the verdicts have changed."""
        example, said = self._ask(self._verdicts.given)
        self._next = {"next": None if example is None else self._place[example], "said": said}

    async def verdict(self, request: web.Request) -> web.Response:
        """Store a verdict; replies what was hidden of the answer, and which one is next."""
        try:
            given = parse(Given, parsed_json(await request.read()), "the verdict")
        except (ValueError, InputError) as error:
            return web.Response(status=400, text=str(error))
        if given.answer != self._next["next"]:
            return web.Response(
                status=409,
                text="this answer is not the next one: another window has gone on; reload the page",
            )
        verdict = Verdict(given.correct, given.note.strip())
        try:
            self._store(self._ids[given.answer], verdict)
        except OSError as error:
            why = f"{error.filename or self._verdicts.path} cannot be written"
            return web.Response(
                status=507, text=f"{why} ({error.strerror or error}): the verdict is not stored"
            )
        columns = self._columns
        revealed = {name: columns[name][given.answer] for name in HIDDEN} | {
            name: {id: values[given.answer] for id, values in columns[name].items()}
            for name in OF_ESTIMATORS
        }
        return web.json_response({"revealed": revealed, **self._next})

    def _store(self, example: str, verdict: Verdict) -> None:
        """Store a verdict and look which answer is next; after an `OSError` neither is done."""
        self._verdicts.give(example, verdict)
        try:
            self._look()
        except OSError:
            self._verdicts.undo()
            raise

    async def undo(self, request: web.Request) -> web.Response:
        """Take the last verdict back; replies which one it was on."""
        try:
            example = self._verdicts.undo()
            self._look()
        except OSError as error:
            why = f"{error.filename or self._verdicts.path} cannot be written"
            return web.Response(status=507, text=f"{why} ({error.strerror or error})")
        taken = None if example is None else self._place[example]
        return web.json_response({"taken": taken, **self._next})


def calibrating(path: str | Path, task: str, given: Mapping[str, Any]) -> str:
    """The command that calibrates on a file of verdicts, whose answers were read as `given`."""
    stem = Path(path).name.removesuffix(".jsonl").removesuffix(".labelled")
    words = ["--answers", str(path), "--task", task, *flags({**given, "label": None})]
    words += ["--parts", given["parts"]] if given.get("parts") else []
    made = ["--output", f"{stem}.calibrator.json", "--report", f"{stem}.html"]
    return shlex.join(["tracecal", "calibrate", *words, *made])


def in_order(order: list[str]) -> Ask:
    """Asks for one answer after the other."""

    def ask(given: Mapping[str, Verdict]) -> tuple[str | None, str]:
        left = [example for example in order if example not in given]
        return (left[0] if left else None), f"{len(order) - len(left)} of {len(order)} labelled"

    return ask


def serve(labelling: Labelling, port: int) -> None:
    """Serve the page until stopped. Raises `InputError` where the port is taken."""
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {HOST}, port {port} ({error}); choose another with --port."
        ) from error
    address = f"http://{HOST}:{listening.getsockname()[1]}/{labelling.token}/"
    LOGGER.info("open %s in a browser; end with Ctrl-C", address)
    web.run_app(labelling.application(), sock=listening, print=None, access_log=None)
