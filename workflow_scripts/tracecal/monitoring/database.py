"""The monitors' state in SQLite, which survives a kill at any moment.

1. `StateDatabase(path, identity, settings)` opens a state, or makes it.
2. `add_answers` and `add_labels` move it, a transaction each.
3. `state`, `counts` and `query` read it, also while another process writes.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tracecal.calibrator.schema import Reference
from tracecal.errors import InputError
from tracecal.io.regular_files import open_regular
from tracecal.io.sqlite_files import limit_steps, require_tables
from tracecal.monitoring import state as states
from tracecal.monitoring.batch import Batch

LOCK_TIMEOUT = 10.0  # seconds to wait for another writer
SCHEMA = """
CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY CHECK (one = 1), content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    id TEXT PRIMARY KEY, place INTEGER NOT NULL,
    probability REAL, length REAL, kept REAL, key TEXT, watched INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken (
    key TEXT, what TEXT, PRIMARY KEY (key, what)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (
    id TEXT PRIMARY KEY, correct INTEGER NOT NULL, used TEXT NOT NULL
) WITHOUT ROWID;
"""
# What became of a label.
LABEL_USES = USED, WAITING, NOT_KEPT, SAME_KEY = "used", "waiting", "not kept", "same key"
# The rows that no state has, which SQLite itself would take, and how many answers there are.
ODD_ROWS = f"""
SELECT (SELECT count(*) FROM answers WHERE NOT (
    typeof(id) = 'text' AND typeof(place) = 'integer' AND watched IN (0, 1)
    AND typeof(probability) IN ('real', 'null') AND typeof(length) IN ('real', 'null')
    AND coalesce(kept IN (0, 1), 1)
)) + (SELECT count(*) FROM labels WHERE NOT (
    typeof(id) = 'text' AND correct IN (0, 1) AND used IN {LABEL_USES}
)), (SELECT count(*) FROM answers)
"""
BATCH_SIZE = 500  # answers of a transaction
MOST_BYTES = 2**40  # of a state
# What the values of a state that was forged raise.
NO_STATE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)
Values = tuple[float | None, ...]  # an answer's probability, length and kept


@dataclass
class AddedCounts:
    """Answers or labels of one call.

    Attributes
    ----------
    new, repeated, contradicting : int
        Of new ids, and of known ids with the same value and with another.
    watched : int
        New answers that the monitors watch.
    """

    new: int = 0
    watched: int = 0
    repeated: int = 0
    contradicting: int = 0

    def __add__(self, more: "AddedCounts") -> "AddedCounts":
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return AddedCounts(*(first + second for first, second in pairs))


class StateDatabase:
    """A state file.

    `identity` is `calibrator_identity`. A new file gets the calibration's answers as `reference`,
    and a `seed` for breaking ties (by default a random one). Raises `InputError` where the file
    belongs to another calibrator or other settings, is of an earlier version, or is no state.
    """

    def __init__(
        self,
        path: str | Path,
        identity: str,
        settings: states.AlarmSettings,
        reference: Reference | None = None,
        seed: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.identity = identity
        self._inode: int | None = None
        with self._explained():
            if self.path.exists():
                with open_regular(self.path, MOST_BYTES) as file:  # SQLite's own reads may wait
                    if os.fstat(file.fileno()).st_size == 0 and file.read(1) != b"":
                        raise InputError(f"{path} is a file of the system; give a file to write.")
            self.connection = sqlite3.connect(self.path, LOCK_TIMEOUT, isolation_level=None)
            require_tables(self.connection, self.path)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():
                for statement in SCHEMA.split(";"):
                    self.connection.execute(statement)
                if self._content() is None:
                    self._save(states.initial_state(settings, reference, seed))
                content = self._content()
                n_odd, n_answers = self.connection.execute(ODD_ROWS).fetchone()
            self._inode = self.path.stat().st_ino
            earlier = content["state"].get("settings")  # None in a state of an earlier version
            if n_odd or n_answers != content["state"]["n_answers"]:
                raise ValueError("its rows are none of a state")
            if content["identity"] != identity or earlier != vars(settings):
                self.connection.close()
                raise InputError(
                    f"{path} watches another calibrator, or with other settings: a state goes on "
                    "with those that it began with. Give another --state."
                )

    @property
    def state(self) -> states.State:
        """The current state."""
        with self._explained():
            return self._load()

    def add_answers(
        self,
        ids: Sequence[str],
        batch: Batch,
        keys: Sequence[str] | None = None,
        choices: Sequence[int] | None = None,
    ) -> AddedCounts:
        """Watch answers in their order; skip and count those of known ids.

        Of the answers with one of `keys` (by default their ids) the first is watched, and of the
        `choices` of a request number 0 (by default all are).
        """
        keys, choices = keys or ids, choices or [0] * len(ids)
        answers = [*zip(_rows(ids, batch), keys, choices, strict=True)]
        counts = AddedCounts()
        for first in range(0, len(answers), BATCH_SIZE):
            new: dict[str, Values] = {}
            new_keys, new_choices = [], []
            with self._explained(), self._transaction():
                for (example_id, *values), key, choice in answers[first : first + BATCH_SIZE]:
                    known_values = new.get(example_id) or self._values_of(example_id)
                    if known_values is None:
                        new[example_id] = tuple(values)
                        new_keys.append(key)
                        new_choices.append(choice)
                    else:
                        counts.repeated += known_values == tuple(values)
                        counts.contradicting += known_values != tuple(values)
                counts.new += len(new)
                counts.watched += self._watch(self._load(), new, new_keys, new_choices)
        return counts

    def add_served(
        self, ids: Sequence[str], batch: Batch, keys: Sequence[str], choices: Sequence[int]
    ) -> int:
        """Watch the answers of a server, each of which counts; return how many ids were known.

        An answer whose id is known is named ``id@place``, by its place among all answers, and so is
        its key where that is its id.
        """
        new: dict[str, Values] = {}
        new_keys = []
        with self._explained(), self._transaction():
            state = self._load()
            rows = zip(_rows(ids, batch), keys, strict=True)
            for number, ((server_id, *values), key) in enumerate(rows, state.n_answers + 1):
                example_id = server_id
                while example_id in new or self._values_of(example_id) is not None:
                    example_id = f"{example_id}@{number}"
                new[example_id] = tuple(values)
                new_keys.append(example_id if key == server_id else key)
            self._watch(state, new, new_keys, choices)
        return sum(name != server_id for name, server_id in zip(new, ids, strict=True))

    def add_labels(self, labels: Sequence[tuple[str, bool]]) -> AddedCounts:
        """Judge kept answers by labels, pairs of an id and whether the answer is correct.

        Labels count in the order of their answers, as wrong answers may be reported sooner. The
        first label of an answer counts. Labels of answers that have not come yet wait for them.
        """
        counts, new = AddedCounts(), []
        with self._explained(), self._transaction():
            for example_id, correct in labels:
                known_label = self._label_of(example_id)
                if known_label is None:
                    row = (example_id, int(correct), WAITING)
                    self.connection.execute("INSERT INTO labels VALUES (?, ?, ?)", row)
                    new.append(example_id)
                elif known_label == correct:
                    counts.repeated += 1
                else:
                    counts.contradicting += 1
            counts.new = len(new)
            self._save(self._judge(self._load(), new))
        return counts

    def counts(self) -> dict[str, int]:
        """Count answers that are kept, decided and without confidence, and labels by their use."""
        with self._explained():
            n_kept, n_decided, n_unknown = self.connection.execute(
                "SELECT coalesce(sum(kept), 0), count(kept), count(*) - count(probability) "
                "FROM answers"
            ).fetchone()
            labels = self.connection.execute("SELECT used, count(*) FROM labels GROUP BY used")
            counts = {"kept": int(n_kept), "decided": n_decided, "unknown": n_unknown}
            return counts | dict.fromkeys(LABEL_USES, 0) | dict(labels.fetchall())

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple]:
        """Return the rows of a query."""
        with self._explained():
            return self.connection.execute(sql, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def _watch(
        self,
        state: states.State,
        new: Mapping[str, Values],
        keys: Sequence[str],
        choices: Sequence[int],
    ) -> int:
        """Store new answers and the state after them; return how many of them are watched."""
        rows, watched = [], []
        answers = zip(new.items(), keys, choices, strict=True)
        for place, ((example_id, values), key, choice) in enumerate(answers, state.n_answers + 1):
            is_watched = choice == 0 and (key == example_id or self._take(key, "answer"))
            shared_key = None if key == example_id else key
            rows.append((example_id, place, *values, shared_key, is_watched))
            watched += [values] if is_watched else []
        self.connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        columns = np.array(watched, dtype=float).reshape(len(watched), 3).T
        n_answers = state.n_answers + len(new)
        state = replace(states.watch(state, Batch(*columns)), n_answers=n_answers)
        labelled = [name for name in new if self._label_of(name) is not None]
        self._save(self._judge(state, labelled))
        return len(watched)

    def _judge(self, state: states.State, ids: Sequence[str]) -> states.State:
        """Return the state after the labels of those of these answers that have come."""
        query = "SELECT place, coalesce(key, id), kept, id FROM answers WHERE id = ?"
        rows = [row for name in ids for row in self.connection.execute(query, (name,))]
        is_wrong = []
        for _, key, is_kept, example_id in sorted(rows):
            use = NOT_KEPT
            if is_kept == 1:
                use = USED if self._take(key, "label") else SAME_KEY
            self.connection.execute("UPDATE labels SET used = ? WHERE id = ?", (use, example_id))
            if use == USED:
                is_wrong.append(not self._label_of(example_id))
        return states.judge(state, np.array(is_wrong, dtype=bool))

    def _values_of(self, example_id: str) -> Values | None:
        query = "SELECT probability, length, kept FROM answers WHERE id = ?"
        return self.connection.execute(query, (example_id,)).fetchone()

    def _label_of(self, example_id: str) -> bool | None:
        query = "SELECT correct FROM labels WHERE id = ?"
        row = self.connection.execute(query, (example_id,)).fetchone()
        return None if row is None else bool(row[0])

    def _take(self, key: str, what: str) -> bool:
        """Mark a key as having an answer, or label; return whether it had none."""
        insert = "INSERT OR IGNORE INTO taken VALUES (?, ?)"
        return self.connection.execute(insert, (key, what)).rowcount == 1

    def _load(self) -> states.State:
        return states.from_json(self._content()["state"])

    def _content(self) -> Mapping[str, Any] | None:
        """The stored identity and state, checked; raises `InputError` where they are damaged."""
        row = self.connection.execute("SELECT content FROM state").fetchone()
        if row is None:
            return None
        content = json.loads(row[0])
        if content.pop("checksum", None) != _checksum(content):
            raise InputError(
                f"{self.path} is damaged: its state does not match its checksum. Make it anew from "
                "the log: 'tracecal watch --answers LOG --calibrator C.json --state NEW'."
            )
        return content

    def _save(self, state: states.State) -> None:
        content = {"identity": self.identity, "state": states.as_json(state)}
        text = json.dumps(content | {"checksum": _checksum(content)})
        self.connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (text,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # SQLite would go on writing to a deleted file, where nobody finds it.
        if self._inode is not None and (
            not self.path.exists() or self.path.stat().st_ino != self._inode
        ):
            raise InputError(f"{self.path} was deleted or replaced.")
        limit_steps(self.connection)
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except (sqlite3.Error, OSError, *NO_STATE) as error:
            reason = "its values are none of a state" if isinstance(error, NO_STATE) else error
            raise InputError(
                f"{self.path} cannot be used as a state of monitors ({reason}); give a path on a "
                "disk with space, to a file that 'tracecal watch' made or to none."
            ) from error


def _rows(ids: Sequence[str], batch: Batch) -> list[tuple]:
    """Return each answer's id and values as SQLite stores them, None for NaN."""
    columns = (
        [None if np.isnan(value) else float(value) for value in column] for column in batch.columns
    )
    return list(zip(ids, *columns, strict=True))


def _checksum(content: Mapping[str, Any]) -> str:
    """A digest of an identity and a state."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
