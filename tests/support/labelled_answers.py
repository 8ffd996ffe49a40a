"""Made-up answers of one model, with traces that tell something of whether they are right."""

import numpy as np
import polars as pl

from tracecal.answers.record import Record
from tracecal.answers.row import as_frame
from tracecal.calibrator.fitting import fit_calibrator
from tracecal.calibrator.predictor import make_predictor
from tracecal.calibrator.schema import CalibratorFile
from tracecal.calibrator.scoring import score_answers
from tracecal.calibrator.training_set import make_training_set
from tracecal.fits.fit_settings import FitSettings
from tracecal.monitoring.traffic import batch_of_scored


def answers(n=500, seed=0, **more) -> pl.DataFrame:
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


def fitted_file(frame=None, estimator=None, **settings):
    """A calibrator's file, fitted on made-up answers; an estimator that is named ranks them."""
    fit = FitSettings(**({"splits": {"count": 3}} | settings))
    training = make_training_set(answers() if frame is None else frame, "t", fit)
    fits = training.fit_estimators()
    return fit_calibrator(training, fits, "t", fit, vocabulary=1000, estimator=estimator)


def ranked_by(estimator, **settings):
    """A file whose guarantees rank by an estimator, of 30 % wrong among them."""
    return fitted_file(answers(), estimator, **settings)


def stored(frame=None, estimator=None, **settings):
    """The content of a calibrator's file, without a checksum: tests change it."""
    return unsealed(fitted_file(frame, estimator, **settings).content())


def unsealed(content):
    """A file's content without its checksum."""
    fitted_on = {key: value for key, value in content["fitted_on"].items() if key != "checksum"}
    return content | {"fitted_on": fitted_on}


def predictor_of(content, estimator, where):
    """The predictor of an estimator from a file's content."""
    return make_predictor(CalibratorFile.parse(content, where), estimator, where)


def fitted(estimator="trace_plus", **settings):
    return make_predictor(ranked_by(estimator, **settings), estimator, "made up")


def batch_of_answers(frame, predictor, error_rate):
    """What monitors watch of the answers of a frame, scored all at once."""
    scored = score_answers(frame, predictor, error_rate)
    return batch_of_scored(frame, scored, predictor)
