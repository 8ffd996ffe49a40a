"""A calibrator: fitted, stored, and what it says of answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import polars as pl
from tqdm import tqdm

from tracecal.answers.parts.parts import Parts, read_parts
from tracecal.answers.reading import Reading
from tracecal.answers.record import with_partial
from tracecal.answers.sources import Answers, answers_in
from tracecal.calibration.part_answers import labelled_parts, part_answers
from tracecal.calibrator import card as cards
from tracecal.calibrator import report as reports
from tracecal.calibrator import scoring as score
from tracecal.calibrator.fitting import FitSettings, Labelled, calibrate_answers, labelled
from tracecal.calibrator.parts import score_parts, score_response_parts
from tracecal.calibrator.schema import (
    LABELS,
    Fitted,
    FittedOn,
    default_estimator,
    fingerprints,
    from_stored,
    reading_for,
    run_on,
    stored_in,
    target_of,
)
from tracecal.calibrator.scoring import Confidence
from tracecal.errors import InputError
from tracecal.estimators.custom import CustomSource, custom_scores
from tracecal.estimators.trace_inputs import NO_CUSTOM, Custom
from tracecal.io.files import write_json, write_text
from tracecal.io.input_files import read_yaml
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse


@dataclass(frozen=True)
class Report:
    """How well each estimator predicts, and which error rates are guaranteed.

    `text` is what `tracecal calibrate` prints (as does `str`), `html` the page of its `--report`,
    both with the commands to type next where these are `typed`. `estimators` has a row per
    estimator, smallest Brier score first, with the ends of intervals; `guarantees` one per target
    error rate, with the share of answers kept.
    """

    found: reports.Found = field(repr=False)
    records: pl.DataFrame = field(repr=False)  # of the labelled answers, or of their parts
    typed: Sequence[tuple[str, str]] = ()

    @property
    def text(self) -> str:
        return reports.summary(self.found, self.typed)

    @property
    def html(self) -> str:
        return reports.render(self.found, self.typed)

    @property
    def estimators(self) -> pl.DataFrame:
        return self.found.measured

    @property
    def guarantees(self) -> pl.DataFrame:
        return self.found.error_rates

    def __str__(self) -> str:
        return self.text

    def save(
        self,
        path: str | Path,
        answers: Answers | None = None,
        *,
        reading: Reading | None = None,
    ) -> None:
        """Write the page; and for the labelled `answers` beside it one that shows them, as the
        command does, each with the probability of fits that had not seen it (`.answers.html`).
        """
        if answers is None:
            write_text(self.html, path)
            return
        from tracecal.explorer.explore import explore_labelled

        explorer = Path(path).with_suffix(".answers.html")
        source = answers_in(answers, reading, keep_rows=True)
        explore_labelled(source, explorer, Calibrator(self.found.stored), self.found.predicted)
        write_text(reports.render(self.found, self.typed, explorer.name), path)


@dataclass(frozen=True)
class Card:
    """What a calibrator's file holds, in plain words: `text` (as `str`), and the page `html`."""

    text: str
    html: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | Path) -> None:
        """Write the page."""
        write_text(self.html, path)


class Calibrator:
    """Probabilities that answers are correct, and guaranteed error rates: a calibrator's file.

    It is made by `calibrate` or read by `Calibrator.load`, and holds the fits of all estimators
    that need only an answer's trace, of which one is ``recommended``.

    Attributes
    ----------
    estimators : tuple of str
        Their ids.
    recommended : str
        The one that is used unless another is named.
    fitted_on
        What is known of the labelled answers: ``model``, ``task``, ``n``, ``base_rate``, ...

    Examples
    --------
    >>> import tracecal
    >>> calibrator = tracecal.Calibrator.load("C.json")
    >>> scored = calibrator.score("new.jsonl", error_rate=0.3)
    >>> scored.columns
    ['example_id', 'probability', 'lower', 'upper', 'keep', 'reason']
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        where: str = "the calibrator",
        custom: Custom = NO_CUSTOM,
    ) -> None:
        """For the content of a file, as `where` in messages, with the scores of `custom` estimators
        by id; raises `InputError` as `load`.
        """
        self.content, self.where, self._custom = content, where, custom
        self._fitted: dict[str, Fitted] = {}
        self._labelled: tuple[pl.DataFrame, Labelled, FitSettings] | None = None
        self.recommended: str = default_estimator(content)
        self.estimators: tuple[str, ...] = tuple(name for name in content if name != "fitted_on")
        self.fitted_on: FittedOn = self.fitted().fitted_on

    def __repr__(self) -> str:
        on = self.fitted_on
        return (
            f"<Calibrator of {on.model} for {on.task}: {on.n} labelled answers, "
            f"{len(self.estimators)} estimators, {self.recommended} recommended>"
        )

    @classmethod
    def load(cls, path: str | Path, *, estimators: CustomSource = None) -> Self:
        """Read a calibrator's file, of `save`, of ``tracecal calibrate`` or of the workflow.

        Parameters
        ----------
        path : path
            Where it is; a checksum beside it is compared.
        estimators : path or mapping, optional
            Estimators of your own that it was fitted with, as of `calibrate`.

        Returns
        -------
        Calibrator

        Raises
        ------
        InputError
            Where it is none, was changed, or is of another version of the features.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Calibrator.load("C.json").recommended
        'log_ridge'
        """
        return cls(stored_in(path), str(path), custom_scores(estimators))

    def save(self, path: str | Path) -> None:
        """Write the file that ``tracecal calibrate --output`` writes, completely or not at all.

        Parameters
        ----------
        path : path
            JSON.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Calibrator.load("C.json").save("copy.json")
        """
        write_json(self.content, path)

    def fitted(self, estimator: str | None = None) -> Fitted:
        """The fits and thresholds of one estimator, by default the recommended one.

        Parameters
        ----------
        estimator : str, optional
            One of `estimators`.

        Returns
        -------
        tracecal.calibrator.schema.Fitted

        Raises
        ------
        InputError
            Where there is none of this name.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Calibrator.load("C.json").fitted("min_prob").inputs
        ('scores.min_prob',)
        """
        name = estimator or self.recommended
        if name not in self._fitted:
            self._fitted[name] = from_stored(self.content, name, self.where, self._custom)
        return self._fitted[name]

    def _for(self, estimator: str | None, entropies: bool) -> Fitted:
        """The estimator that is asked for; where none is, one that answers without `entropies` have
        the inputs of.
        """
        fitted = self.fitted(estimator)
        if estimator is not None or entropies:
            return fitted
        other = self.fitted(default_estimator(self.content, entropies=False))
        if other.estimator != fitted.estimator:
            names = [LABELS.get(one.estimator, one.estimator) for one in (fitted, other)]
            LOGGER.warning("without entropies %s is not defined; using %s", *names)
        return other

    def reading(self, reading: Reading | None = None) -> Reading:
        """Add the vocabulary and the further columns of the fit to `reading`."""
        return reading_for(self.fitted_on, reading or Reading())

    def score(
        self,
        answers: Answers,
        *,
        error_rate: float | None = None,
        guarantee: str | None = None,
        estimator: str | None = None,
        task: str | None = None,
        parts: str | Path | Mapping[str, Any] | None = None,
        reading: Reading | None = None,
        progress: bool = False,
    ) -> pl.DataFrame:
        """Give each answer its probability of being correct, as ``tracecal score`` does.

        Parameters
        ----------
        answers : path, frame or rows
            As of `read_answers`.
        error_rate : float, optional
            Target error rate of the answers to keep, one that the calibrator was tested for.
        guarantee : str, optional
            In its place a guarantee of a cascade, such as ``"below:0.02"``, of a calibrator that
            `cascade` made.
        estimator : str, optional
            One of `estimators`; by default the recommended one, or for answers without entropies
            the best that needs none.
        task : str, optional
            The calibrator's task, where the answers name it otherwise.
        parts : str, path or mapping, optional
            Parts of the answers; by default those of the calibrator. See docs/guides/parts.md.
        reading : Reading, optional
            How a path or rows are read.
        progress : bool
            Whether to show a bar.

        Returns
        -------
        polars.DataFrame
            A row per answer in their order: ``example_id``, ``probability``, its bounds ``lower``
            and ``upper`` for unlisted tokens, ``keep`` at the error rate or guarantee, and
            ``reason``, why one of them is null. Of parts: ``example_id``, the list ``parts`` of
            such, and ``reason``.

        Raises
        ------
        InputError
            Where the answers are of another model, task or kind of trace, or the calibrator was
            not tested for the error rate or guarantee.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> row = {"id": "a", "logprobs": [-0.1, -0.2], "entropy": [0.3, 0.4], "model": "m"}
        >>> calibrator.score([row]).height
        1
        """
        target, _ = target_of(error_rate, guarantee), self.fitted(estimator)
        known = answers_in(answers, self.reading(reading), progress=progress)
        of_parts = parts_in(parts) or self.fitted_on.parts
        frame = with_partial(known.frame) if of_parts else known.frame
        fitted = self._for(estimator, frame["entropy"].count() > 0)
        task = task or known.metadata.get("task")
        if of_parts:
            return score_parts(known.frame, fitted, target, task, of_parts)
        scored = score.score_answers(known.frame, fitted, target, task)
        score.tell_missing(scored, decided=target is not None)
        return scored

    def score_trace(
        self,
        surprisal: Sequence[float],
        entropy: Sequence[float] | None = None,
        *,
        error_rate: float | None = None,
        guarantee: str | None = None,
        estimator: str | None = None,
        part: str | None = None,
        also: Mapping[str, float | None] | None = None,
    ) -> Confidence:
        """Give one answer its confidence by its trace, in a fraction of a millisecond.

        Parameters
        ----------
        surprisal, entropy : list of float
            A number per token, in nats; entropies may be null where the estimator needs none.
        error_rate, guarantee, estimator
            As of `score`.
        part : str, optional
            The name of the part of an answer whose tokens they are, by a calibrator of parts.
        also : mapping, optional
            The values of the further columns that it was calibrated with, by their names; without
            one there is no probability.

        Returns
        -------
        tracecal.calibrator.scoring.Confidence
            ``probability``, ``lower``, ``upper``, ``keep`` and ``reason``.

        Raises
        ------
        InputError
            Where lists are empty, of unequal lengths, negative or not finite.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> calibrator.score_trace([0.05, 0.4], [0.2, 0.9]).probability > 0.5
        True
        """
        fitted, target = self._for(estimator, entropy is not None), target_of(error_rate, guarantee)
        return score.score_answer(fitted, surprisal, entropy, target, part=part, also=also or {})

    def score_response(
        self,
        response: Any,
        request: Mapping[str, Any] | None = None,
        *,
        error_rate: float | None = None,
        guarantee: str | None = None,
        estimator: str | None = None,
        reading: Reading | None = None,
    ) -> Confidence:
        """Give one response of a server its confidence; for parts see `score_response_parts`.

        Parameters
        ----------
        response : object or mapping
            Of OpenAI's client, or of any format of docs/reference/formats.md.
        request : mapping, optional
            The settings that were sent; without them they are unknown.
        error_rate, guarantee, estimator, reading
            As of `score`.

        Returns
        -------
        tracecal.calibrator.scoring.Confidence
            ``probability``, ``lower``, ``upper``, ``keep`` and ``reason``.

        Raises
        ------
        InputError
            Where the response is of another model or kind of trace.
        tracecal.answers.tokens.WrongRow
            Where it is invalid.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> response = {"logprobs": [-0.05, -0.4], "entropy": [0.2, 0.9]}
        >>> calibrator.score_response(response).probability > 0.5
        True
        """
        fitted, settings = self.fitted(estimator), reading or Reading()
        fitted.require_parts(False)
        record = score.read_response(fitted, response, request, settings)
        fitted = self._for(estimator, record.entropy is not None or record.surprisal is None)
        return score.score_record(fitted, record, target_of(error_rate, guarantee))

    def score_response_parts(
        self,
        response: Any,
        request: Mapping[str, Any] | None = None,
        *,
        error_rate: float | None = None,
        guarantee: str | None = None,
        estimator: str | None = None,
        reading: Reading | None = None,
    ) -> dict[str, Confidence]:
        """Give each part of a response its confidence, where the calibrator is one of parts.

        Parameters
        ----------
        response, request, error_rate, guarantee, estimator, reading
            As of `score_response`.

        Returns
        -------
        dict
            By the part's name, such as ``address.city``; empty where there is none.

        Raises
        ------
        InputError
            As `score_response`, and where the calibrator is of whole answers.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> calibrator.score_response_parts({"logprobs": [-0.1]})
        Traceback (most recent call last):
        tracecal.errors.InputError: the calibrator is of whole answers: calibrate on parts...
        """
        fitted, settings = self.fitted(estimator), reading or Reading()
        fitted.require_parts(True)
        target = target_of(error_rate, guarantee)
        return score_response_parts(fitted, response, request, target, settings)

    def report(
        self, answers: Answers | None = None, *, config: Any = None, reading: Reading | None = None
    ) -> Report:
        """Say how well each estimator predicts and what is guaranteed.

        Parameters
        ----------
        answers : path, frame or rows, optional
            The labelled answers that the calibrator was fitted on: needed where it was loaded.
        config, reading
            As of `calibrate`, with which it was made.

        Returns
        -------
        Report

        Raises
        ------
        InputError
            Where the answers are missing, or not those that it was fitted on.

        Examples
        --------
        >>> import tracecal
        >>> report = tracecal.calibrate("labelled.jsonl", "t").report()
        >>> str(report).splitlines()[0]
        '120 labelled answers of m to t, 54.2% correct; entropies: exact'
        """
        frame, known, settings = self._labels(answers, config, reading)
        found = reports.found(self.content, known, settings)
        return Report(found, frame)

    def card(self) -> Card:
        """Say what it was fitted on, what it guarantees and what it must not be used for.

        Returns
        -------
        tracecal.calibrator.calibrator.Card

        Raises
        ------
        InputError
            Where its content does not fit the schema of calibration cards.

        Examples
        --------
        >>> import tracecal
        >>> print(str(tracecal.Calibrator.load("C.json").card()).splitlines()[0])
        Calibration card: m for t
        """
        told = self.content, self.where
        return Card(cards.text(*told), cards.page(*told))

    def compare(self, other: "str | Path | Calibrator") -> str:
        """Say how another calibrator differs from it, as ``tracecal card`` with two files.

        Parameters
        ----------
        other : path or Calibrator

        Returns
        -------
        str

        Raises
        ------
        InputError
            As `card`, of both.

        Examples
        --------
        >>> import tracecal
        >>> print(tracecal.Calibrator.load("C.json").compare("C.json").splitlines()[0])
        C.json -> C.json
        """
        second = calibrator_in(other)
        names = self.where, second.where
        return cards.compared(self.content, second.content, names)

    def _labels(
        self, answers: Answers | None, config: Any, reading: Reading | None
    ) -> tuple[pl.DataFrame, Labelled, FitSettings]:
        """What it was fitted on, and how; raises `InputError` where that is not what is given."""
        if answers is None:
            if self._labelled is None:
                raise InputError(
                    f"{self.where} was loaded, and a report needs the labelled answers: give "
                    "those that it was fitted on."
                )
            return self._labelled
        read, parts = answers_in(answers, self.reading(reading)), self.fitted_on.parts
        frame = part_answers(read.frame, parts, read.part_labels)[0] if parts else read.frame
        settings = settings_in(config)
        known = labelled(frame, self.fitted_on.task, settings, parts, self._custom)
        own = frame.join(known.frame.select("example_id"), on="example_id", how="semi")
        if tuple(fingerprints(own.sort("example_id")).drop_nulls()) != self.fitted_on.answers:
            raise InputError(
                f"{self.where} was not fitted on these labelled answers: a report is of those "
                "that it was fitted on."
            )
        return frame, known, settings


def calibrate(
    answers: Answers,
    task: str,
    *,
    config: str | Path | Mapping[str, Any] | None = None,
    parts: str | Path | Mapping[str, Any] | None = None,
    estimators: CustomSource = None,
    revision: str | None = None,
    reading: Reading | None = None,
    progress: bool = False,
) -> Calibrator:
    """Fit a calibrator on labelled answers, as ``tracecal calibrate`` does.

    Parameters
    ----------
    answers : path, frame or rows
        As of `read_answers`, at least 20 of them with ``correct``.
    task : str
        A name for the task.
    config : path or mapping, optional
        YAML, or what it would hold: ``seed``, ``splits``, ``calibration``, ``risk_control``,
        ``bootstrap``, as in config/README.md.
    parts : str, path or mapping, optional
        Parts of the answers, which are labelled by part. See docs/guides/parts.md.
    estimators : path or mapping, optional
        Estimators of your own: a file of Python, or what its ``ESTIMATORS`` would hold. See
        docs/guides/custom.md.
    revision : str, optional
        Revision of the model; by default as the file states it.
    progress : bool
        Whether to show bars.
    reading : Reading, optional
        How the answers are read. ``vocabulary`` is kept in the calibrator, and so is ``also``:
        further columns by name, each the path in a row of a number or verdict that says how far to
        trust the answer, larger: more. The recommended fit takes them beside the trace.

    Returns
    -------
    Calibrator

    Raises
    ------
    InputError
        Where labels are too few or contradict each other, or models or kinds of trace are mixed.

    Examples
    --------
    >>> import tracecal
    >>> calibrator = tracecal.calibrate("labelled.jsonl", task="t")
    >>> calibrator
    <Calibrator of m for t: 120 labelled answers, ... estimators, log_ridge recommended>
    >>> calibrator.save("C.json")
    """
    settings, custom = settings_in(config), custom_scores(estimators)
    with tqdm(total=2, desc="Calibrating", unit=" steps", disable=not progress) as bar:
        known = answers_in(answers, reading, progress=progress)
        bar.update()
        if warning := run_on(known.frame):
            LOGGER.warning("%s", warning)
        frame, of_parts = labelled_parts(known, None if parts is None else _text_of(parts))
        revision = revision or known.metadata.get("revision")
        vocabulary = None if reading is None else reading.vocabulary
        rows = labelled(frame, task, settings, of_parts, custom)
        fit = settings, revision, vocabulary, of_parts, custom, rows
        content = calibrate_answers(frame, task, *fit)
        bar.update()
    calibrator = Calibrator(json.loads(json.dumps(content)), custom=custom)
    calibrator._labelled = frame, rows, settings
    return calibrator


def settings_in(config: str | Path | Mapping[str, Any] | None) -> FitSettings:
    """The settings of a file, or of what it would hold; raises `InputError`."""
    if isinstance(config, str | Path):
        return parse(FitSettings, read_yaml(config) or {}, str(config))
    return parse(FitSettings, config or {}, "config")


def _text_of(parts: str | Path | Mapping[str, Any]) -> str:
    """Parts as the option `--parts` takes them: a file's path, or YAML."""
    return json.dumps(parts) if isinstance(parts, Mapping) else str(parts)


def parts_in(parts: str | Path | Mapping[str, Any] | None) -> Parts | None:
    """The parts that are stated, as of docs/guides/parts.md; raises `InputError`."""
    return None if parts is None else read_parts(_text_of(parts))


def calibrator_in(given: str | Path | Calibrator) -> Calibrator:
    """A calibrator, or that of a file."""
    return given if isinstance(given, Calibrator) else Calibrator.load(given)
