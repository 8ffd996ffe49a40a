"""What the monitors watch of answers: values by a calibrator, keys and settings."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.facts import value_at
from tracecal.calibrator.predictor import Predictor, Target
from tracecal.errors import InputError
from tracecal.estimators.features import compute_inputs
from tracecal.fits.fits import as_json
from tracecal.io.log import LOGGER
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.monitor_settings import MonitorSettings
from tracecal.monitoring.state import AlarmSettings


def batch_of_scored(answers: pl.DataFrame, scored: pl.DataFrame, predictor: Predictor) -> Batch:
    """Return what is watched of answers with their scores (columns of `SCORED`)."""
    keep = scored["keep"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    columns = list(predictor.columns)
    inputs = compute_inputs(answers, columns, predictor.extended)
    x = inputs.select(pl.col(columns).fill_null(np.nan)).to_numpy()
    length = answers["surprisal"].list.len().cast(pl.Float64).fill_null(np.nan).to_numpy()
    return batch_of_inputs(x, length, predictor, keep)


def batch_of_inputs(
    x: np.ndarray, length: np.ndarray, predictor: Predictor, keep: np.ndarray
) -> Batch:
    """Return what is watched of answers with the predictor's columns x [n, d], NaN where unknown.

    The score is the ranking's, as in the reference. The probability that users get is by a fit that
    has seen the labelled answers: new answers would look unlike them.
    """
    is_known = ~np.isnan(x).any(1)
    score = np.full(len(x), np.nan)
    rank = predictor.proba if predictor.control is None else predictor.ranking_score
    score[is_known] = rank(x[is_known])
    return Batch(score, np.where(is_known, length, np.nan), keep)


def request_and_choice(example_id: str, row: Mapping[str, Any]) -> tuple[str, int]:
    """Return the id of an answer's request, and the answer's number among its choices.

    The proxy names an answer by its request, and choices after the first with ``#`` and the number.

    >>> request_and_choice("x#1", {"response": {"id": "x"}})
    ('x', 1)
    """
    request, _, number = example_id.rpartition("#")
    response = row.get("response")
    if isinstance(response, dict) and response.get("id") == request and number.isdecimal():
        return request, int(number)
    return example_id, 0


def key_of(row: Mapping[str, Any], one_per: str | None) -> str | None:
    """Return a hash of the value at a path of a row, such as request.user; None without a value.

    A state stores the hash, as the value may be a text or a name.
    """
    value = None if one_per is None else value_at(row, one_per)
    if value is None:
        return None
    content = json.dumps([one_per, value], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def question_key(question: str | None, group: str | None, request: str) -> str | None:
    """Return a hash of an answer's group, or else of its question; None where neither is known.

    Choices have their request as a group, which says nothing of the question.
    """
    text = question if group in (None, request) else f"group {group}"
    if text is None:
        return None
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def require_keys(keys: Sequence[str | None], one_per: str) -> None:
    """Raise `InputError` where no answer has a key; warn where some have none."""
    if n_without := keys.count(None):
        what = f"have nothing at --one-per {one_per}"
        if n_without == len(keys):
            raise InputError(f"all {n_without} answers {what}: name a path of their rows.")
        LOGGER.warning("%d answers %s: each counts by itself", n_without, what)


def calibrator_identity(predictor: Predictor, target: Target | None) -> str:
    """Return a digest of the calibrator and its threshold, in hexadecimal."""
    control = predictor.control
    content = {
        "ranked_by": predictor.ranked_by or predictor.estimator,
        "fit": as_json(control.fit if control else predictor.final),
        "error_rate": target,
        "threshold": None if target is None else predictor.thresholds[target],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def alarm_settings(
    predictor: Predictor, settings: MonitorSettings, target: Target | None
) -> AlarmSettings:
    """Return what to watch of a calibrator's answers.

    Labels are watched at an error rate of the kept. Where no threshold guarantees the target, a
    warning says so and labels are not watched.
    Raises `InputError` where the calibrator was not tested for it, or is of parts of answers.
    """
    if predictor.fitted_on.parts is not None:
        raise InputError(
            "the calibrator was fitted on parts of answers, which are not watched: give one "
            "that was fitted on whole answers."
        )
    error_rate = None if isinstance(target, str) else target
    if target is not None and (reason := predictor.why_not(target)) is not None:
        LOGGER.warning(
            "no answer is kept, so the share kept and labels are not watched: %s", reason
        )
        error_rate = None
    unit = predictor.fitted_on.unit
    return AlarmSettings(**settings.model_dump(), error_rate=error_rate, unit=unit)
