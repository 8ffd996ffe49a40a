"""Made-up answers of one model, with traces that tell something of whether they are right."""

import numpy as np
import polars as pl

from tracecal.answers.record import Record, as_frame
from tracecal.calibrator.fitting import FitSettings, calibrate_answers
from tracecal.calibrator.schema import from_stored


def answers(n=300, seed=0, **more) -> pl.DataFrame:
    """Whole traces with labels, of 1 to 12 tokens, a risky answer more often wrong."""
    rng = np.random.default_rng(seed)
    records = []
    for place in range(n):
        risk, length = rng.gamma(2.0, 0.4), int(rng.integers(1, 13))
        entropy = np.float32(rng.gamma(2.0, risk / 2, size=length))
        told = {
            "answer": "x",
            "surprisal": np.float32(rng.gamma(1.5, risk / 2, size=length)).tolist(),
            "entropy": entropy.tolist(),
            "correct": bool(rng.random() < np.exp(-risk)),
            "model": "m",
            "stop_token": "included",
            "processed": "no",
        }
        records.append(Record(f"a{place:04}", **(told | more)))
    return as_frame(records)


def pair(n=300):
    """Answers of two models to the same questions; the large one is right on nine of ten."""
    small = answers(n)
    right = np.random.default_rng(7).random(n) < 0.9
    large = answers(n, seed=5, model="l").with_columns(correct=pl.Series(right))
    return small, large


def stored(frame=None, **settings):
    """A calibrator's file content, fitted on made-up answers."""
    fit = FitSettings(**({"splits": {"count": 3}} | settings))
    return calibrate_answers(answers() if frame is None else frame, "t", fit, vocabulary=1000)


def fitted(estimator="trace_plus", **settings):
    return from_stored(stored(**settings), estimator, "made up")
