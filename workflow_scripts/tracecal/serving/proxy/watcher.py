"""The monitors behind the proxy: a thread that watches what was answered, and withholds `keep`.

Nothing of it is on an answer's way but a queue: what fails here leaves answers as they are, and the
log, `/metrics` and `/watch` say that nothing is watched.
"""

import sqlite3
import threading
import uuid
from collections import Counter, deque
from typing import NamedTuple

import numpy as np
import orjson

from tracecal.calibrator.schema import Fitted
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.serving.monitoring.settings import Watching
from tracecal.serving.monitoring.traffic import (
    Store,
    alarm_settings,
    alike,
    identity,
    key_of,
    of_inputs,
    sentences,
)
from tracecal.serving.proxy.settings import Settings
from tracecal.serving.proxy.wire import Object

INTERVAL = 0.5  # seconds between two batches
MOST_WAITING, MOST_AT_ONCE = 20_000, 1000  # answers
MOST_TEXT = 2**26  # bytes of texts that wait; while there are more the texts of others are not kept
Inputs = tuple[np.ndarray, int]  # a calibrator's inputs [d] of an answer, and its length


class Waiting(NamedTuple):
    """An answer that is not watched yet, and which choice of its request it is.

    `row` is empty where texts are not kept.
    """

    name: str
    key: str
    choice: int
    inputs: Inputs | None
    keep: float
    row: bytes


class Watcher:
    """Watches answers with the state at `settings.watch`; raises `InputError` where it cannot.

    `reason` says why answers are no longer kept, null where no alarm was raised; `failure` why
    nothing is watched; `warning` that neighbours are alike. `answers` counts them by what was told
    of keeping them, `repeated` those whose id their server had given before.
    """

    def __init__(self, fitted: Fitted, error_rate: float | None, settings: Settings) -> None:
        self.fitted, self.error_rate, self.path = fitted, error_rate, str(settings.watch)
        options = {name: getattr(settings, name) for name in Watching.model_fields}
        self.alarm_settings = alarm_settings(fitted, Watching(**options), error_rate)
        self.keep_texts = settings.keep_texts
        self.withholds = settings.on_alarm == "withhold"
        self.reason: str | None = None
        self.failure: str | None = None
        self.warning: str | None = None
        self.answers: Counter[str] = Counter()
        self.unwatched = self.repeated = 0
        self._waiting: deque[Waiting] = deque()
        self._held, self._counting = 0, threading.Lock()  # bytes of the texts that wait
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        store = self.opened()
        self.state = store.state
        self._alarmed(store)
        store.close()

    def opened(self) -> Store:
        """The state, for the thread that asks for it."""
        own = identity(self.fitted, self.error_rate)
        private = self.keep_texts is not None
        return Store(self.path, own, self.alarm_settings, self.fitted.reference, private)

    def start(self) -> None:
        """Watch from now on."""
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch what is waiting, and end."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(10 * INTERVAL)

    def seen(
        self, answer: Object, request: Object, confidence: Object, inputs: Inputs | None
    ) -> Object:
        """An answer's confidence, without `keep` after an alarm; null `inputs` are not known."""
        keep = confidence["keep"]
        kind = "unknown" if confidence["probability"] is None else str(keep).lower()
        self.answers[kind] += 1
        if len(self._waiting) < MOST_WAITING:
            name, number = _name(answer)
            own = f"{name}#{number}" if number else name
            row = {"request": request, "response": answer}
            key = key_of(row, self.alarm_settings.one_per) or name
            kept = np.nan if keep is None else float(keep)
            self._waiting.append(Waiting(own, key, number, inputs, kept, self._text(row)))
        else:
            self.unwatched += 1
        if self.reason is None or not self.withholds or keep is None:
            return confidence
        return confidence | {"keep": None, "reason": self.reason}

    def _text(self, row: Object) -> bytes:
        """A row that `answers` reads, as JSON without its id; empty where it is not kept."""
        if self.keep_texts is None or self._held > MOST_TEXT:
            return b""
        text = orjson.dumps(row)
        with self._counting:
            self._held += len(text)
        return text

    def _run(self) -> None:
        store = None
        while True:
            ending = self._ending.wait(INTERVAL)
            try:
                store = store or self.opened()
                while self._waiting:
                    self._flush(store)
                self.state = store.state  # of other processes too
                self._alarmed(store)
                self._failed(None)
            except InputError as error:
                self._failed(str(error))
            except (sqlite3.Error, ArithmeticError, ValueError) as error:
                self._failed(f"the monitors failed ({type(error).__name__})")
            if ending:
                return

    def _flush(self, store: Store) -> None:
        rows = [self._waiting[place] for place in range(min(len(self._waiting), MOST_AT_ONCE))]
        names, keys, choices, inputs, keep, texts = zip(*rows, strict=True)
        unknown = np.full(len(self.fitted.inputs), np.nan), np.nan
        x, lengths = map(np.array, zip(*(one or unknown for one in inputs), strict=True))
        batch = of_inputs(x, lengths, self.fitted, np.array(keep))
        repeated = store.add_given(names, batch, texts, self.keep_texts, keys, choices)
        if repeated and not self.repeated:
            LOGGER.warning(
                "the server repeats ids of answers, so that a label by such an id is of its first "
                "answer: others are named by their place, too (id@place)"
            )
        self.repeated += repeated
        for _ in rows:  # only now: what could not be written is tried again
            self._waiting.popleft()
        with self._counting:
            self._held -= sum(map(len, texts))

    def _alarmed(self, store: Store) -> None:
        if self.warning is None and self.state.neighbours.alarm is not None:
            self.warning = alike(store)
            LOGGER.warning("%s", self.warning)
        told = "; ".join(sentences(self.state))
        if told and self.reason is None:
            what = "answers are no longer kept" if self.withholds else "answers are kept as before"
            LOGGER.warning("ALARM: %s; %s", told, what)
        self.reason = told or None

    def _failed(self, failure: str | None) -> None:
        if failure != self.failure:
            told = f"does not watch: {failure}" if failure else "watches again"
            LOGGER.warning("the proxy %s", told)
        self.failure = failure


def _name(answer: Object) -> tuple[str, int]:
    """The id of an answer, one of its own where it has none, and the number of its choice."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    number = first.get("index") if isinstance(first, dict) else None
    name = answer.get("id")
    named = isinstance(name, str) and name
    return name if named else uuid.uuid4().hex, number if isinstance(number, int) else 0
