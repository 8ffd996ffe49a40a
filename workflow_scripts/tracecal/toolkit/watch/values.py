"""What monitors see of answers: the values of a fit that left answers to compare with."""

import hashlib
import json

import numpy as np
import polars as pl

from tracecal.calibrate.protocol import as_json
from tracecal.estimate.of_traces import inputs
from tracecal.toolkit.fitted import Fitted
from tracecal.toolkit.score import score_answers
from tracecal.watch.monitors import Batch


def watched(
    answers: pl.DataFrame, fitted: Fitted, error_rate: float | None, task: str | None = None
) -> Batch:
    """What is watched of answers (columns of `RECORDS`); raises `InputError` as scoring does."""
    scored = score_answers(answers, fitted, error_rate, task)
    keep = scored["keep"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    columns = list(fitted.inputs)
    x = inputs(answers, columns).select(pl.col(columns).fill_null(np.nan)).to_numpy()
    length = answers["surprisal"].list.len().cast(pl.Float64).fill_null(np.nan).to_numpy()
    return of_inputs(x, length, fitted, keep)


def of_inputs(x: np.ndarray, length: np.ndarray, fitted: Fitted, keep: np.ndarray) -> Batch:
    """What is watched of answers with inputs x [n, d] (NaN: not known), a length and a `keep` [n].

    The probability is that of the certified fit, as the reference's is, and not the one of all
    labels that users get: answers that a fit has seen are unlike any new ones.
    """
    known = ~np.isnan(x).any(1)
    probability = np.full(len(x), np.nan)
    probability[known] = (fitted.certified or fitted.final).predict(x[known])
    return Batch(probability, np.where(known, length, np.nan), keep)


def identity(fitted: Fitted, error_rate: float | None) -> str:
    """What tells a calibrator and its threshold from others, in hexadecimal digits."""
    told = {
        "estimator": fitted.estimator,
        "fit": as_json(fitted.certified or fitted.final),
        "error_rate": error_rate,
        "threshold": None if error_rate is None else fitted.thresholds[error_rate],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
