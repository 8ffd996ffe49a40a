"""The calibrator that parts of several names share, against SciPy and scikit-learn."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tracecal.fits.fits import Coefficients, Constant, Pooled, as_json
from tracecal.fits.pooled import by_part, fit_pooled, part_codes
from tracecal.fits.predictions import calibrate_all, pick_baselines
from tracecal.fits.regression import fit
from tracecal.statistics.splits import make_splits

NAMES = ["capital", "continent", "currency"]


def parts(n, seed, d=1, names=3):
    """Scores and the numbers of names [n, d + 1], and labels; each name has its own curve."""
    rng = np.random.default_rng(seed)
    x, code = 3 + 2 * rng.normal(size=(n, d)), rng.integers(0, names, n)
    shift, slope = rng.normal(size=names), 1 + 0.5 * rng.normal(size=names)
    correct = rng.random(n) < expit(shift[code] + slope[code] * (x[:, 0] - 3) / 2)
    correct[:2] = [True, False]
    return np.column_stack([x, code]), correct


def optimum(x, correct, names=3):
    """The probabilities of the best fit by L-BFGS, parameter by parameter as the formula has it."""
    features, code = x[:, :-1], x[:, -1].astype(int)
    z, d = (features - features.mean(0)) / features.std(0), features.shape[1]
    y = np.where(correct, 1, -1)

    def unpacked(theta):
        return theta[0], theta[1 : 1 + d], theta[1 + d : 1 + d + names], theta[1 + d + names :]

    def margins(theta):
        intercept, slopes, shifts, own = unpacked(theta)
        deviations = own.reshape(names, d)
        return intercept + shifts[code] + (z * (slopes + deviations[code])).sum(1)

    def objective(theta):
        _, slopes, shifts, own = unpacked(theta)
        penalty = (slopes**2).sum() / 2 + (shifts**2).sum() / 2 + 10 * (own**2).sum() / 2
        return np.logaddexp(0, -y * margins(theta)).sum() + penalty

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 10**6}
    start = np.zeros(1 + d + names + names * d)
    return expit(margins(minimize(objective, start, method="L-BFGS-B", options=options).x))


@pytest.mark.parametrize("n", [12, 60, 300])
@pytest.mark.parametrize("d", [1, 3])
def test_a_pooled_fit_is_the_optimum(n, d):
    x, correct = parts(n, n, d)
    found = fit_pooled([(x, correct)], NAMES)[0].predict(x)
    assert found == pytest.approx(optimum(x, correct), abs=1e-4)


def test_fits_of_several_data_at_once_are_those_of_each():
    data = [parts(40, seed) for seed in range(3)] + [parts(25, 9)]
    together = fit_pooled(data, NAMES)
    for (x, correct), found in zip(data, together, strict=True):
        alone = fit_pooled([(x, correct)], NAMES)[0]
        assert found.predict(x) == pytest.approx(alone.predict(x), abs=1e-9)


def test_one_name_is_a_fit_with_the_two_penalties_in_series():
    """A slope s = w + v of least w²/2 + 10 v²/2 costs (10/11) s²/2."""
    x, correct = parts(80, 4, names=1)
    found = fit_pooled([(x, correct)], NAMES[:1])[0]
    z = (x[:, :1] - x[:, :1].mean()) / x[:, :1].std()
    one = LogisticRegression(C=1.1, tol=1e-10, max_iter=10_000).fit(z, correct)
    assert found.predict(x) == pytest.approx(one.predict_proba(z)[:, 1], abs=1e-5)


@settings(deadline=None, max_examples=30)
@given(st.integers(6, 40), st.integers(0, 10_000), st.sampled_from([1e-6, 1.0, 1e6]))
def test_neither_the_unit_of_a_score_nor_the_order_of_names_matters(n, seed, unit):
    x, correct = parts(n, seed)
    first = fit_pooled([(x, correct)], NAMES)[0].predict(x)
    other = np.column_stack([x[:, :-1] * unit, 2 - x[:, -1]])
    again = fit_pooled([(other, correct)], NAMES[::-1])[0].predict(other)
    assert again == pytest.approx(first, abs=1e-6)


def test_a_name_without_labels_and_one_that_is_unknown_get_the_common_curve():
    x, correct = parts(60, 5)
    seen = x[:, -1] != 2
    found = fit_pooled([(x[seen], correct[seen])], NAMES)[0]
    assert found.weights[2] == pytest.approx(found.common_weights)
    assert found.intercepts[2] == pytest.approx(found.common_intercept)
    rows = np.column_stack([x[:4, :-1], np.full(4, -1.0)])
    known = np.column_stack([x[:4, :-1], np.full(4, 2.0)])
    assert found.predict(rows) == pytest.approx(found.predict(known))


def test_few_labels_give_nearly_the_common_fit_and_many_each_names_own():
    def distance(n):
        x, correct = parts(n, 11)
        found = fit_pooled([(x, correct)], NAMES)[0].predict(x)
        own = np.empty(n)
        for code in range(3):
            rows = x[:, -1] == code
            own[rows] = fit(x[rows, :-1], correct[rows], "platt").predict(x[rows, :-1])
        common = fit(x[:, :-1], correct, "platt").predict(x[:, :-1])
        return np.abs(found - common).mean(), np.abs(found - own).mean()

    near_common, far_from_own = distance(15)
    assert near_common < far_from_own
    far_from_common, near_own = distance(3000)
    assert near_own < 0.02 < far_from_common


def test_one_class_is_laplaces_constant_and_json_gives_every_fit_back():
    x, correct = parts(30, 6)
    fits = fit_pooled([(x, correct), (x, np.ones(30, dtype=bool))], NAMES)
    assert [type(one) for one in fits] == [Pooled, Constant]
    for one in fits:
        restored = TypeAdapter(Coefficients).validate_python(as_json(one))
        assert restored.predict(x) == pytest.approx(one.predict(x), abs=0)


def test_every_estimator_without_a_fit_of_its_own_is_pooled():
    x, correct = parts(90, 7, d=2)
    ids = [f"e{n:02}" for n in range(90)]
    rows = pl.DataFrame({"example_id": ids, "part": [NAMES[int(code)] for code in x[:, -1]]})
    answers = pl.DataFrame(
        {"example_id": ids, "correct": correct, "scores.a": x[:, 0], "features.b": x[:, 1]}
    ).join(part_codes(rows, NAMES), on="example_id")
    splits = make_splits(pl.DataFrame({"example_id": ids, "group_id": ids}), "t", 1, 2, 0.5)
    estimators = {"a": ["scores.a"], "both": ["scores.a", "features.b"], "raw": ["scores.a"]}
    columns, fits = by_part(estimators, {"raw": "identity"})
    predictions, stored = calibrate_all(answers, splits, columns, "platt", fits, part_names=NAMES)
    assert stored["both"].features == ("a", "b", "part_of_answer")
    assert {name: one.final.kind for name, one in stored.items()} == {
        "a": "pooled",
        "both": "pooled",
        "raw": "identity",
    }
    picked = pick_baselines(answers, splits, columns, stored, ["a"])
    assert picked["baseline"].to_list() == ["a", "a"]
    first = predictions.filter(estimator="a", split=0).row(0, named=True)
    at = ids.index(first["example_id"])
    used = np.isin(ids, splits.filter(split=0, part="calibration")["example_id"].to_list())
    own = fit_pooled([(x[used][:, [0, 2]], correct[used])], NAMES)[0]
    assert first["probability"] == pytest.approx(own.predict(x[[at]][:, [0, 2]])[0])
