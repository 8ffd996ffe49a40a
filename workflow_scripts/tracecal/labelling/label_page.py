"""The page on which answers are labelled, served to this machine alone at a secret address.

1. Make a `LabelPage` of the page's data, a `VerdictFile` and what chooses the next answer
   (`ask_in_order` or `ask_by_search`).
2. `serve_page` serves it until it is stopped.

The page hides an answer's scores until its verdict is given.
"""

import asyncio
import secrets
import shlex
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import StrictBool, StrictInt

from tracecal.answers.reading import Reading
from tracecal.calibrator.next_commands import flags
from tracecal.errors import InputError
from tracecal.explorer.explorer_page import page
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.settings import Strict, parse
from tracecal.labelling.search import LabelSearch, describe_record
from tracecal.labelling.verdicts import Verdict, VerdictFile

HOST = "127.0.0.1"
# The columns that are hidden until a verdict is given: single ones, and those by estimator.
HIDDEN = ("surprisal", "entropy", "peak")
HIDDEN_BY_ESTIMATOR = ("probability", "held_out", "score")
MAX_REQUEST_BYTES = 2**20  # a verdict and its note
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# Chooses the answer to label next (None: none is left) and says how far labelling is, from the
# labels so far. It may raise an `OSError` where it writes that state.
Ask = Callable[[Mapping[str, bool | None]], tuple[str | None, str]]


class VerdictMessage(Strict):
    """A verdict as the page sends it, on the answer with that number."""

    answer: StrictInt
    correct: StrictBool | None
    note: str = ""


class LabelPage:
    """The web application of the page, with the `data` of `PageAnswers.page_data`.

    `next_command` is what to type when all answers are labelled.
    """

    def __init__(
        self, data: Mapping[str, Any], verdicts: VerdictFile, ask: Ask, next_command: str = ""
    ) -> None:
        self._data, self._columns = data, data["answers"]
        self._file, self._ask, self._next_command = verdicts, ask, next_command
        self._ids: list[str] = self._columns["example_id"]
        self._numbers = {example_id: number for number, example_id in enumerate(self._ids)}
        self.token = secrets.token_urlsafe(16)
        self._choose_next()

    def application(self) -> web.Application:
        """The application, which answers at `/{token}/` and nowhere else."""
        application = web.Application(
            client_max_size=MAX_REQUEST_BYTES, middlewares=[self._refuse_other_hosts]
        )
        base = f"/{self.token}/"
        application.router.add_get(base, self.page)
        application.router.add_post(f"{base}verdict", self.verdict)
        application.router.add_post(f"{base}undo", self.undo)
        return application

    @web.middleware
    async def _refuse_other_hosts(
        self, request: web.Request, handler: Callable
    ) -> web.StreamResponse:
        """Refuse a request to another name, such as a site whose name points at this machine."""
        if request.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
            raise web.HTTPForbidden(text="open the address that the command printed")
        response = await handler(request)
        response.headers.update(HEADERS)
        return response

    async def page(self, request: web.Request) -> web.Response:
        """Send the page with the verdicts so far."""
        content = await asyncio.to_thread(page, self.page_data())
        return web.Response(text=content, content_type="text/html")

    def page_data(self) -> dict[str, Any]:
        """The page's data, with the hidden columns of judged answers alone."""
        verdicts = self._file.verdicts
        judged = [example_id in verdicts for example_id in self._ids]

        def mask(values: list[Any]) -> list[Any]:
            return [value if show else None for value, show in zip(values, judged, strict=True)]

        columns = dict(self._columns)
        columns |= {name: mask(columns[name]) for name in HIDDEN}
        columns |= {
            name: {estimator: mask(values) for estimator, values in columns[name].items()}
            for name in HIDDEN_BY_ESTIMATOR
        }
        columns["correct"] = [
            verdicts[example_id].correct if example_id in verdicts else None
            for example_id in self._ids
        ]
        labelling = {
            "order": [self._numbers[example_id] for example_id in verdicts],
            "notes": {
                str(self._numbers[example_id]): verdict.note
                for example_id, verdict in verdicts.items()
                if verdict.note
            },
            "file": str(self._file.path),
            "calibrated": [
                estimator
                for estimator, values in self._columns["probability"].items()
                if any(value is not None for value in values)
            ],
            "then": self._next_command,
            **self._next,
        }
        parents = self._masked_parents(judged)
        return {**self._data, "answers": columns, "parents": parents, "labelling": labelling}

    def _masked_parents(self, judged: list[bool]) -> dict[str, Any]:
        """The whole answers of parts, without the tokens of those with a part to judge.

        An answer's tokens would show the scores of its parts.
        """
        places, parents = self._data["places"], dict(self._data["parents"])
        rows = zip(places.get("row", ()), places.get("parent", ()), strict=True)
        waiting = {parent for row, parent in rows if not judged[row]}
        for name in {*HIDDEN} & {*parents}:
            values = enumerate(parents[name])
            parents[name] = [None if parent in waiting else value for parent, value in values]
        return parents

    def _choose_next(self) -> None:
        """Choose the next answer anew, as the verdicts have changed."""
        example_id, progress = self._ask(self._file.labels)
        number = None if example_id is None else self._numbers[example_id]
        self._next = {"next": number, "said": progress}

    async def verdict(self, request: web.Request) -> web.Response:
        """Store a verdict; reply with the answer's hidden columns and the next answer."""
        try:
            message = parse(VerdictMessage, parsed_json(await request.read()), "the verdict")
        except (ValueError, InputError) as error:
            return web.Response(status=400, text=str(error))
        if message.answer != self._next["next"]:
            return web.Response(
                status=409,
                text="this answer is not the next one: another window has gone on; reload the page",
            )
        verdict = Verdict(message.correct, message.note.strip())
        try:
            self._store(self._ids[message.answer], verdict)
        except OSError as error:
            text = f"{self._cannot_write(error)}: the verdict is not stored"
            return web.Response(status=507, text=text)
        columns = self._columns
        revealed = {name: columns[name][message.answer] for name in HIDDEN} | {
            name: {estimator: values[message.answer] for estimator, values in columns[name].items()}
            for name in HIDDEN_BY_ESTIMATOR
        }
        return web.json_response({"revealed": revealed, **self._next})

    def _store(self, example_id: str, verdict: Verdict) -> None:
        """Store a verdict and choose the next answer; after an `OSError` neither is done."""
        self._file.append(example_id, verdict)
        try:
            self._choose_next()
        except OSError:
            self._file.undo()
            raise

    async def undo(self, request: web.Request) -> web.Response:
        """Take the last verdict back; reply with its answer's number and the next answer."""
        try:
            example_id = self._file.undo()
            self._choose_next()
        except OSError as error:
            return web.Response(status=507, text=self._cannot_write(error))
        number = None if example_id is None else self._numbers[example_id]
        return web.json_response({"taken": number, **self._next})

    def _cannot_write(self, error: OSError) -> str:
        path, reason = error.filename or self._file.path, error.strerror or error
        return f"{path} cannot be written ({reason})"


def calibrate_command(
    path: str | Path, task: str, reading: Reading, parts: str | None = None
) -> str:
    """The command that calibrates on a file of verdicts, whose answers were read with `reading`."""
    stem = Path(path).name.removesuffix(".jsonl").removesuffix(".labelled")
    words = ["--answers", str(path), "--task", task, *flags(reading.for_new_answers())]
    words += ["--parts", parts] if parts else []
    outputs = ["--output", f"{stem}.calibrator.json", "--report", f"{stem}.html"]
    return shlex.join(["tracecal", "calibrate", *words, *outputs])


def ask_in_order(order: list[str]) -> Ask:
    """Ask for one answer after the other."""

    def ask(labels: Mapping[str, bool | None]) -> tuple[str | None, str]:
        remaining = [example_id for example_id in order if example_id not in labels]
        n_labelled = len(order) - len(remaining)
        return (remaining[0] if remaining else None), f"{n_labelled} of {len(order)} labelled"

    return ask


def ask_by_search(search: LabelSearch) -> Ask:
    """Ask for the labels that a search needs."""

    def ask(labels: Mapping[str, bool | None]) -> tuple[str | None, str]:
        state = search.state(labels)
        return state["next"], f"{len(labels)} labelled; {describe_record(state)}"

    return ask


def serve_page(label_page: LabelPage, port: int) -> None:
    """Serve the page until it is stopped. Raises `InputError` where the port is taken."""
    try:
        listener = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {HOST}, port {port} ({error}); choose another with --port."
        ) from error
    address = f"http://{HOST}:{listener.getsockname()[1]}/{label_page.token}/"
    LOGGER.info("open %s in a browser; end with Ctrl-C", address)
    web.run_app(label_page.application(), sock=listener, print=None, access_log=None)
