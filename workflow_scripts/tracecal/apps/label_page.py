"""The page on which answers are labelled, the file of verdicts, and what is asked next."""

import asyncio
import fcntl
import json
import os
import secrets
import shlex
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from aiohttp import web
from pydantic import StrictBool, StrictInt

from tracecal.apps.explorer.page import page
from tracecal.apps.report import flags
from tracecal.calibration.guarantees import error_level
from tracecal.calibration.labelling import NoMoreLabels, Population, grouped, order_of_tests, search
from tracecal.errors import InputError
from tracecal.io.checksums import hash_of
from tracecal.io.files import read_json, write_json
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded
from tracecal.io.settings import Strict, parse

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is correct; null where the one who labels it is unsure."""

    correct: bool | None
    note: str = ""


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
        places, wholes = self._data["places"], dict(self._data["wholes"])
        rows = zip(places.get("row", ()), places.get("whole", ()), strict=True)
        waiting = {whole for row, whole in rows if not known[row]}
        for name in {*HIDDEN} & {*wholes}:
            values = enumerate(wholes[name])
            wholes[name] = [None if whole in waiting else value for whole, value in values]
        columns["correct"] = [given[id].correct if id in given else None for id in self._ids]
        order = [self._place[example] for example in given]
        notes = {str(self._place[id]): one.note for id, one in given.items() if one.note}
        probabilities = self._columns["probability"].items()
        calibrated = [id for id, values in probabilities if any(one is not None for one in values)]
        labelling = {"order": order, "notes": notes, "file": str(self._verdicts.path)}
        labelling |= {"calibrated": calibrated, "then": self._then}
        own = {"answers": columns, "wholes": wholes, "labelling": labelling | self._next}
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


# Which label a guaranteed error rate needs next, and whether the guarantee stands.


# Whose scores decide where no estimator is named or recommended, the first that the answers have.
PREFERRED = ("trace_plus", "trace", "len_norm_logp")


def scores(
    data: Mapping[str, Any], estimator: str | None, recommended: str | None = None
) -> tuple[str, list[float | None]]:
    """The estimator that decides, and each answer's probability by it, or score without one.

    `data` are those of `shown.page_data`, `recommended` is the estimator of a calibrator's file.
    Raises `InputError` where the answers lack it.
    """
    columns = data["answers"]
    preferred = (recommended, *PREFERRED) if recommended else PREFERRED
    for name in [estimator] if estimator else preferred:
        for kind in ("probability", "score"):
            values = columns[kind].get(name, [])
            if any(value is not None for value in values):
                return name, values
    known = ", ".join(columns["score"]) or "none"
    raise InputError(
        f"the answers have no score of {estimator or ' or '.join(PREFERRED)}; there is {known}: "
        "choose one with --estimator, or give answers with log-probabilities."
    )


@dataclass(frozen=True)
class Wanted:
    """A guarantee to look for: at most `error_rate` of the answers kept by `estimator` are wrong.

    `largest_group` is how many answers of a question count at most, among 'further' answers; null:
    as many as the largest of the file has. Raises `InputError` for settings out of range.
    """

    estimator: str
    error_rate: float
    confidence: float
    population: Population
    largest_group: int | None
    seed: int

    def __post_init__(self) -> None:
        for name, value in (
            ("--error-rate", self.error_rate),
            ("--confidence", self.confidence),
        ):
            if not 0 < value < 1:
                raise InputError(f"{name} {value:g}: expected a number between 0 and 1.")
        if self.largest_group is not None and self.population == "finite":
            raise InputError(
                "--largest-group is for --population further: how the answers of this file are "
                "grouped does not matter to a guarantee about them."
            )
        if self.largest_group is not None and self.largest_group < 1:
            raise InputError(f"--largest-group {self.largest_group}: expected 1 or more.")


class LabelQuery:
    """Asks for the labels of `calibrate.asking`; a verdict that is unsure counts as wrong."""

    def __init__(
        self, answers: pl.DataFrame, scores: Sequence[float | None], wanted: Wanted
    ) -> None:
        """For answers (columns of `RECORDS`) with `scores`."""
        scored = answers.with_columns(score=pl.Series(scores, dtype=pl.Float64)).sort("example_id")
        group, most = np.zeros(scored.height, dtype=int), None
        if wanted.population == "further":
            group = grouped(answers)["group_id"].rank("dense").to_numpy().astype(int) - 1
            most = wanted.largest_group or int(np.bincount(group).max())
        order = order_of_tests(group, wanted.population, most, seeded(wanted.seed, "pick"))
        self._wanted = wanted
        self._score = scored["score"].fill_null(-np.inf).to_numpy()
        self._ids, self._tested = scored["example_id"][order].to_list(), self._score[order]
        exact = json.dumps([scored["example_id"].to_list(), self._score.tolist()])
        self.settings = asdict(wanted) | {"largest_group": most, "scores": hash_of(exact)}

    def record(self, given: Mapping[str, Verdict]) -> dict[str, Any]:
        """The settings and what stands by the verdicts so far, as plain JSON.

        `labels` is how many of them were looked at, `next` the answer whose label is needed next.
        """
        looked_at: set[str] = set()
        needed: list[str] = []

        def wrong(answer: int) -> bool:
            example = self._ids[answer]
            if example not in given:
                needed.append(example)
                raise NoMoreLabels
            looked_at.add(example)
            return given[example].correct is not True

        level = error_level(self._wanted.confidence)
        found = search(self._tested, wrong, self._wanted.error_rate, level, self._wanted.population)
        kept = np.inf if found.threshold is None else found.threshold
        return self.settings | {
            "threshold": found.threshold,
            "coverage": float((self._score >= kept).mean()),
            "tested": found.tested,
            "ended": found.ended,
            "labels": len(looked_at),
            "next": needed[0] if needed else None,
        }


class Recorded:
    """A query whose record is on disk before it is answered, with all that was tried before.

    The record holds `tried`, the records of other searches that have looked at labels, and
    `joint_confidence`: that this search's guarantee and all of theirs hold.
    """

    def __init__(self, query: LabelQuery, path: Path) -> None:
        """Raises `InputError` where `path` is another's file."""
        self._query, self.path = query, path
        try:
            tried = [one for one in _searches(path) if one["labels"] and not self._is_own(one)]
            doubt = 1 - query.settings["confidence"] + sum(1 - one["confidence"] for one in tried)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} is not a record as this 'tracecal label' writes it: move it away, or name "
                "another --output."
            ) from error
        self._of_all = {"joint_confidence": round(max(0.0, 1 - doubt), 12), "tried": tried}

    def _is_own(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this search, at whatever number of labels."""
        return all(record[name] == value for name, value in self._query.settings.items())

    def ask(self, given: Mapping[str, Verdict]) -> tuple[str | None, str]:
        """The answer to label next, null where the search has ended, and how it stands."""
        record = self._query.record(given) | self._of_all
        write_json(record, self.path)
        return record["next"], f"{len(given)} labelled; {said(record)}"


def _searches(path: Path) -> list[dict[str, Any]]:
    """The records of all searches that are stored, the first that was tried first."""
    if not path.exists():
        return []
    last = read_json(path)
    earlier = last.pop("tried")
    del last["joint_confidence"]
    return [*earlier, last]


def said(record: Mapping[str, Any]) -> str:
    """How a search stands, by its record."""
    parts = ["nothing is guaranteed"]
    if record["threshold"] is not None:
        parts = [
            f"guaranteed: at most {record['error_rate']:.0%} are incorrect among the "
            f"{record['coverage']:.1%} of {_whom(record)} from {record['threshold']:.4g} on "
            f"({record['confidence']:.0%} confidence)"
        ]
    if record["tried"]:
        parts.append(
            f"search {len(record['tried']) + 1} on these labels: whoever chooses among them has at "
            f"least {record['joint_confidence']:.0%} confidence"
        )
    if record["next"] is not None:
        parts.append(f"now tested: from {record['tested']:.4g} on")
    elif record["ended"] == "failed":
        parts.append(f"from {record['tested']:.4g} on too many are incorrect")
    else:
        parts.append("no threshold is left to test")
    return "; ".join(parts)


def _whom(record: Mapping[str, Any]) -> str:
    if record["population"] == "finite":
        return "this file's answers"
    most = record["largest_group"]
    counts = "" if most == 1 else f", a question counting with at most {most} of them,"
    return f"further answers like this file's{counts}"
