"""The file of verdicts: JSON Lines, an answer's row and its verdict a line, on disk at once."""

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from tracecal.errors import InputError
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular
from tracecal.io.log import LOGGER

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is correct (None: unsure), with a note."""

    correct: bool | None
    note: str = ""


class VerdictFile:
    """A file of `verdicts` by answer id, in the order in which they came, held by one process."""

    def __init__(
        self,
        path: str | Path,
        rows: Mapping[str, Row],
        part_names: Mapping[str, str] | None = None,
        asked_for: bool = False,
    ) -> None:
        """Open or create the file.

        `rows` are the rows to judge by id, `part_names` the names of parts by id. Verdicts that a
        search asks for are marked (`asked_for`), as they are no random sample. A last line that
        a kill left incomplete behind a verdict is removed. Raises `InputError` where the file is in
        use, or holds anything else than verdicts on these answers.
        """
        self.path, self._rows, self._part_names = Path(path), rows, part_names or {}
        self._asked_for = asked_for
        self.verdicts: dict[str, Verdict] = {}
        self._ends = [0]  # the file's length before and after each verdict
        self._line_hashes: list[bytes] = []  # hashes of the verdicts' lines
        if self.path.exists():
            require_regular(path, MOST_BYTES)
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

    @property
    def labels(self) -> dict[str, bool | None]:
        """Whether each judged answer is correct, by id."""
        return {id: verdict.correct for id, verdict in self.verdicts.items()}

    def _read(self) -> None:
        self._file.seek(0)
        size = os.fstat(self._file.fileno()).st_size
        for number, line in enumerate(BytesIO(self._file.read(size)), 1):
            if not line.endswith(b"\n") and self.verdicts and self._begins_verdict(line):
                LOGGER.warning("%s: its last line is incomplete and is removed", self.path)
                self._truncate()
                return
            example_id, verdict = self._parse(line, number)
            self._note(example_id, verdict, line)

    def _note(self, example_id: str, verdict: Verdict, line: bytes) -> None:
        self.verdicts[example_id] = verdict
        self._ends.append(self._ends[-1] + len(line))
        self._line_hashes.append(hashlib.sha256(line).digest())

    def _begins_verdict(self, line: bytes) -> bool:
        """Whether an incomplete line is the beginning of a verdict on one of the rows."""
        mark = '"labelled": {'
        for row in self._rows.values():
            text = json.dumps({**row, "labelled": {}}, ensure_ascii=False)
            begun = text[: text.rindex(mark) + len(mark)].encode(errors="backslashreplace")
            if begun.startswith(line) or line.startswith(begun):
                return True
        return False

    def _parse(self, line: bytes, number: int) -> tuple[str, Verdict]:
        where = f"{self.path}, line {number}"
        if not line.endswith(b"\n"):
            raise InputError(
                f"{where} is not a whole verdict as 'tracecal label' writes it: name another "
                "--output, or remove the line if a kill left it."
            )
        try:
            labelled = parsed_json(line)["labelled"]
            example_id = labelled["example_id"]
            verdict = Verdict(labelled["correct"], labelled.get("note", ""))
            has_texts = isinstance(example_id, str) and isinstance(verdict.note, str)
            if not (has_texts and isinstance(verdict.correct, bool | None)):
                raise TypeError
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{where} is not a verdict as 'tracecal label' writes it: name another --output."
            ) from error
        if example_id in self.verdicts:
            raise InputError(f"{where}: a second verdict on {example_id!r}: name another --output.")
        if example_id not in self._rows:
            raise InputError(
                f"{where}: a verdict on {example_id!r}, which is not among the answers to label: "
                "name another --output."
            )
        return example_id, verdict

    def append(self, example_id: str, verdict: Verdict, asked_for: bool = False) -> None:
        """Append a verdict. It is on disk on return, and not in the file after an `OSError`.

        That is raised, too, where another program replaced or changed the file.
        """
        if example_id in self.verdicts:
            raise ValueError(f"{example_id!r} has a verdict already")
        labelled = {"example_id": example_id, "correct": verdict.correct}
        if example_id in self._part_names:
            labelled["part"] = self._part_names[example_id]
        if verdict.note:
            labelled["note"] = verdict.note
        if asked_for or self._asked_for:
            labelled["asked_for"] = True
        row = {**self._rows[example_id], "labelled": labelled}
        content = f"{json.dumps(row, ensure_ascii=False)}\n".encode(errors="backslashreplace")
        self._require_unchanged()
        try:
            written = self._file.write(content)
            if written != len(content):
                reason = "only a part of the line could be written: the disk may be full"
                raise OSError(errno.ENOSPC, reason, str(self.path))
            os.fsync(self._file.fileno())
        except OSError:
            self._truncate()
            raise
        self._note(example_id, verdict, content)

    def import_labels(
        self, labels: Mapping[str, bool | None], asked_for: Set[str] = frozenset()
    ) -> int:
        """Append labels from elsewhere, in the order of the answers.

        Those of the ids `asked_for` keep their mark. Returns how many labels are on other answers.
        Raises `InputError`, and appends nothing, where a label contradicts the file or none is on
        an answer to judge.
        """
        ids = [example_id for example_id in self._rows if example_id in labels]
        if not ids:
            raise InputError(
                f"none of the {len(labels)} verdicts is on one of the {len(self._rows)} answers: "
                "their ids differ."
            )
        for example_id in ids:
            verdict = self.verdicts.get(example_id)
            if verdict is not None and verdict.correct != labels[example_id]:
                raise InputError(
                    f"{self.path} holds another verdict on {example_id!r}: name another --output, "
                    "and compare the two."
                )
        for example_id in ids:
            if example_id not in self.verdicts:
                self.append(example_id, Verdict(labels[example_id]), example_id in asked_for)
        return len(labels) - len(ids)

    def undo(self) -> str | None:
        """Take the last verdict back and return its answer's id; None without verdicts.

        Raises `OSError` as `append`: nothing is cut that another program wrote.
        """
        if not self.verdicts:
            return None
        self._require_unchanged()
        self._ends.pop()
        self._line_hashes.pop()
        self._truncate()
        example_id, _ = self.verdicts.popitem()
        return example_id

    def _require_unchanged(self) -> None:
        """Raise `OSError` unless the file at the path is the open one, as it was left."""
        opened = os.fstat(self._file.fileno())
        try:
            there = self.path.stat()
        except FileNotFoundError:
            raise self._stale("was deleted") from None
        if (there.st_dev, there.st_ino) != (opened.st_dev, opened.st_ino):
            raise self._stale("was replaced")
        start, end = self._ends[-2:] if self.verdicts else (0, 0)
        line = os.pread(self._file.fileno(), end - start, start)
        is_own = not self.verdicts or hashlib.sha256(line).digest() == self._line_hashes[-1]
        if opened.st_size != self._ends[-1] or not is_own:
            raise self._stale("was changed")

    def _stale(self, what: str) -> OSError:
        reason = f"it {what} by another program; end 'tracecal label' and start it again"
        return OSError(errno.ESTALE, reason, str(self.path))

    def _truncate(self) -> None:
        """Cut the file after the last complete verdict."""
        self._file.truncate(self._ends[-1])
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file for other processes."""
        self._file.close()
