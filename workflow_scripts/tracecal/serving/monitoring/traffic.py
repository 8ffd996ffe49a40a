"""What monitors see of answers, and their state in SQLite, whole whoever is killed."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.row import value_at
from tracecal.calibration.fits import as_json as as_json_of_fits
from tracecal.calibrator.schema import Fitted, Reference
from tracecal.calibrator.scoring import score_answers
from tracecal.errors import InputError
from tracecal.estimators.trace_inputs import compute_inputs
from tracecal.io.input_files import MOST_BYTES, parsed_json, require_regular
from tracecal.io.log import LOGGER
from tracecal.serving.monitoring import texts as texts_table
from tracecal.serving.monitoring.settings import SHORTEST, Watching
from tracecal.serving.monitoring.state import (
    ALIKE,
    ERROR,
    AlarmSettings,
    Batch,
    State,
    as_json,
    block_length,
    from_json,
    judge,
    start,
    watch,
)

PATIENCE = 10.0  # seconds to wait for another writer
SCHEMA = """
CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY CHECK (one = 1), content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    id TEXT PRIMARY KEY, place INTEGER NOT NULL, time REAL NOT NULL,
    probability REAL, length REAL, kept REAL, key TEXT, watched INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS taken (
    key TEXT, what TEXT, PRIMARY KEY (key, what)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON answers (time);
CREATE TABLE IF NOT EXISTS labels (
    id TEXT PRIMARY KEY, correct INTEGER NOT NULL, used TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history (place INTEGER PRIMARY KEY, time REAL, evidence TEXT);
"""
ENOUGH = 1000  # answers that say how long blocks must be
# What became of a label.
USES = USED, WAITING, NOT_KEPT, SAME_KEY = "used", "waiting", "not kept", "same key"
AT_ONCE = 500  # answers of a transaction
NEWEST = 10_000  # answers that say how long blocks must be


@dataclass
class Added:
    """How many answers or labels were new, known already with the same value, or with another.

    Of the new answers so many are `watched`.
    """

    new: int = 0
    watched: int = 0
    repeated: int = 0
    contradicting: int = 0

    def __add__(self, other: "Added") -> "Added":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Added(*(one + more for one, more in pairs))


class Store:
    """A state file; a `private` one is made for its owner alone.

    `seed` is of a new one's ties, null: drawn.

    Raises `InputError` where it is another calibrator's, of an earlier version, or no state file.
    """

    def __init__(
        self,
        path: str | Path,
        identity: str,
        settings: AlarmSettings,
        reference: Reference | None = None,
        private: bool = False,
        seed: int | None = None,
    ) -> None:
        self.path = Path(path)
        with self._named():
            if private:
                _make_private(self.path)
            self.connection = sqlite3.connect(self.path, PATIENCE, isolation_level=None)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():
                self._require_current()
                for statement in (SCHEMA + texts_table.SCHEMA).split(";"):
                    self.connection.execute(statement)
                if self._content() is None:
                    self._save(start(settings, reference, seed), identity)
            self.file = self.path.stat().st_ino
            begun = self._content()
        if begun["identity"] != identity or begun["state"]["promise"] != vars(settings):
            self.connection.close()
            raise InputError(
                f"{path} watches another calibrator, or with other settings: a state goes on with "
                "those that it began with. Give another --state."
            )
        self.identity = identity

    @property
    def state(self) -> State:
        """The state as it is now."""
        with self._named():
            return from_json(self._content()["state"])

    def add_answers(
        self,
        ids: Sequence[str],
        batch: Batch,
        keys: Sequence[str] | None = None,
        choices: Sequence[int] | None = None,
    ) -> Added:
        """Watch answers in their order; those of known ids are left out and counted.

        `keys` [n] are what answers share (null: their ids), of which the first one is watched;
        `choices` [n] are their numbers among their request's choices (null: each is the only one),
        of which that with number 0 is.
        """
        added, places = Added(), []
        rows = list(zip(ids, *map(_plain, vars(batch).values()), strict=True))
        with self._named(), self._transaction():
            state = from_json(self._content()["state"])
            new: dict[str, tuple[float | None, ...]] = {}
            for place, (name, *values) in enumerate(rows):
                known = new.get(name) or self._values(name)
                if known is None:
                    new[name] = tuple(values)
                    places.append(place)
                else:
                    added.repeated += known == tuple(values)
                    added.contradicting += known != tuple(values)
            keys, choices = keys or ids, choices or [0] * len(ids)
            told = [keys[place] for place in places], [choices[place] for place in places]
            added.new, added.watched = len(new), self._watch(state, new, *told)
        return added

    def add_in_parts(
        self, ids: Sequence[str], batch: Batch, told: Sequence[tuple[tuple[str, int], str | None]]
    ) -> Added:
        """As `add_answers`, some at a time; `told` are, of each, `choice_of` and `key_of`."""
        total = Added()
        keys = [key or request for (request, _), key in told]
        choices = [number for (_, number), _ in told]
        for first in range(0, len(ids), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            total += self.add_answers(ids[part], batch[part], keys[part], choices[part])
        return total

    def add_given(
        self,
        ids: Sequence[str],
        batch: Batch,
        texts: Sequence[bytes],
        most: int | None,
        keys: Sequence[str],
        choices: Sequence[int],
    ) -> int:
        """Watch answers as they are given, as `add_answers` does, and keep their `texts` (JSON
        objects, empty where there is none) where those of the newest `most` are kept.

        Each counts: one whose id is known is named `id@place`, by its place among all answers, and
        so is what it shares with others where that is its id. Returns how many were.
        """
        new: dict[str, tuple[float | None, ...]] = {}
        own_keys = []
        with self._named(), self._transaction():
            state = from_json(self._content()["state"])
            rows = zip(ids, keys, *map(_plain, vars(batch).values()), strict=True)
            for place, (given, key, *values) in enumerate(rows, state.seen + 1):
                name = given
                while name in new or self._values(name) is not None:
                    name = f"{name}@{place}"
                new[name] = tuple(values)
                own_keys.append(name if key == given else key)
            self._watch(state, new, own_keys, choices)
            if most is not None:
                pairs = zip(new, texts, strict=True)
                own = {name: texts_table.with_id(name, text) for name, text in pairs if text}
                texts_table.store_texts(self.connection, own, most)
        return sum(own != given for own, given in zip(new, ids, strict=True))

    def _watch(
        self,
        state: State,
        new: Mapping[str, tuple[float | None, ...]],
        keys: Sequence[str],
        choices: Sequence[int],
    ) -> int:
        """Store new answers and the state after them; returns how many of them are watched."""
        now, stored, going = time.time(), [], []
        for place, (name, values) in enumerate(new.items()):
            key, first = keys[place], choices[place] == 0
            watched = first and (key == name or self._take(key, "answer"))
            shared = None if key == name else key
            stored.append((name, state.seen + place + 1, now, *values, shared, watched))
            going += [values] if watched else []
        self.connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", stored)
        columns = np.array(going, dtype=float).reshape(len(going), 3).T
        state = replace(watch(state, Batch(*columns)), seen=state.seen + len(new))
        state = self._judge(state, [name for name in new if self._label(name) is not None])
        self._save(state, self.identity)
        self._remember(state, now)
        return len(going)

    def add_labels(self, labels: Sequence[tuple[str, bool]]) -> Added:
        """Judge kept answers by labels, in the order of the answers, as wrong ones may have been
        told sooner; the first label of an answer counts.

        Labels of answers that were not seen yet wait for them.
        """
        added, new = Added(), []
        with self._named(), self._transaction():
            for name, correct in labels:
                known = self._label(name)
                if known is None:
                    self.connection.execute(
                        "INSERT INTO labels VALUES (?, ?, ?)", (name, int(correct), WAITING)
                    )
                    new.append(name)
                elif known == correct:
                    added.repeated += 1
                else:
                    added.contradicting += 1
            added.new = len(new)
            state = self._judge(from_json(self._content()["state"]), new)
            self._save(state, self.identity)
            self._remember(state, time.time())
        return added

    def counts(self) -> dict[str, int]:
        """How many answers were kept, decided and without confidence, and labels by use."""
        with self._named():
            kept, decided, unknown = self.connection.execute(
                "SELECT coalesce(sum(kept), 0), count(kept), count(*) - count(probability) "
                "FROM answers"
            ).fetchone()
            labels = self.connection.execute("SELECT used, count(*) FROM labels GROUP BY used")
            found = {"kept": int(kept), "decided": decided, "unknown": unknown}
            return found | dict.fromkeys(USES, 0) | dict(labels.fetchall())

    def block_length(self) -> int | None:
        """How long blocks of answers like the newest must be, as `evidence.block_length`."""
        newest = self.rows(
            "SELECT probability FROM answers WHERE watched AND probability IS NOT NULL "
            "ORDER BY time DESC, place DESC LIMIT ?",
            (NEWEST,),
        )
        return block_length(np.array(newest[::-1], dtype=float).ravel())

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple]:
        """The rows of a query."""
        with self._named():
            return self.connection.execute(query, values).fetchall()

    def close(self) -> None:
        self.connection.close()

    def _judge(self, state: State, names: Sequence[str]) -> State:
        """The state after the waiting labels of those of these answers that were seen."""
        seen, wrong = [], []
        for name in names:
            found = "SELECT place, coalesce(key, id), kept FROM answers WHERE id = ?"
            seen += [(*row, name) for row in self.connection.execute(found, (name,))]
        for _, key, is_kept, name in sorted(seen):
            used = NOT_KEPT
            if is_kept == 1:
                used = USED if self._take(key, "label") else SAME_KEY
            self.connection.execute("UPDATE labels SET used = ? WHERE id = ?", (used, name))
            if used == USED:
                wrong.append(not self._label(name))
        return judge(state, np.array(wrong, dtype=bool))

    def _values(self, name: str) -> tuple[float | None, ...] | None:
        return self.connection.execute(
            "SELECT probability, length, kept FROM answers WHERE id = ?", (name,)
        ).fetchone()

    def _take(self, key: str, what: str) -> bool:
        """Whether a key had no answer, or label, until now; it has from now on."""
        taken = self.connection.execute("INSERT OR IGNORE INTO taken VALUES (?, ?)", (key, what))
        return taken.rowcount == 1

    def _label(self, name: str) -> bool | None:
        found = self.connection.execute("SELECT correct FROM labels WHERE id = ?", (name,))
        row = found.fetchone()
        return None if row is None else bool(row[0])

    def _remember(self, state: State, now: float) -> None:
        """The evidence at this place, for pictures."""
        evidence = {name: one.total for name, one in state.monitors.items()}
        told = json.dumps(evidence | {"labels": state.errors.total})
        self.connection.execute(
            "INSERT OR REPLACE INTO history VALUES (?, ?, ?)", (state.seen, now, told)
        )

    def _content(self) -> Mapping[str, Any] | None:
        found = self.connection.execute("SELECT content FROM state").fetchone()
        return None if found is None else json.loads(found[0])

    def _save(self, state: State, identity: str) -> None:
        content = json.dumps({"identity": identity, "state": as_json(state)})
        self.connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (content,))

    def _require_current(self) -> None:
        """Refuse a state of an earlier version, whose ties were broken alike in all of them."""
        tables = self.connection.execute("SELECT name FROM sqlite_master WHERE name = 'state'")
        content = self._content() if tables.fetchone() else None
        if content is not None and "seed" not in content["state"]:
            raise InputError(
                f"{self.path} is a state of an earlier version, which raises alarms by itself "
                "where all answers have one length. Make it anew from the log: tracecal watch "
                "--answers LOG --calibrator C.json --state NEW, with the options that you used."
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._require_file()
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def _require_file(self) -> None:
        """SQLite goes on writing to a file that was deleted, where nobody would find it."""
        if hasattr(self, "file") and (
            not self.path.exists() or self.path.stat().st_ino != self.file
        ):
            raise InputError(f"{self.path} was deleted or replaced.")

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path} cannot be used as a state of monitors ({error}); give a path on a "
                "disk with space, to a file that 'tracecal watch' made or to none."
            ) from error


def _make_private(path: Path) -> None:
    """Make the file, which nobody else may read; one that is there stays as it is."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        LOGGER.warning(
            "%s, which holds what users ask, may be read by others: chmod 600 changes that", path
        )


def _plain(values: np.ndarray) -> list[float | None]:
    """Numbers as SQLite stores them; null for NaN."""
    return [None if np.isnan(one) else float(one) for one in values]


# What monitors see of answers: the values of a fit that left answers to compare with.


def watched(
    answers: pl.DataFrame, fitted: Fitted, error_rate: float | None, task: str | None = None
) -> Batch:
    """What is watched of answers (columns of `RECORDS`); raises `InputError` as scoring does."""
    scored = score_answers(answers, fitted, error_rate, task)
    keep = scored["keep"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    columns = list(fitted.inputs)
    x = compute_inputs(answers, columns).select(pl.col(columns).fill_null(np.nan)).to_numpy()
    length = answers["surprisal"].list.len().cast(pl.Float64).fill_null(np.nan).to_numpy()
    return of_inputs(x, length, fitted, keep)


def of_inputs(x: np.ndarray, length: np.ndarray, fitted: Fitted, keep: np.ndarray) -> Batch:
    """What is watched of answers with inputs x [n, d] (NaN: not known), a length and a `keep` [n].

    The probability is that of the tested fit, as the reference's is, and not the one of all
    labels that users get: answers that a fit has seen are unlike any new ones.
    """
    known = ~np.isnan(x).any(1)
    probability = np.full(len(x), np.nan)
    probability[known] = (fitted.tested_fit or fitted.final).predict(x[known])
    return Batch(probability, np.where(known, length, np.nan), keep)


def choice_of(name: str, row: Mapping[str, Any]) -> tuple[str, int]:
    """The request of an answer and its number among the choices, from its id and its row.

    The proxy names an answer by its request, and choices after the first with '#' and the number.
    """
    request, _, number = name.rpartition("#")
    response = row.get("response")
    if isinstance(response, dict) and response.get("id") == request and number.isdecimal():
        return request, int(number)
    return name, 0


def key_of(row: Mapping[str, Any], one_per: str | None) -> str | None:
    """A hash of the value at a path of an answer's row, such as request.user; null: there is none.

    A state holds it in place of the value, which may be a text or a name.
    """
    value = None if one_per is None else value_at(row, one_per)
    if value is None:
        return None
    told = json.dumps([one_per, value], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def identity(fitted: Fitted, error_rate: float | None) -> str:
    """What tells a calibrator and its threshold from others, in hexadecimal digits."""
    told = {
        "estimator": fitted.estimator,
        "fit": as_json_of_fits(fitted.tested_fit or fitted.final),
        "error_rate": error_rate,
        "threshold": None if error_rate is None else fitted.thresholds[error_rate],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


NAMES = {"kept": "share kept", "unknown": "share without confidence"}  # of monitors, where longer


def alarm_settings(fitted: Fitted, watching: Watching, error_rate: float | None) -> AlarmSettings:
    """What is watched of a calibrator; raises `InputError` where it was not tested for the rate, or
    is not of whole answers.
    """
    if fitted.fitted_on.parts is not None:
        raise InputError(
            "the calibrator is of parts of answers, which are not watched: give one of whole ones."
        )
    if error_rate is not None and (why := fitted.why_not(error_rate)) is not None:
        LOGGER.warning("no answer is kept, so the share kept and labels are not watched: %s", why)
        error_rate = None
    return AlarmSettings(**vars(watching) | {"error_rate": error_rate})


def sentences(state: State) -> Iterator[str]:
    """What each alarm says."""
    settings = state.settings
    for name, monitor in state.alarms.items():
        if name == ERROR:
            yield (
                f"the error rate among kept answers is above {settings.error_rate:g}, by "
                f"{monitor.alarm} labels (a false alarm has a chance of {settings.chance:g})"
            )
        else:
            what = NAMES.get(name, name)
            yield (
                f"the {what} changed: noticed at answer {monitor.alarm:,} (a false alarm comes at "
                f"most once in {settings.answers_per_alarm:,} answers on average)"
            )


def alike(store: Store) -> str | None:
    """That neighbours are alike, and what to do; null where nothing says so."""
    state = store.state
    settings, found = state.settings, state.neighbours.alarm
    if found is None:
        return None
    of = f"answers (--block {settings.block})" if settings.block > 1 else "answers"
    told = (
        f"neighbouring {of} are alike, noticed at answer {found:,} (a chance of at most "
        f"{1 / ALIKE:g} where they are not), so that false alarms come more often than stated: "
        "begin a new --state with --one-per what they share"
    )
    length, most = store.block_length(), settings.answers_per_alarm // SHORTEST
    length = None if length is None else max(length, 2 * settings.block)
    if length is None:
        return f"{told}; they are alike too long for blocks, as in a drift or a daily cycle"
    more = f" and --answers-per-alarm {SHORTEST * length}" if length > most else ""
    few = "" if state.answers >= ENOUGH else f"; after {ENOUGH:,} answers this is known better"
    return f"{told}, or with --block {length}{more}{few}"


def went_in(state: State) -> str:
    """How many of the answers are watched, and what is taken for granted of them."""
    shared = f"value of {state.settings.one_per}" if state.settings.one_per else "request"
    blocks = f"blocks of {state.settings.block} " if state.settings.block > 1 else ""
    return (
        f"{state.answers:,} of {state.seen:,} answers watched, one of each {shared}; false alarms "
        f"are as rare as stated where {blocks or 'these '}are independent of one another"
    )


def without_reference(fitted: Fitted, watching: Watching) -> Iterator[str]:
    """What is not noticed for want of the calibration's own answers."""
    if watching.block > 1:
        yield (
            f"means of --block {watching.block} answers have no reference: what was unlike the "
            "calibration from the start is not noticed"
        )
    elif not fitted.reference.probability:
        yield (
            "the calibrator holds no answers to compare with, so that only changes within this "
            "traffic are noticed; calibrate again to change that"
        )


def require_keys(keys: list[str | None], one_per: str) -> None:
    """Raise `InputError` where no row has a key, and say of how many that is so."""
    if lacking := keys.count(None):
        told = f"have nothing at --one-per {one_per}"
        if lacking == len(keys):
            raise InputError(f"all {lacking} answers {told}: name a path of their rows.")
        LOGGER.warning("%d answers %s: each counts by itself", lacking, told)


def read_labels(path: str | Path) -> tuple[list[tuple[str, bool]], list[str]]:
    """Pairs of an answer's id and whether it is right, and why other lines are invalid.

    JSON Lines with `id` (or `example_id`) and `correct`; lines whose `correct` is null are unsure
    and count as invalid.
    """
    require_regular(path, MOST_BYTES)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as labels ({error}).") from error
    labels, wrong = [], []
    for place, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parsed_json(line)
            name = row.get("id", row.get("example_id"))
            if not isinstance(name, str | int) or not isinstance(row.get("correct"), bool):
                raise ValueError("expected 'id', and 'correct' that is true or false")
            labels.append((str(name), row["correct"]))
        except (ValueError, AttributeError) as error:
            wrong.append(f"line {place}: {error}")
    return labels, wrong


def summary(store: Store, told: Added, judged: Added) -> str:
    """What is printed at the end."""
    state, counts = store.state, store.counts()
    lines = [
        went_in(state),
        f"{told.new:,} answers new, {told.watched:,} of them watched; {counts['unknown']:,} in all "
        f"without confidence; {counts['kept']:,} of {counts['decided']:,} decided ones kept",
    ]
    if told.repeated or told.contradicting:
        lines.append(
            f"left out: {told.repeated:,} answers of known ids, {told.contradicting:,} of known "
            "ids with other values"
        )
    if any((counts[USED], counts[WAITING], counts[NOT_KEPT], judged.repeated)):
        lines.append(
            f"labels: {counts[USED]:,} of kept answers, {counts[SAME_KEY]:,} of others that share "
            f"what one judged before has, {counts[NOT_KEPT]:,} of answers that were not kept, "
            f"{counts[WAITING]:,} of answers not seen yet; {judged.repeated:,} given before, "
            f"{judged.contradicting:,} that contradict an earlier one, which counts"
        )
    limit = state.settings.limit
    for name, one in state.monitors.items():
        lines.append(f"{NAMES.get(name, name)}: {_evidence(one.total, limit)}")
    if state.settings.error_rate is not None:
        enough = 1 / state.settings.chance
        lines.append(f"{ERROR}: {_evidence(state.errors.total, enough)}")
    lines += [f"WARNING: {warning}"] if (warning := alike(store)) else []
    lines += [f"ALARM: {one}" for one in sentences(state)] or ["no alarm"]
    return "\n".join(lines)


def _evidence(found: float, limit: float) -> str:
    shown = f"{found:,.1f}" if found < 1e6 else f"{found:.1e}"
    return f"evidence {shown}, alarm at {limit:,.0f}"
