"""The calibration protocol against an independent optimiser and by its invariances."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from support import metrics_one_by_one as one_by_one
from tracecal.fits import regression
from tracecal.fits.fits import Coefficients, Constant, Identity, Isotonic, as_json
from tracecal.fits.predictions import calibrate_all
from tracecal.fits.regression import fit, fit_all
from tracecal.statistics.splits import make_splits


def sample(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * [1, 50, 0.01][:d] + [0, 3, -1][:d]
    correct = rng.random(n) < 1 / (1 + np.exp(-(x[:, 0] + 0.3)))
    return x, correct


def test_platt_minimises_the_penalised_likelihood():
    x, correct = sample()
    z = (x - x.mean(0)) / x.std(0)

    def objective(theta):
        margins = (theta[0] + z @ theta[1:]) * np.where(correct, 1, -1)
        return np.logaddexp(0, -margins).sum() + 0.5 * (theta[1:] ** 2).sum()

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    calibrator = fit(x, correct, "platt")
    assert [calibrator.intercept, *calibrator.weights] == pytest.approx(best, abs=1e-5)
    expected = 1 / (1 + np.exp(-(best[0] + z @ best[1:])))
    np.testing.assert_allclose(calibrator.predict(x), expected, atol=1e-6)


def test_platt_raw_is_scikit_learn_on_the_raw_scores():
    x, correct = sample(d=1)
    model = LogisticRegression(tol=1e-12, max_iter=10_000).fit(x, correct)
    np.testing.assert_allclose(
        fit(x, correct, "platt_raw").predict(x), model.predict_proba(x)[:, 1], atol=1e-6
    )


def awkward_parts():
    """Features and labels that a Newton step could stumble over."""
    rng = np.random.default_rng(8)
    score = rng.normal(size=(80, 1))
    return {
        "plain": sample(),
        "many features": (rng.normal(size=(60, 10)), rng.random(60) < 0.4),
        "separable": (score, score[:, 0] > 0.1),
        "separable by far": (score**5 * 1e3, score[:, 0] > 0.1),
        "collinear": (np.hstack([score, 2 * score, score - 1]), rng.random(80) < 0.5),
        "constant feature": (np.hstack([score, np.full((80, 1), 7.0)]), rng.random(80) < 0.5),
        "all constant": (np.full((80, 1), 0.1), rng.random(80) < 0.3),
        "two answers": (np.array([[0.2], [0.9]]), np.array([True, False])),
        "rare class": (score, np.arange(80) == 5),
        "outlier": (np.append(score[:-1], [[1e8]], axis=0), rng.random(80) < 0.5),
        "large offset": (score + 1e6, score[:, 0] + rng.normal(size=80) > 0),
    }


@pytest.mark.parametrize("name", awkward_parts())
def test_fits_reach_scikit_learns_optimum(name):
    x, correct = awkward_parts()[name]
    found = fit(x, correct, "platt")
    _, _, weights, intercept = one_by_one.optimum(x, correct)
    assert [found.intercept, *found.weights] == pytest.approx([intercept, *weights], abs=1e-6)
    z = (x - found.means) / found.scales
    error = found.predict(x) - correct
    # At the optimum the penalised likelihood's gradient is 0.
    assert abs(error.sum()) < 1e-7
    np.testing.assert_allclose(error @ z + found.weights, 0, atol=1e-7)


@pytest.mark.parametrize("name", sorted({*awkward_parts()} - {"outlier", "large offset"}))
def test_raw_fits_reach_scikit_learns_optimum(name):
    x, correct = awkward_parts()[name]
    found = fit(x, correct, "platt_raw")
    _, _, weights, intercept = one_by_one.optimum(x, correct, raw=True)
    assert (found.means, found.scales) == ([0.0] * x.shape[1], [1.0] * x.shape[1])
    assert found.weights == pytest.approx(weights, rel=1e-5, abs=1e-6)
    assert found.intercept == pytest.approx(intercept, rel=1e-5, abs=1e-6)


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 4),
    seed=st.integers(0, 1000),
    spread=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_any_fit_reaches_scikit_learns_optimum(n, d, seed, spread):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * spread
    correct = rng.permutation(np.arange(n) < rng.integers(1, n))
    found = fit(x, correct, "platt")
    _, _, weights, intercept = one_by_one.optimum(x, correct)
    assert [found.intercept, *found.weights] == pytest.approx([intercept, *weights], abs=1e-6)


@pytest.mark.parametrize("method", ["platt", "platt_raw", "isotonic"])
def test_a_fit_does_not_depend_on_those_beside_it(method, monkeypatch):
    parts = [*awkward_parts().values(), (np.zeros((4, 1)), np.zeros(4, dtype=bool))]
    together = fit_all(parts + parts[::-1], method)
    monkeypatch.setattr(regression, "BLOCK", 1)
    alone = [fit(x, correct, method) for x, correct in parts]
    assert together == alone + alone[::-1]


def test_a_fit_that_does_not_converge_is_an_error(monkeypatch):
    x, correct = sample()
    monkeypatch.setattr(regression, "MAX_STEPS", 2)
    with pytest.raises(ArithmeticError, match="did not converge: 1 of 1 fits on 120 answers"):
        fit(x, correct, "platt")


def test_what_is_not_a_number_is_an_error_and_no_fit():
    x, correct = sample()
    x[3, 1] = np.nan
    with pytest.raises(ArithmeticError, match="did not converge"):
        fit(x, correct, "platt")


def test_steps_that_overshoot_are_halved(monkeypatch):
    x, correct = sample(d=1)
    expected = fit(x, correct, "platt")
    solve, tried = regression._solve, []

    def too_far(*arguments):
        tried.append(1)
        return solve(*arguments) * (40 if len(tried) == 1 else 1)

    monkeypatch.setattr(regression, "_solve", too_far)
    found = fit(x, correct, "platt")
    assert len(tried) > 2
    assert [found.intercept, *found.weights] == pytest.approx(
        [expected.intercept, *expected.weights], abs=1e-9
    )


@settings(deadline=None, max_examples=30)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100), sign=st.sampled_from([-1, 1]))
def test_platt_does_not_see_affine_maps_of_a_score(scale, shift, sign):
    x, correct = sample(d=1)
    mapped = sign * scale * x + shift
    np.testing.assert_allclose(
        fit(mapped, correct, "platt").predict(mapped),
        fit(x, correct, "platt").predict(x),
        atol=1e-6,
    )


def test_a_constant_score_predicts_the_base_rate():
    correct = np.array([True] * 3 + [False] * 7)
    for value in (0.0, 0.1, 1e6):
        x = np.full((10, 1), value)
        assert fit(x, correct, "platt").predict(x) == pytest.approx([0.3] * 10, abs=1e-6)


@pytest.mark.parametrize("method", ["platt", "platt_raw", "isotonic"])
@pytest.mark.parametrize(
    ("label", "n", "expected"), [(True, 8, 0.9), (False, 8, 0.1), (True, 0, 0.5)]
)
def test_one_class_gives_the_rule_of_succession(method, label, n, expected):
    calibrator = fit(np.arange(float(n))[:, None], np.full(n, label), method)
    assert calibrator == Constant(expected)
    assert calibrator.predict(np.zeros((3, 1))) == pytest.approx([expected] * 3)


@pytest.mark.parametrize("sign", [1, -1])
def test_isotonic_is_monotone_in_the_fitted_direction(sign):
    x, correct = sample(d=1)
    calibrator = fit(sign * x, correct, "isotonic")
    grid = calibrator.predict(np.sort(sign * x, axis=0))
    assert (np.diff(sign * grid) >= 0).all()
    assert grid.min() >= 0
    assert grid.max() <= 1
    assert calibrator.predict(x[:, :1] * 0 + 1e9).shape == (120,)


def answers_and_splits(n=60):
    x, correct = sample(n)
    ids = [f"e{index:03}" for index in range(n)]
    answers = pl.DataFrame(
        {"example_id": ids, "correct": correct, "scores.a": x[:, 0], "features.b": x[:, 1]}
    )
    alone = answers.select("example_id", group_id="example_id")
    return answers, make_splits(alone, "task", 1, 4, 0.35)


ESTIMATORS = {"a": ["scores.a"], "ab": ["scores.a", "features.b"]}


def test_predictions_cover_each_splits_evaluation_part_and_never_its_calibration_part():
    answers, splits = answers_and_splits()
    predictions, _ = calibrate_all(answers, splits, ESTIMATORS, "platt")
    evaluation = splits.filter(part="evaluation").select("split", "example_id")
    for name in ESTIMATORS:
        predicted = predictions.filter(estimator=name).select("split", "example_id")
        assert predicted.sort("split", "example_id").equals(evaluation.sort("split", "example_id"))


def test_labels_of_the_evaluation_part_change_no_prediction():
    answers, splits = answers_and_splits()
    one = splits.filter(split=0)
    evaluated = one.filter(part="evaluation")["example_id"]
    flipped = answers.with_columns(
        correct=pl.col("correct") ^ pl.col("example_id").is_in(evaluated.implode())
    )
    before, _ = calibrate_all(answers, one, ESTIMATORS, "platt")
    after, _ = calibrate_all(flipped, one, ESTIMATORS, "platt")
    assert before.equals(after)


def test_row_order_changes_nothing():
    answers, splits = answers_and_splits()
    shuffled = calibrate_all(
        answers.sample(fraction=1, shuffle=True, seed=3),
        splits.sample(fraction=1, shuffle=True, seed=4),
        ESTIMATORS,
        "platt",
    )
    plain = calibrate_all(answers, splits, ESTIMATORS, "platt")
    assert shuffled[0].equals(plain[0])
    assert shuffled[1] == plain[1]


def test_null_scores_are_left_out():
    answers, splits = answers_and_splits()
    nulls = answers.with_columns(
        pl.when(pl.int_range(pl.len()) % 3 > 0).then(pl.col("scores.a")).alias("scores.a")
    )
    kept = nulls.drop_nulls()
    predictions, _ = calibrate_all(nulls, splits, {"a": ["scores.a"]}, "platt")
    expected, _ = calibrate_all(kept, splits, {"a": ["scores.a"]}, "platt")
    assert predictions.equals(expected)
    assert set(predictions["example_id"]) <= set(kept["example_id"])


def test_a_score_that_is_null_everywhere_predicts_nothing():
    answers, splits = answers_and_splits()
    nulls = answers.with_columns(pl.lit(None, dtype=pl.Float64).alias("scores.a"))
    predictions, calibrators = calibrate_all(nulls, splits, {"a": ["scores.a"]}, "platt")
    assert predictions.height == 0
    assert as_json(calibrators["a"].final) == {"kind": "constant", "probability": 0.5}


def test_the_json_redoes_the_predictions():
    answers, splits = answers_and_splits()
    predictions, calibrators = calibrate_all(answers, splits, ESTIMATORS, "platt")
    stored = json.loads(calibrators["ab"].model_dump_json())
    assert stored["features"] == ["a", "b"]
    assert set(stored["splits"]) == {"0", "1", "2", "3"}
    two = stored["splits"]["2"]
    rows = predictions.filter(estimator="ab", split=2).join(answers, on="example_id")
    x = rows.select("scores.a", "features.b").to_numpy()
    z = (x - two["means"]) / two["scales"]
    expected = 1 / (1 + np.exp(-(two["intercept"] + z @ np.array(two["weights"]))))
    np.testing.assert_allclose(rows["probability"], expected, rtol=1e-12)
    x, correct = answers.select("scores.a", "features.b").to_numpy(), answers["correct"].to_numpy()
    final = as_json(fit(x, correct, "platt"))
    assert stored["final"].pop("kind") == final.pop("kind")
    assert all(stored["final"][name] == pytest.approx(final[name]) for name in final)


def test_an_uncalibrated_score_is_its_probability():
    answers, splits = answers_and_splits()
    answers = answers.with_columns((1 / (1 + (-pl.col("scores.a")).exp())).alias("scores.a"))
    predictions, calibrators = calibrate_all(
        answers, splits, {"a": ["scores.a"], "b": ["scores.a"]}, "platt", own_fits={"a": "identity"}
    )
    raw = predictions.filter(estimator="a").join(answers, on="example_id")
    assert (raw["probability"] == raw["scores.a"]).all()
    assert as_json(calibrators["a"].final) == {"kind": "identity"}
    assert calibrators["b"].final.kind == "logistic"


def test_a_split_without_calibration_answers_predicts_an_even_chance():
    answers, splits = answers_and_splits()
    unlabelled = splits.with_columns(
        part=pl.when(pl.col("split") == 1).then(pl.lit("evaluation")).otherwise("part")
    )
    predictions, _ = calibrate_all(answers, unlabelled, ESTIMATORS, "platt")
    assert (predictions.filter(split=1)["probability"] == 0.5).all()
    assert predictions.filter(split=1).height == 2 * answers.height


def test_without_estimators_there_is_no_prediction():
    answers, splits = answers_and_splits()
    predictions, calibrators = calibrate_all(answers, splits, {}, "platt")
    assert predictions.is_empty()
    assert calibrators == {}


@pytest.mark.parametrize(
    "calibrator",
    [
        Constant(0.3),
        Identity(),
        Isotonic([0.0, 1.0], [0.1, 0.9]),
        fit(np.arange(8.0)[:, None], np.arange(8) % 3 > 0, "platt"),
    ],
)
def test_a_calibrator_survives_json(calibrator):
    stored = json.loads(json.dumps(as_json(calibrator)))
    assert TypeAdapter(Coefficients).validate_python(stored) == calibrator
