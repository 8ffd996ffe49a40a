"""Journals: the finished batches of a step on disk, so that an interrupted job resumes.

A journal is a folder of Arrow files, one per batch, each named after the SHA-256 of its bytes:
written atomically, checked when read, never changed. The folder is named after a hash of what the
rows depend on (settings, code, model revision, prompts, library versions), so rows of different
settings never mix. Jobs that share a model and task write to one journal.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from tracecal.errors import InputError
from tracecal.io.digests import digest, hash_of
from tracecal.io.files import MOST_RESULT
from tracecal.io.log import LOGGER
from tracecal.io.regular_files import read_regular, write_bytes, write_text

Row = dict[str, object]
IDENTITY = "identity.json"


class Journal:
    """The rows of finished examples; every row holds its `example_id`."""

    def __init__(self, folder: str | Path, schema: pa.Schema, identity: Mapping[str, object]):
        """Open the journal of `identity` (plain JSON values) below `folder`, and read it.

        A damaged part is logged and removed: its examples are computed again. Journals of other
        identities below `folder` are logged and ignored.
        """
        canonical = json.loads(json.dumps(identity, sort_keys=True))
        self.folder = Path(folder) / hash_of(json.dumps(canonical, sort_keys=True))
        self.schema = schema
        self._parts: dict[Path, pa.Table] = {}
        self._finished: dict[str, Path] = {}
        _warn_of_others(self.folder, canonical)
        for part in sorted(self.folder.glob("*.arrow")):
            with suppress(FileNotFoundError):  # another job has settled meanwhile
                self._read(part)
        if self._finished:
            LOGGER.info("%d examples are finished already (%s)", len(self._finished), self.folder)
        if not (self.folder / IDENTITY).exists():
            # Jobs that share the journal may start at the same moment: each writes its own file.
            temporary = self.folder / f"identity-{uuid4().hex}.json"
            write_text(json.dumps(canonical, indent=1, ensure_ascii=False), temporary)
            temporary.replace(self.folder / IDENTITY)

    def __contains__(self, example_id: str) -> bool:
        return example_id in self._finished

    def add(self, rows: Sequence[Row]) -> None:
        """Store the rows of a finished batch; they are on disk when this returns."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, self.schema) as writer:
            writer.write_table(pa.Table.from_pylist(list(rows), schema=self.schema))
        content = sink.getvalue().to_pybytes()
        part = self.folder / f"{hashlib.sha256(content).hexdigest()}.arrow"
        write_bytes(content, part)
        self._keep(part, content)

    def table(self, example_ids: Iterable[str]) -> pa.Table:
        """The rows of finished examples, sorted by example id, whatever their batches were."""
        import pyarrow.compute as pc  # slow to load, and commands need none of it

        examples_of_part: dict[Path, list[str]] = {}
        for example in example_ids:
            examples_of_part.setdefault(self._finished[example], []).append(example)
        tables = [self.schema.empty_table()]
        for part, examples in examples_of_part.items():
            table = self._parts[part]
            tables.append(table.filter(pc.is_in(table["example_id"], pa.array(examples))))
        return sorted_by_example(pa.concat_tables(tables))

    def settle(self, output: str | Path) -> None:
        """Replace the parts by a hard link to the finished `output`, which holds all rows.

        A link takes no disk space and stays when `output` is made again. On file systems without
        hard links the parts stay.
        """
        finished = self.folder / f"{digest(output)}.arrow"
        link = finished.with_suffix(".link")
        try:
            link.unlink(missing_ok=True)
            os.link(output, link)
        except OSError:
            return
        link.replace(finished)
        for part in self._parts:
            if part != finished:
                part.unlink(missing_ok=True)

    def _read(self, part: Path) -> None:
        content = read_regular(part, MOST_RESULT)
        try:
            if hashlib.sha256(content).hexdigest() != part.stem:
                raise ValueError("other bytes than those that were written")
            self._keep(part, content)
        except (ValueError, KeyError):  # pyarrow's, too
            LOGGER.warning("%s is damaged; its answers are computed again", part)
            part.unlink()

    def _keep(self, part: Path, content: bytes) -> None:
        with pa.ipc.open_file(pa.BufferReader(content)) as reader:
            table = reader.read_all().replace_schema_metadata()
        self._parts[part] = table
        self._finished |= dict.fromkeys(table["example_id"].to_pylist(), part)


def sorted_by_example(table: pa.Table) -> pa.Table:
    """The rows sorted by example id; rows of one example keep their order."""
    order = sorted(range(table.num_rows), key=table["example_id"].to_pylist().__getitem__)
    return table.take(pa.array(order, pa.int64())).combine_chunks()


def _warn_of_others(folder: Path, identity: Mapping[str, object]) -> None:
    """Warn of journals of the same step with other settings, and name the differing ones."""
    for file in sorted(folder.parent.glob(f"*/{IDENTITY}")):
        if file.parent == folder:
            continue
        try:
            theirs = dict(json.loads(read_regular(file, MOST_RESULT)))
        except (InputError, OSError, TypeError, ValueError, RecursionError):
            theirs = {}
        differing = sorted(
            key for key in identity.keys() | theirs.keys() if identity.get(key) != theirs.get(key)
        )
        LOGGER.warning(
            "finished batches in %s belong to other settings (%s) and are ignored; remove the "
            "folder if you will not go back to them",
            file.parent,
            ", ".join(differing),
        )
