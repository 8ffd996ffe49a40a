"""`tracecal.sklearn`: scikit-learn's own checks, and the same fits as the library's."""

import numpy as np
import polars as pl
import pytest
from sklearn.calibration import CalibrationDisplay
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import tracecal
from support.labelled_answers import answers, predictor_of, stored
from tracecal import sklearn as of_traces
from tracecal.estimators.features import compute_inputs
from tracecal.fits.regression import fit_ridge
from tracecal.sklearn import LogRidgeClassifier, TraceFeatures

FRAME = answers(200)
RIGHT = FRAME["correct"].to_numpy()


@parametrize_with_checks([LogRidgeClassifier(), LogRidgeClassifier(rising=[0]), TraceFeatures()])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def matrix(estimator):
    """The inputs of a fit as the calibration protocol computes them, and their names."""
    columns = of_traces.OF_ESTIMATOR[estimator]
    names = [column.split(".", 1)[1] for column in columns]
    return compute_inputs(FRAME, columns).select(columns).to_numpy(), names


@pytest.mark.parametrize("estimator", ["trace_plus", "log_ridge", "stack_of_six"])
def test_its_features_are_those_of_the_protocol(estimator):
    x, names = matrix(estimator)
    found = TraceFeatures(estimator).fit_transform(FRAME)
    assert found.columns == TraceFeatures(estimator).get_feature_names_out().tolist() == names
    assert np.array_equal(found.to_numpy(), x)


def test_traces_are_taken_in_any_form():
    expected = TraceFeatures().transform(FRAME)
    pairs = list(FRAME.select("surprisal", "entropy").rows())
    for given in (pairs, FRAME.to_pandas(), FRAME.to_dicts(), FRAME.to_arrow(), iter(pairs)):
        assert TraceFeatures().transform(given).equals(expected)
    without = TraceFeatures(["mean_entropy", "length"]).transform([([1.0], None)])
    assert without.rows() == [(None, 1.0)]


@pytest.mark.parametrize(
    ("features", "given", "said"),
    [
        ("trace_plsu", [], "the id of an estimator of traces"),
        (["mean"], [], "there is no feature 'mean'"),
        ("trace_plus", [([1.0], [1.0], [2.0])], "expected pairs"),
        ("trace_plus", [([1.0], [-1.0])], "negative or not finite"),
    ],
)
def test_what_it_cannot_use_is_refused(features, given, said):
    with pytest.raises(tracecal.InputError, match=said):
        TraceFeatures(features).transform(given)


def test_the_fit_is_the_librarys():
    pipeline = make_pipeline(TraceFeatures("log_ridge"), LogRidgeClassifier()).fit(FRAME, RIGHT)
    probability = pipeline.predict_proba(FRAME)[:, 1]
    x, names = matrix("log_ridge")
    final = predictor_of(stored(FRAME), "log_ridge", "made up").final
    assert probability == pytest.approx(final.predict(x), abs=1e-9)
    assert np.array_equal(probability, fit_ridge([(x, RIGHT)], names)[0].predict(x))


def test_weights_of_confidences_are_at_least_0_and_others_are_free():
    x = np.random.default_rng(0).normal(size=(100, 2))
    falling = x[:, 0] + x[:, 1] / 2 < 0
    free = LogRidgeClassifier().fit(x, falling).fit_.weights
    assert max(free) < 0
    for held in (
        LogRidgeClassifier(rising=[0]).fit(x, falling),
        LogRidgeClassifier(rising=["a"]).fit(pl.DataFrame(x, ["a", "b"]), falling),
        LogRidgeClassifier().fit(pl.DataFrame(x, ["mean_entropy_log_conf", "b"]), falling),
    ):
        assert held.fit_.weights[0] == 0 > held.fit_.weights[1]
    with pytest.raises(ValueError, match="X has no column c"):
        LogRidgeClassifier(rising=["c"]).fit(x, falling)


def test_a_pipeline_is_cross_validated():
    pipeline = make_pipeline(TraceFeatures("log_ridge"), LogRidgeClassifier())
    groups = np.arange(200) // 2
    scores = cross_val_score(
        pipeline, FRAME, RIGHT, cv=GroupKFold(4), scoring="roc_auc", groups=groups
    )
    assert len(scores) == 4 and np.mean(scores) > 0.7


def test_its_calibration_is_displayed():
    pipeline = make_pipeline(TraceFeatures("log_ridge"), LogRidgeClassifier()).fit(FRAME, RIGHT)
    shown = CalibrationDisplay.from_estimator(pipeline, FRAME, RIGHT, n_bins=5)
    assert len(shown.prob_true) == 5
    assert shown.y_prob.tolist() == pipeline.predict_proba(FRAME)[:, 1].tolist()


def test_every_class_has_an_example():
    for name in of_traces.__all__:
        assert ">>> " in getattr(of_traces, name).__doc__, name


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_output_is_set_as_on_any_transformer(container):
    features = TraceFeatures("log_ridge").set_output(transform=container).fit_transform(FRAME)
    assert type(features).__module__.partition(".")[0] == container
    assert np.array_equal(
        features.to_numpy(), TraceFeatures("log_ridge").transform(FRAME).to_numpy()
    )
    assert [*features.columns] == TraceFeatures("log_ridge").get_feature_names_out().tolist()


def test_only_public_names_are_listed():
    assert dir(of_traces) == sorted(of_traces.__all__)
