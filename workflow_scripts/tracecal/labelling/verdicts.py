"""The file of verdicts."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tracecal.errors import InputError
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER
from tracecal.labelling.search import Verdict

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
