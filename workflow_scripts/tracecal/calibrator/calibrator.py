"""The calibrator: fitted on labelled answers, saved, loaded, and what it says of answers.

1. `calibrate` fits one on labelled answers; `Calibrator.load` reads its file.
2. `Calibrator.score` gives each new answer its probability, and whether to keep it.
3. `report` and `card` say how good it is, what it guarantees, and what it is not for.
"""

import json
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self

import polars as pl

from tracecal.answers.answers import Answers, KeepRows, Source, answers_in
from tracecal.answers.facts import value_at
from tracecal.answers.parts.part_answers import part_answers
from tracecal.answers.parts.parts import Parts, read_parts
from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.calibrator.card import Card
from tracecal.calibrator.fitting import fit_calibrator, require_no_label
from tracecal.calibrator.guarantee import AnswerColumn
from tracecal.calibrator.part_confidences import score_parts, score_response_parts
from tracecal.calibrator.predictor import Predictor, make_predictor
from tracecal.calibrator.report import Report, make_report
from tracecal.calibrator.schema import CalibrationData, CalibratorFile
from tracecal.calibrator.scoring import (
    SCORED,
    Confidence,
    score_answer,
    score_response,
    score_source,
    warn_of_missing,
)
from tracecal.calibrator.trace_kinds import describe_run_on, reading_for
from tracecal.calibrator.training_set import TrainingSet, make_training_set
from tracecal.errors import InputError
from tracecal.estimators.custom import NO_CUSTOM, Custom, CustomSource, custom_scores
from tracecal.fits.fit_settings import FitSettings, Unit, read_fit_settings, stated_shares
from tracecal.guarantees.error_rate import NOT_OF_PARTS
from tracecal.io.log import LOGGER, reminder


class Training(NamedTuple):
    """How a calibrator was fitted; without `predictions` the report makes them."""

    answers: TrainingSet
    settings: FitSettings
    error_rates: Sequence[float] = ()
    overall_errors: Sequence[float] = ()
    predictions: pl.DataFrame | None = None


class Calibrator:
    """Probabilities that answers are correct, and guaranteed error rates: a calibrator's file.

    `calibrate` makes it and `Calibrator.load` reads it. It holds the fits of all estimators that
    need only an answer's trace, and recommends one.

    Attributes
    ----------
    estimators : tuple of str
        Ids of the fitted estimators.
    recommended : str
        Id of the estimator that is used unless you name another.
    fitted_on
        Description of the labelled answers: ``model``, ``task``, ``n``, ``base_rate``, ...

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
        file: CalibratorFile,
        where: str = "the calibrator",
        custom: Custom = NO_CUSTOM,
        training: Training | None = None,
    ) -> None:
        """Make a calibrator from a file's content; messages call the file `where`.

        `custom` maps custom estimators to their scores.
        """
        self.file, self.where = file, where
        self._custom, self._training = custom, training
        self._predictors: dict[str | None, Predictor] = {}
        self.recommended: str = file.recommended()
        self.estimators: tuple[str, ...] = tuple(file.estimators)
        self.fitted_on: CalibrationData = file.fitted_on

    def __repr__(self) -> str:
        data = self.fitted_on
        return (
            f"<Calibrator of {data.model} for {data.task}: {data.n} labelled answers, "
            f"{len(self.estimators)} estimators, {self.recommended} recommended>"
        )

    @classmethod
    def load(cls, path: str | Path, *, estimators: CustomSource = None) -> Self:
        """Read a calibrator from its file and compare the file's checksum.

        Parameters
        ----------
        path : path
            A file that `save`, ``tracecal calibrate`` or the workflow wrote.
        estimators : path or mapping, optional
            Your own estimators that the calibrator was fitted with, as in `calibrate`.

        Returns
        -------
        Calibrator

        Raises
        ------
        InputError
            If the file is no calibrator, was edited, or has features of another version.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Calibrator.load("C.json").recommended
        'mean_of_three'
        """
        custom = NO_CUSTOM if estimators is None else custom_scores(estimators)
        file, where = CalibratorFile.read(path), str(path)
        predictor = make_predictor(file, None, where, custom)  # refuses a file that it cannot use
        calibrator = cls(file, where, custom)
        calibrator._predictors[None] = predictor
        return calibrator

    def save(self, path: str | Path) -> None:
        """Write the calibrator to a JSON file, completely or not at all.

        Parameters
        ----------
        path : path
            The file, as ``tracecal calibrate --output`` writes it.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Calibrator.load("C.json").save("copy.json")
        """
        self.file.write(path)

    def predictor(self, estimator: str | None = None) -> Predictor:
        """Return the fits and thresholds of one estimator.

        Parameters
        ----------
        estimator : str, optional
            One of `estimators`; by default the recommended one.

        Returns
        -------
        tracecal.calibrator.predictor.Predictor

        Raises
        ------
        InputError
            If the calibrator has no such estimator.

        Examples
        --------
        >>> import tracecal
        >>> tracecal.Calibrator.load("C.json").predictor("min_prob").inputs
        ('scores.min_prob',)
        """
        if estimator not in self._predictors:
            predictor = make_predictor(self.file, estimator, self.where, self._custom)
            self._predictors[estimator] = predictor
        return self._predictors[estimator]

    def reading(self, reading: Reading | None = None) -> Reading:
        """Return reading options with the vocabulary and the further columns of the fit."""
        return reading_for(self.fitted_on, reading)

    def score(
        self,
        answers: Source,
        *,
        error_rate: float | None = None,
        overall_error: float | None = None,
        recall: float | None = None,
        estimator: str | None = None,
        task: str | None = None,
        parts: str | Path | Mapping[str, Any] | None = None,
        reading: Reading | None = None,
    ) -> pl.DataFrame:
        """Give each answer its probability of being correct.

        Parameters
        ----------
        answers : path, frame or rows
            Answers in any format that `read_answers` reads.
        error_rate : float, optional
            Target error rate of the answers to keep, one that the calibrator was tested for.
        overall_error : float, optional
            Instead: the share of all answers that may be wrong once people have checked those that
            are not kept, and mended what is wrong. Not for parts.
        recall : float, optional
            Instead: the share of right answers to keep.
        estimator : str, optional
            One of `estimators`; by default the recommended one, or for an answer without entropies
            the best one that needs none.
        task : str, optional
            The calibrator's task, if the answers call it by another name.
        parts : str, path or mapping, optional
            Parts of the answers; by default the calibrator's parts. See docs/guides/parts.md.
        reading : Reading, optional
            How a path or rows are read.

        Returns
        -------
        polars.DataFrame
            One row per answer, in order: ``example_id``, ``probability``, its bounds ``lower`` and
            ``upper`` given the unlisted tokens, ``keep`` at the target, and ``reason``, why a value
            is missing. With parts: ``example_id``, a list ``parts`` with these values, and
            ``reason``.

        Raises
        ------
        InputError
            If the answers have another model, task or kind of trace, or the calibrator was not
            tested for the target.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> row = {"id": "a", "logprobs": [-0.1, -0.2], "entropy": [0.3, 0.4], "model": "m"}
        >>> calibrator.score([row]).height
        1
        """
        predictor = self.predictor(estimator)  # refuses an unknown one before answers are read
        target = predictor.target_of(error_rate, overall_error, recall)
        if stated_parts := parts_in(parts) or self.fitted_on.parts:
            source = answers_in(answers, self.reading(reading))
            task = task or source.metadata.get("task")
            return score_parts(source.frame, predictor, target, task, stated_parts)

        def keep(_: Answers, scored: pl.DataFrame) -> pl.DataFrame:
            return scored.drop("example_id")

        settings = self.reading(reading), predictor, target, task
        scored = score_source(answers, *settings, keep).frame.select(*SCORED)
        warn_of_missing(scored, decided=target is not None)
        return scored

    def score_trace(
        self,
        surprisal: Sequence[float],
        entropy: Sequence[float] | None = None,
        *,
        error_rate: float | None = None,
        overall_error: float | None = None,
        estimator: str | None = None,
        part: str | None = None,
        also: Mapping[str, float | None] | None = None,
    ) -> Confidence:
        """Compute the confidence of one trace, in a fraction of a millisecond.

        Parameters
        ----------
        surprisal, entropy : list of float
            One number per token, in nats; entropies may be None if the estimator needs none.
        error_rate, overall_error, estimator
            As in `score`.
        part : str, optional
            Name of the part that the tokens belong to, for calibrators of parts.
        also : mapping, optional
            Values of the further columns that the calibrator was fitted with, by name. If one is
            missing, there is no probability.

        Returns
        -------
        tracecal.calibrator.scoring.Confidence
            ``probability``, ``lower``, ``upper``, ``keep`` and ``reason``.

        Raises
        ------
        InputError
            If a list is empty, lengths differ, or a number is negative or not finite.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> calibrator.score_trace([0.05, 0.4], [0.2, 0.9]).probability > 0.5
        True
        """
        predictor = self.predictor(estimator)
        target = predictor.target_of(error_rate, overall_error)
        return score_answer(predictor, surprisal, entropy, target, part=part, also=also or {})

    def score_response(
        self,
        response: Any,
        request: Mapping[str, Any] | None = None,
        *,
        error_rate: float | None = None,
        overall_error: float | None = None,
        estimator: str | None = None,
        reading: Reading | None = None,
    ) -> Confidence:
        """Compute the confidence of one server response; for parts see `score_response_parts`.

        Parameters
        ----------
        response : object or mapping
            A response of OpenAI's client, or a mapping in a format of docs/reference/formats.md.
        request : mapping, optional
            The request's settings. If they state no temperature, the answer counts as decoded like
            the labelled answers.
        error_rate, overall_error, estimator, reading
            As in `score`.

        Returns
        -------
        tracecal.calibrator.scoring.Confidence
            ``probability``, ``lower``, ``upper``, ``keep`` and ``reason``.

        Raises
        ------
        InputError
            If the response has another model or kind of trace, or cannot be read.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> response = {"logprobs": [-0.05, -0.4], "entropy": [0.2, 0.9]}
        >>> calibrator.score_response(response).probability > 0.5
        True
        """
        predictor = self.predictor(estimator)
        target = predictor.target_of(error_rate, overall_error)
        return score_response(predictor, response, request, target, reading)

    def score_response_parts(
        self,
        response: Any,
        request: Mapping[str, Any] | None = None,
        *,
        error_rate: float | None = None,
        estimator: str | None = None,
        reading: Reading | None = None,
    ) -> dict[str, Confidence]:
        """Compute the confidence of each part of a response, with a calibrator of parts.

        Parameters
        ----------
        response, request, error_rate, estimator, reading
            As in `score_response`.

        Returns
        -------
        dict
            Confidences by the part's name, such as ``address.city``; empty without parts.

        Raises
        ------
        InputError
            As in `score_response`, and if the calibrator is of whole answers.

        Examples
        --------
        >>> import tracecal
        >>> calibrator = tracecal.Calibrator.load("C.json")
        >>> calibrator.score_response_parts({"logprobs": [-0.1]})
        Traceback (most recent call last):
        tracecal.errors.InputError: the calibrator was fitted on whole answers: ...
        """
        predictor = self.predictor(estimator)
        return score_response_parts(predictor, response, request, error_rate, reading)

    def report(
        self,
        answers: Source | None = None,
        *,
        config: Any = None,
        reading: Reading | None = None,
        all_estimators: bool = True,
    ) -> Report:
        """Report how well each estimator predicts and what is guaranteed.

        Parameters
        ----------
        answers : path, frame or rows, optional
            The labelled answers that the calibrator was fitted on; required after `load`.
        config, reading
            As in the call of `calibrate` that made the calibrator.
        all_estimators : bool
            Whether to measure every estimator, or only the recommended one, which is faster.

        Returns
        -------
        Report

        Raises
        ------
        InputError
            If the answers are missing, or the calibrator was fitted on others.

        Examples
        --------
        >>> import tracecal
        >>> report = tracecal.calibrate("labelled.jsonl", "t").report()
        >>> str(report).splitlines()[0]
        '120 answers by m to "t"; all labelled, 46 % wrong.'
        """
        training = self._read_training(answers, config, reading)
        return make_report(self.file, *training, all_estimators=all_estimators)

    def card(self) -> Card:
        """Describe the calibrator's data, guarantees and excluded uses in a card.

        Returns
        -------
        tracecal.calibrator.card.Card

        Raises
        ------
        InputError
            If the content does not fit the schema of calibration cards.

        Examples
        --------
        >>> import tracecal
        >>> print(str(tracecal.Calibrator.load("C.json").card()).splitlines()[0])
        Calibration card: m for t
        """
        return Card.of(self.file)

    def _read_training(
        self,
        answers: Source | None,
        config: str | Path | Mapping[str, Any] | None,
        reading: Reading | None,
    ) -> Training:
        """Return the training data; raises `InputError` if the fit was on other answers."""
        if answers is None:
            if self._training is None:
                raise InputError(
                    f"{self.where} was loaded, and a report needs the labelled answers: give "
                    "those that it was fitted on."
                )
            return self._training
        source, parts = answers_in(answers, self.reading(reading)), self.fitted_on.parts
        frame = source.frame
        if parts:
            frame, _ = part_answers(frame, parts, source.part_labels)
        settings, task = read_fit_settings(config), self.fitted_on.task
        unit = self.fitted_on.unit
        training = make_training_set(frame, task, settings, parts, self._custom, unit=unit)
        if tuple(training.records["fingerprint"].drop_nulls()) != self.fitted_on.answers:
            raise InputError(
                f"{self.where} was not fitted on these labelled answers: give those that it was "
                "fitted on."
            )
        return Training(training, settings)


def calibrate(
    answers: Source,
    task: str,
    *,
    config: str | Path | Mapping[str, Any] | None = None,
    parts: str | Path | Mapping[str, Any] | None = None,
    estimators: CustomSource = None,
    error_rates: float | Sequence[float] = (),
    overall_errors: float | Sequence[float] = (),
    estimator: str | None = None,
    unlabelled: Source | None = None,
    unit: Unit = "questions",
    recall: float | None = None,
    by: str | None = None,
    looks: int | None = None,
    after: str | Path | Calibrator | None = None,
    revision: str | None = None,
    reading: Reading | None = None,
) -> Calibrator:
    """Fit a calibrator on labelled answers.

    Parameters
    ----------
    answers : path, frame or rows
        At least 20 labelled answers, in any format that `read_answers` reads.
    task : str
        Name of the task.
    config : path or mapping, optional
        Settings of the fit, as YAML or a mapping (keys: docs/guides/calibrate.md).
    parts : str, path or mapping, optional
        Parts of the answers, which are labelled by part. See docs/guides/parts.md.
    estimators : path or mapping, optional
        Your own estimators: a Python file, or the content of its ``ESTIMATORS``. See
        docs/guides/extend.md.
    error_rates : float or sequence of float
        Target error rates of the answers to keep; the decision is about the first one. By default
        the settings' rates, with the decision at 20 %.
    overall_errors : float or sequence of float
        Target shares of all answers that remain wrong, where people check those that are not kept
        and mend what is wrong (default: 0.05, 0.1, 0.2). Not for parts.
    estimator : str, optional
        Estimator for both the probabilities and the ranking of answers. By default the recommended
        estimator gives probabilities, and the number of labels determines the ranking.
    unlabelled : path, frame or rows, optional
        Further answers of the same kind; their labels are ignored. They measure the share to keep,
        and 100 or more of them help to keep more.
    unit : {"questions", "answers"}
        What was drawn at random to be labelled, which a guarantee counts once: questions, as `pick`
        draws, or single answers of a log, for a guarantee about its traffic.
    recall : float, optional
        Share of the right answers to keep, such as 0.9.
    by : str, optional
        Path in a row, such as ``language``: counts the kept answers' errors for each of its values.
    looks : int, optional
        How many times you plan to calibrate on growing labels, stated with the first: each look
        tests at its share of 1 - confidence.
    after : path or Calibrator, optional
        The calibrator of the look before, on some of the same labels, whose looks this one
        continues.
    revision : str, optional
        Revision of the model; by default as the file states it.
    reading : Reading, optional
        How the answers are read. ``vocabulary`` is kept in the calibrator, and so is ``also``:
        names of further columns with the path of each in a row, to a number or verdict that is
        larger for answers to trust more. The recommended fit uses them beside the trace.

    Returns
    -------
    Calibrator

    Raises
    ------
    InputError
        If labels are too few or contradict each other, or models or kinds of trace are mixed.

    Examples
    --------
    >>> import tracecal
    >>> calibrator = tracecal.calibrate("labelled.jsonl", task="t")
    >>> calibrator
    <Calibrator of m for t: 120 labelled answers, ... estimators, mean_of_three recommended>
    >>> calibrator.save("C.json")
    """
    error_rates = stated_shares("--error-rate", error_rates)
    overall_errors = stated_shares("--overall-error", overall_errors)
    settings = read_fit_settings(config).with_targets(error_rates, overall_errors)
    stated_shares("--recall", [] if recall is None else [recall])
    if looks is not None and not (isinstance(looks, Integral) and looks >= 1):
        raise InputError(f"--looks {looks!r}: expected a whole number from 1 on.")
    earlier = None if after is None else calibrator_in(after).fitted_on
    if not task.strip():
        raise InputError("--task is empty: name the task of the answers, such as --task math.")
    custom = NO_CUSTOM if estimators is None else custom_scores(estimators)
    keep_rows: KeepRows = by is not None and (lambda _, row: {by: value_at(row, by)})
    source = answers_in(answers, reading, keep_rows)
    if warning := describe_run_on(source.frame):
        LOGGER.warning("%s", warning)
    frame, stated_parts = source.frame, parts_in(parts)
    if stated_parts:
        frame, _ = part_answers(frame, stated_parts, source.part_labels)
    elif source.part_labels:
        raise InputError(
            f"{len(source.part_labels)} answers are labelled by part: say which parts there are "
            "with --parts, such as --parts 'json: [capital, currency]'."
        )
    if stated_parts and overall_errors:
        raise InputError(NOT_OF_PARTS)
    new = None if unlabelled is None else _read_unlabelled(unlabelled, stated_parts, reading)
    with reminder(lambda: f"fitting on {frame.height:,} answers"):
        training = make_training_set(frame, task, settings, stated_parts, custom, new, unit)
        require_no_label(training, reading.label if reading else None)
        fits = training.fit_estimators()
        file = fit_calibrator(
            training,
            fits,
            task,
            settings,
            revision=revision or source.metadata.get("revision"),
            vocabulary=reading.vocabulary if reading else None,
            parts=stated_parts,
            estimator=estimator,
            recall=recall,
            by=None if by is None else _column(by, source, frame),
            looks=looks,
            earlier=earlier,
        )
    made_by = Training(training, settings, error_rates, overall_errors, fits.predictions)
    return Calibrator(file, custom=custom, training=made_by)


def _column(path: str, source: Answers, frame: pl.DataFrame) -> AnswerColumn:
    """Collect the values at a path of the rows, by the ids of the answers or parts in `frame`."""
    ids = source.frame["example_id"].to_list()
    values = {
        example_id: str(value)
        for example_id, row in zip(ids, source.rows, strict=True)
        if (value := value_at(row, path)) is not None
    }
    if not values:
        raise InputError(f"--by {path}: no row has a value there; correct the path.")
    row_ids = frame["parent_id" if "parent_id" in frame.columns else "example_id"]
    pairs = zip(frame["example_id"], row_ids, strict=True)
    return AnswerColumn(path, {name: values[row_id] for name, row_id in pairs if row_id in values})


def _read_unlabelled(answers: Source, parts: Parts | None, reading: Reading | None) -> pl.DataFrame:
    """Read further answers, or parts of answers, whose labels are not wanted."""
    reading = (reading or USUAL_READING).model_copy(update={"labels": None})
    frame = answers_in(answers, reading).frame
    return part_answers(frame, parts)[0] if parts else frame


def parts_in(parts: str | Path | Mapping[str, Any] | None) -> Parts | None:
    """Read the stated parts (docs/guides/parts.md); raises `InputError`."""
    statement = json.dumps(parts) if isinstance(parts, Mapping) else str(parts)
    return None if parts is None else read_parts(statement)


def calibrator_in(calibrator: str | Path | Calibrator) -> Calibrator:
    """Load a calibrator from a path; return a loaded one unchanged."""
    return calibrator if isinstance(calibrator, Calibrator) else Calibrator.load(calibrator)
