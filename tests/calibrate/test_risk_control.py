"""Thresholds with a guarantee: does it hold, over thousands of data sets with known risks?"""

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from tracecal.calibrate.protocol import Constant, Identity, Isotonic, as_json, fit, from_json
from tracecal.calibrate.risk_control import (
    independent,
    p_values,
    passed,
    promise,
    risk_control,
    threshold_sequence,
)
from tracecal.calibrate.splits import make_splits

DATASETS = 20_000
RATE, CONFIDENCE = 0.2, 0.9

# Risk in each twentieth of the answers, the most confident first.
RISKS = {
    "just too high everywhere": np.full(20, 0.205),
    "confidently wrong": np.r_[np.full(4, 0.22), np.full(10, 0.1), np.full(6, 0.6)],
    "up and down": np.tile([0.05, 0.05, 0.4, 0.4, 0.12], 4),
    "just reached, then lost": np.r_[np.full(8, 0.15), np.full(12, 0.25)],
    "falling": np.linspace(0.4, 0.1, 20),
}


def simulated(risks, n=200, seed=0):
    """Kept and wrong answers [datasets, thresholds], and the true risk at each threshold."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, np.full(len(risks), 1 / len(risks)), size=DATASETS)
    wrong = rng.binomial(counts, risks)
    true = np.cumsum(risks) / np.arange(1, len(risks) + 1)
    # The first thresholds keep too few for any test to pass; the sequence does not hold them.
    return counts.cumsum(axis=1)[:, 3:], wrong.cumsum(axis=1)[:, 3:], true[3:]


def broken(chosen, true):
    """The share of data sets whose chosen threshold (-1: none) has a risk above the wished one."""
    return float(((chosen >= 0) & (true[chosen] > RATE)).mean())


@pytest.mark.parametrize("name", RISKS)
def test_the_promise_holds_with_the_stated_confidence(name):
    kept, wrong, true = simulated(RISKS[name])
    chosen = passed(p_values(wrong, kept, RATE), CONFIDENCE) - 1
    margin = 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DATASETS)
    assert broken(chosen, true) <= 1 - CONFIDENCE + margin


@pytest.mark.parametrize("name", list(RISKS)[:4])
def test_a_scan_over_thresholds_would_break_it(name):
    kept, wrong, true = simulated(RISKS[name])
    low = wrong <= RATE * kept
    by_share = np.where(low.any(axis=1), low.shape[1] - 1 - low[:, ::-1].argmax(axis=1), -1)
    assert broken(by_share, true) > 0.25
    if name == "just too high everywhere":
        small = p_values(wrong, kept, RATE) <= 1 - CONFIDENCE
        by_test = np.where(small.any(axis=1), small.argmax(axis=1), -1)
        assert broken(by_test, true) > 0.15


def risk_above(t):
    """Errors among p >= t for uniform p: one in three of p >= 0.97 is wrong, else 0.6 (1 - p)."""
    below = 0.3 * ((1 - t) ** 2 - 0.03**2) if t < 0.97 else 0.0
    return (below + (1 - max(t, 0.97)) / 3) / (1 - t)


def test_the_promise_holds_from_probabilities_to_threshold():
    rng = np.random.default_rng(1)
    datasets, failures, promised = 1500, 0, 0
    for _ in range(datasets):
        seen, probability = rng.random(105), rng.random(300)
        risk = np.where(probability >= 0.97, 1 / 3, 0.6 * (1 - probability))
        found = promise(seen, probability, rng.random(300) >= risk, RATE, CONFIDENCE)
        promised += found.threshold is not None
        failures += found.threshold is not None and risk_above(found.threshold) > RATE
    assert promised > 0.1 * datasets
    assert failures <= datasets * (0.1 + 3 * math.sqrt(0.09 / datasets))


def logistic(features=("a", "b")):
    """A calibrators entry with σ(a + 0 b)."""
    parts = {"means": [0.0] * 2, "scales": [1.0] * 2, "weights": [1.0, 0.0], "intercept": 0.0}
    return {"features": list(features), "splits": {"0": {"kind": "logistic", **parts}}}


def answers(rng, groups, variants, risk):
    """Answers whose variants score alike and are right or wrong together, whatever the score."""
    correct = np.repeat(rng.random(groups) >= risk, variants)
    ids = [f"g{g:04}-{v}" for g in range(groups) for v in range(variants)]
    return pl.DataFrame(
        {
            "example_id": ids,
            "group_id": [name.split("-")[0] for name in ids],
            "correct": correct,
            "a": np.repeat(rng.normal(size=groups), variants) + 0.01 * rng.normal(size=len(ids)),
            "b": rng.normal(size=len(ids)),
        }
    )


def controlled(frame, seed=0, rates=(0.3,), confidence=0.9):
    split = make_splits(frame["example_id"].to_list(), "task", seed, 1, 0.35)
    return risk_control(logistic(), frame, split, rates, confidence)


def test_variants_of_a_question_do_not_break_the_promise():
    rng = np.random.default_rng(2)
    datasets, grouped, each = 250, 0, 0
    for seed in range(datasets):
        frame = answers(rng, 150, 4, 0.31)
        alone = frame.with_columns(group_id="example_id")
        grouped += controlled(frame, seed)["thresholds"][0]["threshold"] is not None
        each += controlled(alone, seed)["thresholds"][0]["threshold"] is not None
    assert grouped <= datasets * (0.1 + 3 * math.sqrt(0.09 / datasets))
    # All risks are 0.31, so that any promise is a false one.
    assert each > datasets * 0.15


def test_of_each_group_one_answer_is_tested_and_none_that_the_fit_has_seen():
    rng = np.random.default_rng(3)
    frame = answers(rng, 60, 3, 0.2)
    split = make_splits(frame["example_id"].to_list(), "task", 5, 1, 0.35)
    placed = split.join(frame, on="example_id")
    kept = independent(placed)
    group = dict(frame.select("example_id", "group_id").iter_rows())
    groups = [group[name] for name in kept["example_id"]]
    fitted = set(placed.filter(part="calibration")["group_id"])
    assert len(set(groups)) == len(groups)
    assert set(groups) == set(frame["group_id"]) - fitted
    assert 0 < len(groups) < 60


@settings(max_examples=200)
@given(
    kept=st.integers(0, 400),
    share=st.floats(0, 1),
    rate=st.floats(0.001, 0.999),
)
def test_p_values_are_scipys_binomial_test(kept, share, rate):
    wrong = int(share * kept)
    expected = binomtest(wrong, kept, rate, "less").pvalue if kept else 1.0
    assert p_values(np.array(wrong), np.array(kept), rate) == pytest.approx(expected, rel=1e-9)


def test_the_sequence_ends_at_the_first_test_that_fails():
    p = np.array([[0.05, 0.1, 0.2, 0.01], [0.2, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert passed(p, 0.9).tolist() == [2, 0, 4]


@settings(max_examples=50)
@given(
    seen=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    n=st.integers(0, 500),
    rate=st.sampled_from([0.01, 0.05, 0.3, 0.9]),
)
def test_thresholds_fall_from_twice_what_suffices_to_the_lowest(seen, n, rate):
    thresholds = threshold_sequence(np.array(seen), n, rate, 0.9)
    assert set(thresholds) <= set(seen)
    assert (np.diff(thresholds) < 0).all()
    assert thresholds[-1] == min(seen)
    enough = next(k for k in range(1, 1000) if (1 - rate) ** k <= 0.1)
    first = np.mean(np.array(seen) >= thresholds[0])
    assert first >= min(2 * enough / max(n, 1), 1) - 1e-9


def test_what_nothing_can_promise_is_none_and_what_is_always_right_is_kept_whole():
    seen, probability = np.linspace(0, 1, 101), np.linspace(0.01, 1, 100)
    none = promise(seen, probability, np.zeros(100, dtype=bool), 0.2, 0.9)
    assert (none.threshold, none.n, none.kept, none.wrong) == (None, 100, 0, 0)
    right = promise(seen, probability, np.ones(100, dtype=bool), 0.2, 0.9)
    assert (right.threshold, right.n, right.kept, right.wrong) == (0.0, 100, 100, 0)
    few = np.ones(10, dtype=bool)
    assert promise(seen, probability[:10], few, 0.2, 0.9).threshold is None
    assert promise(seen, probability[:11], np.ones(11, dtype=bool), 0.2, 0.9).threshold == 0.0
    empty = np.array([])
    assert promise(seen, empty, empty.astype(bool), 0.2, 0.9).threshold is None
    assert promise(empty, probability, probability > 0, 0.2, 0.9).threshold is None


def test_a_user_can_apply_the_json_by_hand():
    rng = np.random.default_rng(4)
    frame = answers(rng, 300, 1, 0.5).with_columns(
        correct=pl.Series(rng.random(300)) < 1 / (1 + (-3 * pl.col("a")).exp())
    )
    split = make_splits(frame["example_id"].to_list(), "task", 0, 1, 0.35)
    stored = json.loads(json.dumps(controlled(frame, rates=(0.1, 0.2, 0.3))))
    assert (stored["split"], stored["confidence"]) == (0, 0.9)
    evaluated = frame.join(split.filter(part="evaluation"), on="example_id")
    fits = logistic()["splits"]["0"]
    z = fits["intercept"] + sum(
        w * (evaluated[f] - m) / s
        for f, m, s, w in zip(
            logistic()["features"], fits["means"], fits["scales"], fits["weights"], strict=True
        )
    )
    probability = 1 / (1 + (-z).exp())
    assert [one["error_rate"] for one in stored["thresholds"]] == [0.1, 0.2, 0.3]
    assert stored["thresholds"][2]["threshold"] is not None
    for one in stored["thresholds"]:
        bar = 2 if one["threshold"] is None else one["threshold"]
        kept = evaluated.filter(probability >= bar)
        assert (one["n"], one["kept"]) == (195, kept.height)
        assert one["wrong"] == (~kept["correct"]).sum()


def test_row_order_changes_nothing_and_null_features_are_left_out():
    frame = answers(np.random.default_rng(5), 200, 2, 0.05)
    plain = controlled(frame)
    assert controlled(frame.sample(fraction=1, shuffle=True, seed=1)) == plain
    assert plain["thresholds"][0]["threshold"] is not None
    holed = frame.with_columns(b=pl.when(pl.int_range(pl.len()) % 4 > 0).then("b"))
    assert 0 < controlled(holed)["thresholds"][0]["n"] < 200


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
    assert from_json(json.loads(json.dumps(as_json(calibrator)))) == calibrator
