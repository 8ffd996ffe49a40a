"""Monitors of answers and labels: `tracecal.Monitors`, in Python what `tracecal watch` does.

1. `Monitors(calibrator, state)` opens a state file, or makes it.
2. `watch` adds answers and `judge` adds labels, as often as they come.
3. `alarms` and `summary` say what was noticed.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

import polars as pl

from tracecal.answers.answers import Answers, Source
from tracecal.answers.labels import read_labels
from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.answers.record import QUESTION
from tracecal.calibrator.calibrator import Calibrator, calibrator_in
from tracecal.calibrator.scoring import score_source
from tracecal.errors import InputError, some_of
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse
from tracecal.monitoring import messages, monitor_settings, traffic
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.changes import WatchedFile, change_lines
from tracecal.monitoring.database import AddedCounts, StateDatabase

# What says whether answers count once: their request, their number among its choices, and a key.
SOURCES = {"request": pl.String, "choice": pl.Int64, "key": pl.String}


class Monitors:
    """Raise an alarm when answers drift away from the calibration's.

    You may look after every answer: the rate of false alarms holds however often you look. The
    state is a file, and with the same file the next call goes on where this one ended. Alarms hold
    for answers that are independent of one another: where neighbours are alike, set `one_per`
    (docs/guides/proxy.md).

    Parameters
    ----------
    calibrator : path or Calibrator
        The calibrator whose labelled answers new ones are compared with.
    state : path
        SQLite file of the monitors, made if absent.
    error_rate : float, optional
        Target error rate of the answers to keep, whose share and labels are watched.
    estimator : str, optional
        One of the calibrator's; by default the recommended one.
    answers_per_alarm : int
        One false alarm comes in this many answers on average; at least 100.
    chance : float
        Chance of ever raising a false alarm about the error rate.
    one_per : str, optional
        Path of a row, such as ``request.user``: one answer of each value is watched. By default the
        first answer to each question is, or every answer where the guarantee counts answers.

    Raises
    ------
    InputError
        Where the state belongs to another calibrator or other settings, or a setting is wrong.

    Examples
    --------
    >>> import tracecal
    >>> with tracecal.Monitors("C.json", "state.db", error_rate=0.3) as monitors:
    ...     n_watched = monitors.watch("new.jsonl").watched
    ...     monitors.alarms
    []
    """

    def __init__(
        self,
        calibrator: str | Path | Calibrator,
        state: str | Path,
        *,
        error_rate: float | None = None,
        estimator: str | None = None,
        answers_per_alarm: int = monitor_settings.ANSWERS_PER_ALARM,
        chance: float = monitor_settings.ERROR_ALARM_CHANCE,
        one_per: str | None = None,
    ) -> None:
        options = {"answers_per_alarm": answers_per_alarm, "chance": chance, "one_per": one_per}
        self._settings = parse(monitor_settings.MonitorSettings, options, "options")
        self._calibrator = calibrator_in(calibrator)
        self._fitted = self._calibrator.predictor(estimator)
        self._state, self._error_rate = state, error_rate
        if warning := messages.reference_warning(self._fitted):
            LOGGER.warning("%s", warning)
        self._alarm_settings = traffic.alarm_settings(self._fitted, self._settings, error_rate)
        self._answer_counts, self._label_counts = AddedCounts(), AddedCounts()
        self._file: WatchedFile | None = None
        if Path(state).exists():
            _ = self._database  # refuses another calibrator's state now

    @cached_property
    def _database(self) -> StateDatabase:
        """The state, made when the first answers or labels have been read."""
        identity = traffic.calibrator_identity(self._fitted, self._error_rate)
        reference = self._fitted.reference
        return StateDatabase(self._state, identity, self._alarm_settings, reference)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the state.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Monitors("C.json", "closed.db").close()
        """
        if "_database" in vars(self):
            self._database.close()

    def watch(
        self, answers: Source, *, task: str | None = None, reading: Reading | None = None
    ) -> AddedCounts:
        """Watch answers in their order; skip and count those of known ids.

        Parameters
        ----------
        answers : path, frame or rows
            Answers in any format that `read_answers` reads.
        task : str, optional
            The calibrator's task, where the answers name it otherwise.
        reading : Reading, optional
            How rows are read; by default invalid rows are skipped.

        Returns
        -------
        tracecal.monitoring.database.AddedCounts
            How many answers were ``new``, ``watched``, ``repeated`` or ``contradicting``.

        Raises
        ------
        InputError
            As `Calibrator.score`.

        Examples
        --------
        >>> import tracecal
        >>> with tracecal.Monitors("C.json", "first.db") as monitors:
        ...     monitors.watch("new.jsonl").new
        6
        """
        one_per, by_question = self._settings.one_per, self._alarm_settings.by_question
        options = self._calibrator.reading(
            (reading or USUAL_READING).with_defaults(wrong_rows="skip")
        )

        def keep(some: Answers, scored: pl.DataFrame) -> pl.DataFrame:
            batch = pl.DataFrame(vars(traffic.batch_of_scored(some.frame, scored, self._fitted)))
            question = QUESTION if by_question else pl.lit(None, pl.String)
            rows = pl.DataFrame(some.rows, SOURCES, orient="row")
            return some.frame.select("created", question=question).hstack([*batch, *rows])

        source = score_source(
            answers,
            options,
            self._fitted,
            self._error_rate,
            task,
            keep,
            keep_rows=lambda example_id, row: (
                *traffic.request_and_choice(example_id, row),
                traffic.key_of(row, one_per),
            ),
        )
        requests, choices, keys = (source.frame[name].to_list() for name in SOURCES)
        if one_per is not None:
            traffic.require_keys(keys, one_per)
        frame = source.frame
        batch = Batch(*(frame[name].to_numpy() for name in ("probability", "length", "keep")))
        ids = frame["example_id"].to_list()
        if by_question:
            questions = frame.select("question", "group_id").rows()
            keys = [
                traffic.question_key(question, group, request)
                for (question, group), request in zip(questions, requests, strict=True)
            ]
        keys_or_requests = [key or request for key, request in zip(keys, requests, strict=True)]
        counts = self._database.add_answers(ids, batch, keys_or_requests, choices)
        self._answer_counts += counts
        self._file = WatchedFile(source.source, ids, frame["created"])
        return counts

    def judge(
        self, labels: str | Path | Mapping[str, bool | None], *, reading: Reading | None = None
    ) -> AddedCounts:
        """Add labels of kept answers; a label waits until its answer comes.

        Parameters
        ----------
        labels : path, or mapping of str to bool or None
            A file of verdicts by id (see docs/guides/labels.md; ``FILE:custom_id:verdict`` names
            the columns), or whether the answer of an id is correct. Unsure, None, counts as wrong.
        reading : Reading, optional
            How verdicts are read (``right_from``), and whether rows that cannot be are skipped.

        Returns
        -------
        tracecal.monitoring.database.AddedCounts
            How many labels were ``new``, ``repeated`` or ``contradicting``.

        Raises
        ------
        InputError
            Where the file holds no verdict, none is on an answer of the state, or a row is invalid
            and not skipped.

        Examples
        --------
        >>> import tracecal
        >>> with tracecal.Monitors("C.json", "judged.db", error_rate=0.3) as monitors:
        ...     monitors.judge({"a0001": True}).new
        1
        """
        if not isinstance(labels, Mapping):
            verdicts = read_labels(labels, reading or USUAL_READING)
            source, labels = verdicts.votes.source, verdicts.by_id
            query = "SELECT 1 FROM answers WHERE id = ?"
            if not any(self._database.query(query, (name,)) for name in labels):
                raise InputError(
                    f"{source}: none of its {len(labels)} ids ({some_of([*labels])}) belongs to an "
                    f"answer watched so far: name the columns, as in --labels {source}:ID:VERDICT."
                )
        pairs = [(example_id, correct is True) for example_id, correct in labels.items()]
        counts = self._database.add_labels(pairs)
        self._label_counts += counts
        return counts

    @property
    def alarms(self) -> list[str]:
        """A sentence for each alarm.

        Examples
        --------
        >>> import tracecal
        >>> with tracecal.Monitors("C.json", "state.db", error_rate=0.3) as monitors:
        ...     monitors.alarms
        []
        """
        return list(messages.alarm_sentences(self._database.state))

    def summary(self) -> str:
        """Return what ``tracecal watch`` prints of the calls so far.

        Returns
        -------
        str

        Examples
        --------
        >>> import tracecal
        >>> with tracecal.Monitors("C.json", "state.db", error_rate=0.3) as monitors:
        ...     print(monitors.summary().splitlines()[-1])
        no alarm
        """
        changes = change_lines(self._database, self._fitted.reference, self._file)
        return messages.summary(self._database, self._answer_counts, self._label_counts, changes)
