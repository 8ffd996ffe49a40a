"""Monitors of answers and labels."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tracecal.answers.reading import Reading
from tracecal.answers.sources import Answers, answers_in
from tracecal.answers.wrong_row import describe_wrong_rows
from tracecal.calibrator.calibrator import Calibrator, calibrator_in
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse
from tracecal.serving.monitoring import traffic


class Monitors:
    """Say when answers are no longer like the calibration's, as ``tracecal watch``.

    Alarms hold however often you look. The state is a file: given again, it goes on where it ended.
    What alarms assume of neighbouring answers is in docs/guides/watch.md.

    Parameters
    ----------
    calibrator : path or Calibrator
        Whose labelled answers are compared with.
    state : path
        SQLite file, made if absent.
    error_rate : float, optional
        Of the answers kept, whose share and labels are then watched.
    estimator : str, optional
        One of the calibrator's; by default the recommended one.
    **watching
        ``answers_per_alarm``, ``chance``, ``block`` and ``one_per``, as of ``tracecal watch``.

    Raises
    ------
    InputError
        Where the state is another calibrator's, or began with other settings.

    Examples
    --------
    >>> import tracecal
    >>> with tracecal.Monitors("C.json", "state.db", error_rate=0.3) as monitors:
    ...     watched = monitors.watch("new.jsonl").watched
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
        **watching: Any,
    ) -> None:
        self._calibrator = calibrator_in(calibrator)
        self._fitted = self._calibrator.fitted(estimator)
        self._settings = parse(traffic.Watching, watching, "options")
        self._state, self._error_rate = state, error_rate
        for warning in traffic.without_reference(self._fitted, self._settings):
            LOGGER.warning("%s", warning)
        self._alarms = traffic.alarm_settings(self._fitted, self._settings, error_rate)
        self._told, self._judged = traffic.Added(), traffic.Added()
        if Path(state).exists():
            _ = self._store  # refuses another's

    @cached_property
    def _store(self) -> traffic.Store:
        """The state, which is made when the first answers or labels have been read."""
        known = traffic.identity(self._fitted, self._error_rate)
        return traffic.Store(self._state, known, self._alarms, self._fitted.reference)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the state."""
        if "_store" in vars(self):
            self._store.close()

    def watch(
        self, answers: Answers, *, task: str | None = None, reading: Reading | None = None
    ) -> traffic.Added:
        """Watch answers in their order; those of known ids are left out and counted.

        Parameters
        ----------
        answers : path, frame or rows
            As of `read_answers`; invalid rows are skipped.
        task, reading
            As of `Calibrator.score`.

        Returns
        -------
        tracecal.serving.monitoring.traffic.Added
            How many were ``new``, ``watched``, ``repeated`` or ``contradicting``.

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
        one_per = self._settings.one_per
        options = self._calibrator.reading((reading or Reading()).with_defaults(wrong_rows="skip"))
        found = answers_in(
            answers,
            options,
            keep_rows=lambda name, row: (
                traffic.choice_of(name, row),
                traffic.key_of(row, one_per),
            ),
        )
        if one_per is not None:
            traffic.require_keys([key for _, key in found.rows], one_per)
        task = task or found.metadata.get("task")
        batch = traffic.watched(found.frame, self._fitted, self._error_rate, task)
        ids = found.frame["example_id"].to_list()
        told = self._store.add_in_parts(ids, batch, found.rows)
        self._told += told
        return told

    def judge(self, labels: str | Path | Mapping[str, bool]) -> traffic.Added:
        """Add labels of kept answers; a label waits until its answer is seen.

        Parameters
        ----------
        labels : path, or mapping of str to bool
            JSON Lines with ``id`` and ``correct``, or whether the answer of an id is correct.

        Returns
        -------
        tracecal.serving.monitoring.traffic.Added

        Examples
        --------
        >>> import tracecal
        >>> with tracecal.Monitors("C.json", "judged.db", error_rate=0.3) as monitors:
        ...     monitors.judge({"a0001": True}).new
        1
        """
        if isinstance(labels, Mapping):
            pairs = list(labels.items())
        else:
            pairs, wrong = traffic.read_labels(labels)
            if wrong:
                LOGGER.warning("%s: left out %s", labels, describe_wrong_rows(wrong))
        told = self._store.add_labels(pairs)
        self._judged += told
        return told

    @property
    def alarms(self) -> list[str]:
        """What each alarm says, a sentence each; empty where there is none."""
        return list(traffic.sentences(self._store.state))

    def summary(self) -> str:
        """What the command prints, of all that these monitors were given."""
        return traffic.summary(self._store, self._told, self._judged)
