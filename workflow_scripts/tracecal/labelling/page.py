"""The page on which answers are labelled: served to this machine alone, at a secret address."""

import asyncio
import secrets
import shlex
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import StrictBool, StrictInt

from tracecal.calibrator.report import flags
from tracecal.errors import InputError
from tracecal.explorer.page import page
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.settings import Strict, parse
from tracecal.labelling.search import Verdict

try:
    from aiohttp import web
except ModuleNotFoundError as error:
    raise InputError(
        "the page for labels needs aiohttp, which is not installed: pip install 'tracecal[serve]'"
    ) from error

from tracecal.labelling.verdicts import HEADERS, HIDDEN, HOST, MOST_BYTES, OF_ESTIMATORS, Verdicts

# The answer to label next, by the verdicts so far, and what to say of the state of affairs. It may
# raise an `OSError` where it writes that state down.
Ask = Callable[[Mapping[str, Verdict]], tuple[str | None, str]]


class Given(Strict):
    """A verdict as the page sends it: on the answer with that number."""

    answer: StrictInt
    correct: StrictBool | None
    note: str = ""


class LabelPage:
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


def calibrate_command(path: str | Path, task: str, given: Mapping[str, Any]) -> str:
    """The command that calibrates on a file of verdicts, whose answers were read as `given`."""
    stem = Path(path).name.removesuffix(".jsonl").removesuffix(".labelled")
    words = ["--answers", str(path), "--task", task, *flags({**given, "label": None})]
    words += ["--parts", given["parts"]] if given.get("parts") else []
    made = ["--output", f"{stem}.calibrator.json", "--report", f"{stem}.html"]
    return shlex.join(["tracecal", "calibrate", *words, *made])


def ask_in_order(order: list[str]) -> Ask:
    """Asks for one answer after the other."""

    def ask(given: Mapping[str, Verdict]) -> tuple[str | None, str]:
        left = [example for example in order if example not in given]
        return (left[0] if left else None), f"{len(order) - len(left)} of {len(order)} labelled"

    return ask


def serve_page(labelling: LabelPage, port: int) -> None:
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
