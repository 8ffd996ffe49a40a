"""The file of verdicts: JSON Lines, an answer's row and its verdict a line, on disk at once."""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tracecal.errors import InputError
from tracecal.io.input_files import parsed_json
from tracecal.io.log import LOGGER

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is correct (None: unsure), with a note."""

    correct: bool | None
    note: str = ""


class VerdictFile:
    """A file of verdicts, held by one process at a time.

    Attributes
    ----------
    verdicts : dict
        The verdicts by answer id, in the order in which they were given.
    """

    def __init__(
        self,
        path: str | Path,
        rows: Mapping[str, Row],
        part_names: Mapping[str, str] | None = None,
    ) -> None:
        """Open or create the file.

        `rows` are the rows to judge by id, `part_names` the names of parts by id. A last line that
        a kill left incomplete is removed. Raises `InputError` where the file is in use, or holds
        anything else than verdicts on these answers.
        """
        self.path, self._rows, self._part_names = Path(path), rows, part_names or {}
        self.verdicts: dict[str, Verdict] = {}
        self._ends = [0]  # the file's length before and after each verdict
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
        content = self._file.read()
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                if _is_json(line):  # maybe another file's, which must not be cut
                    self._parse(line, number)
                LOGGER.warning("%s: its last line is incomplete and is removed", self.path)
                self._truncate()
                return
            example_id, verdict = self._parse(line, number)
            self.verdicts[example_id] = verdict
            self._ends.append(self._ends[-1] + len(line))

    def _parse(self, line: bytes, number: int) -> tuple[str, Verdict]:
        where = f"{self.path}, line {number}"
        try:
            labelled = parsed_json(line)["labelled"]
            example_id = labelled["example_id"]
            verdict = Verdict(labelled["correct"], labelled.get("note", ""))
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

    def append(self, example_id: str, verdict: Verdict) -> None:
        """Append a verdict. It is on disk on return, and not in the file after an `OSError`."""
        if example_id in self.verdicts:
            raise ValueError(f"{example_id!r} has a verdict already")
        labelled = {"example_id": example_id, "correct": verdict.correct}
        if example_id in self._part_names:
            labelled["part"] = self._part_names[example_id]
        if verdict.note:
            labelled["note"] = verdict.note
        row = {**self._rows[example_id], "labelled": labelled}
        content = f"{json.dumps(row, ensure_ascii=False)}\n".encode()
        try:
            written = self._file.write(content)
            if written != len(content):
                raise OSError("only a part of the line was written: the disk may be full")
            os.fsync(self._file.fileno())
        except OSError:
            self._truncate()
            raise
        self._ends.append(self._ends[-1] + len(content))
        self.verdicts[example_id] = verdict

    def import_labels(self, labels: Mapping[str, bool | None]) -> int:
        """Append labels from elsewhere, in the order of the answers.

        Returns how many labels are on other answers. Raises `InputError`, and appends nothing,
        where a label contradicts the file or none is on an answer to judge.
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
                self.append(example_id, Verdict(labels[example_id]))
        return len(labels) - len(ids)

    def undo(self) -> str | None:
        """Take the last verdict back and return its answer's id; None without verdicts."""
        if not self.verdicts:
            return None
        self._ends.pop()
        self._truncate()
        example_id, _ = self.verdicts.popitem()
        return example_id

    def _truncate(self) -> None:
        """Cut the file after the last complete verdict."""
        self._file.truncate(self._ends[-1])
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file for other processes."""
        self._file.close()


def _is_json(line: bytes) -> bool:
    try:
        parsed_json(line)
    except ValueError:
        return False
    return True
