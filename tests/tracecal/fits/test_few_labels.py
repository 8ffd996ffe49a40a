"""Ridges, stack of six and mean of three against SciPy and scikit-learn, by hand and by their invariances."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from support import metrics_one_by_one as one_by_one
from tracecal.estimators.feature_sets import TRACE_PLUS_FEATURES
from tracecal.estimators.registry import ESTIMATORS, ON_LOGARITHMS
from tracecal.fits import regression
from tracecal.fits.fits import Constant, LogOddsMean, probability_bounds
from tracecal.fits.predictions import calibrate_all
from tracecal.fits.regression import (
    EITHER_SIGN,
    MEMBERS,
    Member,
    fit_all,
    fit_mixtures,
    fit_prior_ridge,
    fit_ridge,
    mixture_weights,
)
from tracecal.statistics.splits import make_splits

BY_ID = {entry.id: entry for entry in ESTIMATORS}
STACK = BY_ID["stack_of_six"]
NAMES = [name.split(".")[1] for name in STACK.inputs]
RIDGE = BY_ID["log_ridge"].features
SURPRISAL = BY_ID["surprisal_ridge"].features
FREE = EITHER_SIGN


def answers(n, seed, features=NAMES, noise=1.0):
    """Confidences that share a cause, and labels; some features point the wrong way."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=(n, 1))
    signs = rng.choice([-0.3, 1.0], size=len(features))
    x = signs * cause + noise * rng.normal(size=(n, len(features)))
    correct = rng.random(n) < expit(cause[:, 0])
    correct[:2] = [True, False]
    return x, correct


def bounded(x, correct, features, penalty=1, centre=0.0, intercept_deviation=np.inf):
    """Weights and intercept by L-BFGS-B; `centre` is that of confidences."""
    z, y = (x - x.mean(0)) / x.std(0), np.where(correct, 1, -1)

    def objective(theta):
        loss = np.logaddexp(0, -y * (theta[0] + z @ theta[1:])).sum()
        distance = theta[1:] - np.array([0.0 if name in FREE else centre for name in features])
        return loss + penalty * (distance**2).sum() / 2 + (theta[0] / intercept_deviation) ** 2 / 2

    bounds = [(None, None), *((None if name in FREE else 0, None) for name in features)]
    options = {"ftol": 1e-14, "gtol": 1e-7, "maxiter": 10_000, "maxfun": 10**6}
    found = minimize(objective, np.zeros(len(bounds)), bounds=bounds, options=options)
    return found.x[1:], found.x[0]


@pytest.mark.parametrize("n", [20, 60, 300])
@pytest.mark.parametrize("seed", range(3))
def test_a_ridge_is_the_bounded_optimum(n, seed):
    x, correct = answers(n, seed, RIDGE)
    found = fit_ridge([(x, correct)], RIDGE)[0]
    weights, intercept = bounded(x, correct, RIDGE, penalty=10)
    assert [found.intercept, *found.weights] == pytest.approx([intercept, *weights], abs=2e-3)


@pytest.mark.parametrize("n", [5, 60, 300])
@pytest.mark.parametrize("seed", range(3))
def test_a_surprisal_ridge_is_pulled_to_its_prior(n, seed):
    x, correct = answers(n, seed, SURPRISAL)
    fitted = fit_prior_ridge([(x, correct)], SURPRISAL)[0]
    weights, intercept = bounded(x, correct, SURPRISAL, 10, 0.8 / 5, 1.8)
    assert [fitted.intercept, *fitted.weights] == pytest.approx([intercept, *weights], abs=1e-4)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(2, 40),
    seed=st.integers(0, 10_000),
    noise=st.sampled_from([1e-4, 0.3, 3.0]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_no_ridge_can_be_improved(n, seed, noise, scale):
    """The Karush-Kuhn-Tucker conditions, sufficient as the objective is strictly convex."""
    x, correct = answers(n, seed, RIDGE, noise)
    found = fit_ridge([(x * scale, correct)], RIDGE)[0]
    z, weights = (x * scale - found.means) / found.scales, np.array(found.weights)
    error = found.predict(x * scale) - correct
    gradient = error @ z + 10 * weights
    free = np.array([name in FREE for name in RIDGE])
    assert (weights[~free] >= 0).all()
    assert abs(error.sum()) < 1e-6
    assert (np.abs(gradient[free | (weights > 0)]) < 1e-6).all()
    assert (gradient[~free & (weights == 0)] > -1e-6).all()


@pytest.mark.parametrize("penalty", [0.3, 1.0, 10.0])
def test_without_bounds_a_penalty_is_scikit_learns(penalty):
    x, correct = answers(80, 1, RIDGE)
    found = fit_all([(x, correct)], "platt", penalty)[0]
    z = (x - x.mean(0)) / x.std(0)
    fitted = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(z, correct)
    expected = [*fitted.intercept_, *fitted.coef_[0]]
    assert [found.intercept, *found.weights] == pytest.approx(expected, abs=1e-5)


def test_a_confidence_that_ranks_the_wrong_way_round_counts_for_nothing():
    x = np.arange(20.0)[:, None]
    correct = np.arange(20) < 10
    assert fit_ridge([(x, correct)], ["mean_entropy_log_conf"])[0].weights == [0.0]
    assert fit_ridge([(x, correct)], ["log_length"])[0].weights[0] < -0.5
    level = fit_ridge([(x, correct)], ["mean_entropy_log_conf"])[0]
    assert level.predict(x) == pytest.approx([0.5] * 20)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 30), k=st.integers(2, 5), seed=st.integers(0, 1000))
def test_weights_maximise_the_posterior(n, k, seed):
    likelihood = np.random.default_rng(seed).uniform(0.01, 1, size=(n, k))

    def minus_posterior(u):
        v = np.exp(u - logsumexp(u))
        return -np.log(likelihood @ v).sum() - 5 / k * np.log(v).sum()

    best = minimize(minus_posterior, np.zeros(k), options={"gtol": 1e-9}).x
    expected = np.exp(best - logsumexp(best))
    weights = mixture_weights(likelihood)
    assert weights == pytest.approx(expected, abs=1e-6)
    # A step of expectation maximisation, another way to the optimum, leaves them where they are.
    shares = likelihood * weights
    shares = shares / shares.sum(axis=1, keepdims=True)
    assert (shares.sum(axis=0) + 5 / k) / (n + 5) == pytest.approx(weights, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(1, 3000), k=st.integers(2, 9), power=st.integers(1, 30), seed=st.integers(0, 99)
)
def test_weights_settle_however_uneven_the_likelihoods_are(n, k, power, seed):
    rng = np.random.default_rng(seed)
    likelihood = rng.uniform(size=(n, k)) ** (power * rng.uniform(size=k))
    weights = mixture_weights(likelihood)
    clipped = likelihood.clip(min=1e-4)
    slopes = (clipped / (clipped @ weights)[:, None]).sum(axis=0) + 5 / k / weights
    assert slopes == pytest.approx([n + 5] * k, rel=1e-6)  # equal at the optimum
    assert weights.sum() == pytest.approx(1, abs=1e-12)


def test_weights_by_hand():
    assert mixture_weights(np.empty((0, 4))) == pytest.approx([0.25] * 4)
    assert mixture_weights(np.full((9, 7), 0.3)) == pytest.approx([1 / 7] * 7)
    # One answer, two fits, the second of which was all but wrong: v = (r + 2.5) / 6, where r is
    # v / (v + (1 - v) / 10_000), all but 1.
    assert mixture_weights(np.array([[1.0, 0.0]]))[0] == pytest.approx(3.5 / 6, abs=1e-4)


def test_weights_that_never_settle_are_an_error(monkeypatch):
    monkeypatch.setattr(regression, "MAX_STEPS", 1)
    with pytest.raises(ArithmeticError, match="still move after 1 Newton steps"):
        mixture_weights(np.array([[1.0, 0.1]]))


def member_by_hand(member, x, correct, new):
    """A member's probabilities of `new`, by SciPy and scikit-learn."""
    if member.fit == "rising":
        found = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x[:, 0], correct)
        return found.predict(new[:, 0])
    if member.fit == "signed":
        weights, intercept = bounded(x, correct, member.features)
    else:
        *_, weights, intercept = one_by_one.optimum(x, correct)
    return expit(intercept + (new - x.mean(0)) / x.std(0) @ weights)


def test_a_mixture_is_what_its_definition_says():
    x, correct = answers(45, 3)
    group = np.arange(45) // 3
    mixture = fit_mixtures([(x, correct, group)], NAMES)[0]
    held_out, whole = np.empty((45, len(MEMBERS))), []
    for k, member in enumerate(MEMBERS):
        own = x[:, [NAMES.index(name) for name in member.features]]
        for fold in range(5):
            out = group % 5 == fold
            p = member_by_hand(member, own[~out], correct[~out], own[out])
            held_out[out, k] = np.where(correct[out], p, 1 - p)
        whole.append(member_by_hand(member, own, correct, own))
    weights = mixture_weights(held_out)
    assert len(MEMBERS) == 6
    assert mixture.weights == pytest.approx(weights, abs=1e-3)
    assert mixture.predict(x) == pytest.approx(weights @ np.array(whole), abs=1e-3)
    assert sum(mixture.weights) == pytest.approx(1)


def test_isotonic_members_only_rise():
    """Where confident answers are wrong a rising fit is the base rate, whatever the folds say."""
    x = np.arange(40.0)[:, None]
    correct = np.arange(40) < 20
    members = [Member(("log_likelihood",), "rising")]
    mixture = fit_mixtures([(x, correct, np.arange(40))], ["log_likelihood"], members)[0]
    assert mixture.predict(x) == pytest.approx([0.5] * 40)


def test_no_group_is_on_both_sides_of_a_fold(monkeypatch):
    x, correct = answers(60, 4)
    x[:, NAMES.index("log_likelihood")] = group = np.arange(60) // 4
    fitted = []
    platt = regression.fit_all

    def spy(parts, *options, **bounds):
        fitted.extend(own[:, 0] for own, _ in parts)
        return platt(parts, *options, **bounds)

    monkeypatch.setattr(regression, "fit_all", spy)
    fit_mixtures([(x, correct, group)], NAMES, [Member(("log_likelihood",))])
    assert [len(used) for used in fitted] == [60, *[48] * 5]
    for used in fitted:
        assert set(np.unique(used, return_counts=True)[1]) == {4}


def test_the_order_of_answers_and_of_fits_changes_nothing():
    x, correct = answers(40, 5)
    group, order = np.arange(40) // 2, np.random.default_rng(1).permutation(40)
    one = fit_mixtures([(x, correct, group)], NAMES)[0]
    two = fit_mixtures([(x[order], correct[order], group[order])], NAMES, MEMBERS[::-1])[0]
    assert two.predict(x) == pytest.approx(one.predict(x), abs=1e-7)
    together = fit_mixtures([(x, correct, group), (x[:25], correct[:25], group[:25])], NAMES)
    assert together[0].predict(x) == pytest.approx(one.predict(x))


def test_labels_of_one_class_give_the_rule_of_succession():
    x, _ = answers(8, 6)
    for label, expected in ((True, 0.9), (False, 0.1)):
        mixture = fit_mixtures([(x, np.full(8, label), np.arange(8))], NAMES)[0]
        assert mixture.predict(x) == pytest.approx([expected] * 8)
    assert fit_ridge([(x[:, :1], np.full(8, True))], ["log_length"]) == [Constant(0.9)]


def frame(n=90, seed=7):
    x, correct = answers(n, seed)
    columns = dict(zip(STACK.inputs, x.T, strict=True))
    further = [name for name in BY_ID["log_ridge"].inputs if name not in columns]
    columns |= dict(zip(further, answers(n, seed, further)[0].T, strict=True))
    ids = [f"e{i:03}" for i in range(n)]
    labelled = pl.DataFrame({"example_id": ids, "correct": correct, **columns})
    groups = pl.DataFrame({"example_id": ids, "group_id": [f"g{i // 2}" for i in range(n)]})
    return labelled, make_splits(groups, "task", 1, 3, 0.35)


def test_the_protocol_fits_each_estimator_in_its_own_way_and_its_json_redoes_the_predictions():
    labelled, splits = frame()
    few = [BY_ID[name] for name in (*ON_LOGARITHMS, "mean_of_three")]
    estimators = {entry.id: entry.inputs for entry in few} | {
        "trace_plus": [f"features.{name}" for name in TRACE_PLUS_FEATURES]
    }
    own_fits = {entry.id: entry.fit for entry in few if entry.fit}
    assert own_fits == {
        "log_ridge": "ridge",
        "stack_of_six": "mixture",
        "mean_of_three": "log_odds_mean",
    }
    predictions, calibrators = calibrate_all(labelled, splits, estimators, "platt", own_fits)
    again = calibrate_all(
        labelled.sample(fraction=1, shuffle=True, seed=3),
        splits.sample(fraction=1, shuffle=True, seed=4),
        estimators,
        "platt",
        own_fits,
    )
    assert again[0].equals(predictions)
    assert again[1] == calibrators
    for name, columns in estimators.items():
        rows = predictions.filter(estimator=name, split=2).join(labelled, on="example_id")
        x = rows.select(columns).to_numpy()
        redone = calibrators[name].splits[2].predict(x)
        assert rows["probability"].to_numpy() == pytest.approx(redone, abs=1e-12)
    proba = predictions.pivot("estimator", index=["split", "example_id"], values="probability")
    three = np.mean([logit(proba[name].to_numpy()) for name in ON_LOGARITHMS], axis=0)
    assert logit(proba["mean_of_three"].to_numpy()) == pytest.approx(three, abs=1e-9)
    alone, _ = calibrate_all(
        labelled, splits, {"mean_of_three": estimators["mean_of_three"]}, "platt", own_fits
    )
    assert alone.equals(predictions.filter(estimator="mean_of_three"))
    assert calibrators["stack_of_six"].final.kind == "mixture"
    weights = dict(zip(RIDGE, calibrators["log_ridge"].final.weights, strict=True))
    assert all(weight >= 0 for name, weight in weights.items() if name not in FREE)
    assert min(calibrators["trace_plus"].final.weights) < 0


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), averaged=st.booleans())
def test_a_mixtures_bounds_hold_whatever_lies_between_those_of_its_inputs(seed, averaged):
    rng = np.random.default_rng(seed)
    x, correct = answers(30, seed)
    mixture = fit_mixtures([(x, correct, np.arange(30))], NAMES)[0]
    if averaged:
        mixture = LogOddsMean(mixture.columns, mixture.fits)
    low, high = x - rng.uniform(0, 1, x.shape), x + rng.uniform(0, 1, x.shape)
    least, most = probability_bounds(mixture, np.stack([low, low, high]))[1:]
    for _ in range(10):
        probability = mixture.predict(rng.uniform(low, high))
        assert (probability >= least - 1e-12).all() and (probability <= most + 1e-12).all()
    assert probability_bounds(mixture, np.stack([x, x, x]))[0] == pytest.approx(mixture.predict(x))
    unknown = probability_bounds(mixture, np.stack([x, np.full_like(x, np.nan), high]))[1:]
    assert np.isnan(unknown[0]).all()
