"""The monitors behind the proxy: a thread that watches the answers, and withholds `keep`.

An answer waits for nothing but a queue. A failure here leaves answers as they are: the log and
`/metrics` say that nothing is watched.
"""

import sqlite3
import threading
import uuid
from collections import Counter, deque
from typing import NamedTuple

import numpy as np

from tracecal.calibrator.predictor import Predictor, Target
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.monitoring.database import StateDatabase
from tracecal.monitoring.messages import alarm_sentences, dependence_warning
from tracecal.monitoring.monitor_settings import MonitorSettings
from tracecal.monitoring.traffic import (
    alarm_settings,
    batch_of_inputs,
    calibrator_identity,
    key_of,
    question_key,
)
from tracecal.serving.json_bodies import Object, objects_in
from tracecal.serving.proxy_settings import ProxySettings

INTERVAL = 0.5  # seconds between two batches
MAX_QUEUED, BATCH_SIZE = 20_000, 1000  # answers
Inputs = tuple[np.ndarray, int]  # a calibrator's inputs [d] of an answer, and its length


class QueuedAnswer(NamedTuple):
    """An answer that is not watched yet.

    `key` is what it shares with others, and `choice` its number among its request's choices.
    """

    example_id: str
    key: str
    choice: int
    inputs: Inputs | None
    keep: float  # 1 or 0; NaN where not decided


class Watcher:
    """Watches answers with the state file of `ProxySettings.watch`.

    `reason` says why answers are no longer kept, None before an alarm; `failure` why nothing is
    watched, None while all is well; `warning` that neighbours are alike. `keeps` counts answers by
    their `keep`, `n_unwatched` those that did not fit the queue, and `n_repeated` those whose id
    their server had given before. Raises `InputError` where the state cannot be used.
    """

    def __init__(
        self, predictor: Predictor, target: Target | None, settings: ProxySettings
    ) -> None:
        self.predictor, self.target, self.path = predictor, target, str(settings.watch)
        options = {name: getattr(settings, name) for name in MonitorSettings.model_fields}
        self.alarm_settings = alarm_settings(predictor, MonitorSettings(**options), target)
        self.withholds = settings.on_alarm == "withhold"
        self.reason: str | None = None
        self.failure: str | None = None
        self.warning: str | None = None
        self.keeps: Counter[str] = Counter()
        self.n_unwatched = self.n_repeated = 0
        self._queue: deque[QueuedAnswer] = deque()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        database = self.open_database()
        self.state = database.state
        self._note_alarms()
        database.close()

    def open_database(self) -> StateDatabase:
        """Open the state, for the calling thread."""
        return StateDatabase(
            self.path,
            calibrator_identity(self.predictor, self.target),
            self.alarm_settings,
            self.predictor.reference,
        )

    def start(self) -> None:
        """Watch in a thread from now on."""
        self._thread = threading.Thread(target=self.run, name="watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch the queued answers, and end the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(4 * INTERVAL)

    def observe(
        self,
        answer: Object,
        request: Object,
        confidence: Object,
        inputs: Inputs | None,
        question: str | None = None,
    ) -> Object:
        """Queue an answer of one choice; return its confidence, without `keep` after an alarm.

        `inputs` are None where the answer has no probability, and `question` where it is unknown.
        """
        keep = confidence["keep"]
        is_unknown = confidence["probability"] is None
        self.keeps["unknown" if is_unknown and keep is None else str(keep).lower()] += 1
        if len(self._queue) < MAX_QUEUED:
            request_id, choice = _request_and_choice(answer)
            row = {"request": request, "response": answer}
            # What it shares with others of which the first is watched.
            key = key_of(row, self.alarm_settings.one_per)
            if self.alarm_settings.by_question:
                key = question_key(question, None, request_id)
            queued = QueuedAnswer(
                example_id=f"{request_id}#{choice}" if choice else request_id,
                key=key or request_id,
                choice=choice,
                inputs=inputs,
                keep=np.nan if keep is None else float(keep),
            )
            self._queue.append(queued)
        else:
            self.n_unwatched += 1
        if self.reason is None or not self.withholds or keep is None or is_unknown:
            return confidence
        return confidence | {"keep": None, "reason": self.reason}

    def run(self) -> None:
        """Watch batch by batch until `stop` is called."""
        database = None
        while True:
            is_last = self._stopping.wait(INTERVAL)
            try:
                database = database or self.open_database()
                while self._queue:
                    self._flush(database)
                self.state = database.state  # of other processes too
                self._note_alarms()
                self._note_failure(None)
            except InputError as error:
                self._note_failure(error.args[0])
            except (sqlite3.Error, ArithmeticError, ValueError) as error:
                self._note_failure(f"the monitors failed ({type(error).__name__})")
            if is_last:
                return

    def _flush(self, database: StateDatabase) -> None:
        """Write a batch of the queue to the state; what cannot be written stays queued."""
        queued = [self._queue[row] for row in range(min(len(self._queue), BATCH_SIZE))]
        ids, keys, choices, inputs, keep = zip(*queued, strict=True)
        unknown = np.full(len(self.predictor.columns), np.nan), np.nan
        x, lengths = map(np.array, zip(*(each or unknown for each in inputs), strict=True))
        batch = batch_of_inputs(x, lengths, self.predictor, np.array(keep))
        n_repeated = database.add_served(ids, batch, keys, choices)
        if n_repeated and not self.n_repeated:
            LOGGER.warning(
                "the server repeats ids of answers, so that a label by such an id counts for its "
                "first answer: others are named by their place, too (id@place)"
            )
        self.n_repeated += n_repeated
        for _ in queued:
            self._queue.popleft()

    def _note_alarms(self) -> None:
        if self.warning is None and self.state.dependence_alarm is not None:
            self.warning = dependence_warning(self.state)
            LOGGER.warning("%s", self.warning)
        alarms = "; ".join(alarm_sentences(self.state))
        if alarms and self.reason is None:
            effect = "no longer kept" if self.withholds else "kept as before"
            LOGGER.warning("ALARM: %s; answers are %s", alarms, effect)
        self.reason = alarms or None

    def _note_failure(self, failure: str | None) -> None:
        if failure != self.failure:
            status = f"does not watch: {failure}" if failure else "watches again"
            LOGGER.warning("the proxy %s", status)
        self.failure = failure


def _request_and_choice(answer: Object) -> tuple[str, int]:
    """Return the id of an answer's request, made up where it has none, and its choice's number."""
    number = next(iter(objects_in(answer.get("choices"))), {}).get("index")
    request_id = answer.get("id")
    is_named = isinstance(request_id, str) and request_id
    return (request_id if is_named else uuid.uuid4().hex, number if isinstance(number, int) else 0)
