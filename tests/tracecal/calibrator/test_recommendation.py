"""Which estimator is the default, and where none is recommended."""

import numpy as np
import polars as pl
import pytest

import tracecal
from support.labelled_answers import answers, fitted_file
from tracecal.calibrator.recommendation import (
    choose_default,
    describe_labels,
    describe_log,
)
from tracecal.calibrator.training_set import make_training_set
from tracecal.fits.fit_settings import FitSettings
from tracecal.statistics.percentages import percent

SETTINGS = FitSettings(splits={"count": 2}, bootstrap={"resamples": 50})


def without_entropies(frame, count):
    """The answers, the first `count` of which list no alternatives."""
    lacks = pl.int_range(pl.len()) < count
    return frame.with_columns(entropy=pl.when(~lacks).then("entropy"))


@pytest.mark.parametrize(
    ("n", "n_without", "default"),
    [
        (49, 0, "log_ridge"),
        (50, 0, "mean_of_three"),
        (60, 6, "mean_of_three"),
        (60, 7, "surprisal_ridge"),
        (60, 60, "surprisal_ridge"),
        (52, 3, "log_ridge"),
    ],
)
def test_the_default_follows_from_the_number_of_labels_and_the_kind_of_log(n, n_without, default):
    training = make_training_set(without_entropies(answers(n), n_without), "t", SETTINGS)
    assert choose_default(training) == default
    assert (training.n_traces, training.n_entropies) == (n, n - n_without)
    said = describe_log(training)
    if n_without in (0, n):
        assert said == []
    else:
        assert said[0].startswith(f"{n_without} of {n} answers list no alternatives")
        assert ("Surprisal ridge, which needs none" in said[0]) == (default == "surprisal_ridge")


def test_labelled_answers_without_a_trace_are_counted():
    frame = answers(90).with_columns(
        surprisal=pl.when(pl.int_range(pl.len()) >= 12).then("surprisal")
    )
    training = make_training_set(frame, "t", SETTINGS)
    assert (training.n_traces, training.n_entropies) == (78, 78)
    (said,) = describe_log(training)
    assert said.startswith("12 of 90 labelled answers have no log-probabilities")


def test_the_file_the_card_and_the_report_count_answers_without_a_probability():
    why = pl.Series(
        "lacks", ["token 1"] * 3 + ["token 2"] * 2 + ["b"] * 4 + ["c"] * 2 + ["d"] + [None] * 78
    )
    frame = answers(90).with_columns(why, surprisal=pl.when(why.is_null()).then("surprisal"))
    calibrator = tracecal.calibrate(frame, "t", config={"splits": {"count": 2}})
    data = calibrator.fitted_on
    assert data.without_probability == (("a token", 5), ("b", 4), ("c", 2), ("other reasons", 1))
    assert calibrator.file.estimators[data.estimator].held_out.probability.count(None) == 12
    said = (
        "12 of 90 labelled answers have no probability, and so enter no fit and no test: a token (5); "
        "b (4); c (2); other reasons (1)"
    )
    assert said in str(calibrator.card()) and said in calibrator.report().html
    whole = tracecal.calibrate(answers(90), "t", config={"splits": {"count": 2}})
    assert whole.fitted_on.describe_missing() is None


@pytest.mark.parametrize(
    ("correct", "sentence"),
    [
        (np.ones(80, bool), "All 80 labelled answers are right, so nothing"),
        (np.zeros(80, bool), "All 80 labelled answers are wrong, so nothing"),
        (np.arange(80) > 2, "Only 3 of 80 labelled answers are wrong, too few"),
        (np.arange(80) < 1, "Only 1 of 80 labelled answers is right, too few"),
        (np.arange(80) % 2 == 0, None),
    ],
)
def test_labels_that_cannot_tell_estimators_apart_recommend_none(correct, sentence):
    frame = answers(80).with_columns(correct=pl.Series(correct))
    file = fitted_file(frame)
    training = make_training_set(frame, "t", SETTINGS)
    said = describe_labels(training, file.estimators)
    assert file.fitted_on.estimator == "mean_of_three" and file.fitted_on.gain is None
    assert "trace_uncalibrated" not in file.fitted_on.ranking
    assert (said or "").startswith(sentence or "") and (said is None) == (sentence is None)
    if sentence and "All 80" in sentence:
        fits = file.estimators["mean_of_three"]
        (share,) = fits.final.predict(np.zeros((1, len(fits.features))))
        assert said.endswith(f"{percent(share, 1)}.")
        assert share == pytest.approx(81 / 82 if correct[0] else 1 / 82)


def test_equal_traces_recommend_none_and_a_guarantee_keeps_all():
    frame = answers(200).with_columns(
        surprisal=pl.lit([0.1], pl.List(pl.Float32)),
        entropy=pl.lit([0.1], pl.List(pl.Float32)),
        prompt="example_id",
        correct=pl.int_range(pl.len()) % 20 > 0,
    )
    file = fitted_file(frame)
    training = make_training_set(frame, "t", SETTINGS)
    said = describe_labels(training, file.estimators)
    assert said.startswith("The traces hardly tell these answers apart")
    kept = {
        t.error_rate: t.coverage for t in file.estimators["mean_of_three"].risk_control.thresholds
    }
    assert kept[0.2] == 1.0
