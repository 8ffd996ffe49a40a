"""A scorer of Inspect: the confidence of each answer, and how good these confidences are.

Inspect finds it as `tracecal/confidence`, by the package's entry point.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from tracecal.answers.reading import Reading
from tracecal.answers.record import as_frame
from tracecal.answers.row import read_row
from tracecal.answers.verdict import parse_verdict
from tracecal.answers.wrong_row import WrongRow
from tracecal.calibration.calibration_error import ece
from tracecal.calibration.proper_scores import brier
from tracecal.calibration.ranking import single_auroc
from tracecal.calibration.settings import Calibration
from tracecal.calibrator.schema import (
    KNOWN_ANSWER,
    Fitted,
    fingerprints,
    load,
    require_same_kind,
    vocabulary_for,
)
from tracecal.calibrator.scoring import Confidence, score_record
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse

# A score's value. `seen`: the calibrator was fitted on this very answer.
VALUE = {
    "probability": pl.Float64,
    "correct": pl.Boolean,
    "keep": pl.Boolean,
    "seen": pl.Boolean,
}


def _metric(name: str, compute: Callable[[pl.DataFrame], float]) -> Metric:
    """The metric of this name, computed from the columns `VALUE` of all epochs' answers."""

    @metric(name=name, scores="unreduced")
    def made() -> Metric:
        def value(scores: list[SampleScore]) -> Value:
            return compute(pl.DataFrame([one.score.value for one in scores], schema=VALUE))

        return value

    return made()


def _judged(
    compute: Callable[[np.ndarray, np.ndarray], float | None],
) -> Callable[[pl.DataFrame], float]:
    """A metric of probability and correctness [n] of the answers that have both and are not those
    that the calibrator was fitted on; NaN where it is undefined.
    """

    def value(answers: pl.DataFrame) -> float:
        judged = answers.filter(~pl.col("seen")).drop_nulls(["probability", "correct"])
        if not judged.height:
            return math.nan
        found = compute(judged["probability"].to_numpy(), judged["correct"].to_numpy())
        return math.nan if found is None else float(found)

    return value


def _coverage(answers: pl.DataFrame) -> float:
    """The share of the unseen answers that is kept, those without confidence counting as not kept;
    NaN where nothing is guaranteed.
    """
    keep = answers.filter(~pl.col("seen"))["keep"]
    return keep.sum() / len(keep) if keep.count() else math.nan


def _kept_error(answers: pl.DataFrame) -> float:
    """The share of kept answers that is incorrect, of those with a verdict; NaN without any."""
    correct = answers.filter("keep")["correct"].drop_nulls()
    return 1 - correct.sum() / len(correct) if len(correct) else math.nan


def _missing(column: str) -> Callable[[pl.DataFrame], float]:
    return lambda answers: answers[column].null_count()


BINS = Calibration().ece_bins
METRICS = [
    _metric("auroc", _judged(single_auroc)),
    _metric("brier", _judged(lambda p, correct: brier(p[None], correct[None])[0])),
    _metric("ece", _judged(lambda p, correct: ece(p[None], correct[None], BINS)[0])),
    _metric("coverage", _coverage),
    _metric("kept_error", _kept_error),
    _metric("without_confidence", _missing("probability")),
    _metric("without_verdict", _missing("correct")),
    _metric("seen", lambda answers: answers["seen"].sum()),
]


@scorer(metrics=METRICS)
def confidence(
    calibrator: str,
    error_rate: float | None = None,
    correctness: str | None = None,
    estimator: str | None = None,
    model: str | None = None,
    vocabulary: int | None = None,
    stop_token: str = "auto",
    processed: str | bool = "auto",
) -> Scorer:
    """The probability that an answer is correct, by its log-probabilities and a calibrator's file.

    `error_rate` is the guaranteed one of the answers to keep. `correctness` names the scorer whose
    verdict counts; null: the only other one. The others are as in `tracecal score`. Raises
    `InputError` where the calibrator does not fit the answers, and where the verdict is ambiguous.
    """
    fitted = load(calibrator, estimator)
    if error_rate is not None:
        fitted.require_tested(error_rate)
    options = {
        "format": "inspect",
        "model": model,
        "vocabulary": vocabulary_for(fitted.fitted_on, vocabulary),
        "stop_token": stop_token,
        # Inspect's command reads yes and no as YAML, as true and false.
        "processed": {True: "yes", False: "no"}.get(processed, processed),
    }
    reading = parse(Reading, options, "the scorer's options")
    tell_once = cache(LOGGER.warning)

    async def score(state: TaskState, target: Target) -> Score:
        found, seen = _confidence(state, fitted, error_rate, reading)
        correct, unjudged = _verdict(state.scores or {}, correctness)
        reasons = [reason for reason in (found.reason, unjudged) if reason]
        for reason in reasons:
            tell_once(reason)
        known = {"probability": found.probability, "correct": correct}
        return Score(
            value=known | {"keep": found.keep, "seen": seen},
            explanation="; ".join(reasons) or None,
            metadata={"lower": found.lower, "upper": found.upper},
        )

    return score


def _confidence(
    state: TaskState, fitted: Fitted, error_rate: float | None, reading: Reading
) -> tuple[Confidence, bool]:
    """The confidence of a sample's answer, and whether the calibrator was fitted on it."""
    row = {
        "id": state.sample_id,
        "epoch": state.epoch,
        "request": _request(state),
        "output": state.output.model_dump(),
    }
    try:
        record = read_row(row, reading)
    except WrongRow as error:
        return Confidence(None, reason=str(error)), False
    answers = as_frame([record])
    require_same_kind(answers, fitted.fitted_on)
    found = score_record(fitted, record, error_rate)
    if fingerprints(answers)[0] in fitted.fitted_on.answers:
        return replace(found, keep=None, reason=KNOWN_ANSWER), True
    return found, False


def _request(state: TaskState) -> dict[str, Any]:
    """The settings with which a sample's answer was generated; empty where they are not known."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent) and event.output.choices == state.output.choices:
            return event.config.model_dump(exclude_none=True)
    return {}


def _verdict(scores: Mapping[str, Score], named: str | None) -> tuple[bool | None, str | None]:
    """Whether another scorer calls the answer correct; or null and why. Raises `InputError`."""
    others = {
        name: one.value
        for name, one in scores.items()
        if not (isinstance(one.value, Mapping) and VALUE.keys() <= one.value.keys())
    }
    if not others:
        return None, "no scorer has judged it: put one before this one"
    if (named is None and len(others) > 1) or (named is not None and named not in others):
        asked = f"there is no scorer {named!r}" if named else "several scorers judge the answers"
        raise InputError(
            f"{asked} (they are {', '.join(others)}): name the one whose verdict counts, such as "
            f"correctness={next(iter(others))}."
        )
    try:
        return parse_verdict(others[named or next(iter(others))]), None
    except WrongRow as error:
        return None, str(error)
