"""Errors separated from matched correct answers: against scikit-learn and by hand."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from trace_workflow.analyses import localized_errors as module
from trace_workflow.analyses.localized_errors import (
    GAIN,
    add_confidences,
    area,
    localized_errors,
    partial_area,
    roc_curve,
    true_rate_at,
)
from tracecal.statistics.resampling import Resampling

KINDS = ("number", "entity", "claim", "global")
ESTIMATORS = ["seq_logp", "mars", "trace_plus"]
BOOTSTRAP = Resampling(3, 12, 0.95)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(module, "N_MATCHINGS", 4)


def made(n=160, kinds=KINDS, seed=0, tasks=("a", "b")):
    rng = np.random.default_rng(seed)
    correct = rng.random(n) < 0.45
    kind = [None if right else kinds[i % len(kinds)] for i, right in enumerate(correct)]
    signal = {
        name: correct + rng.normal(0, spread, n)
        for name, spread in zip(ESTIMATORS, (1, 2, 0.6), strict=True)
    }
    return pl.DataFrame(
        {
            "model": "m",
            "task": [tasks[i % len(tasks)] for i in range(n)],
            "example_id": [f"e{i:03}" for i in range(n)],
            "group_id": [f"g{i // 2}" for i in range(n)],
            "length": rng.integers(1, 30, n).astype(float),
            "correct": correct,
            "error_kind": kind,
            **signal,
        },
        schema_overrides={"error_kind": pl.String},
    )


def measured(frame, table="localized_global_errors", estimators=ESTIMATORS):
    named = next((name for name in estimators if name != "trace_plus"), "absent")
    found = localized_errors(frame, table, estimators, named, BOOTSTRAP)
    keys = ("estimator", "slice", "metric")
    return {tuple(row[key] for key in keys): row for row in found.iter_rows(named=True)}


pairs = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=60).filter(
    lambda rows: len({is_error for _, is_error in rows}) == 2
)


@given(rows=pairs)
def test_areas_are_scikit_learns(rows):
    confidence, is_error = (np.array(column) for column in zip(*rows, strict=True))
    curve = roc_curve(confidence[is_error], confidence[~is_error])
    assert area(*curve) == pytest.approx(roc_auc_score(is_error, -confidence))
    assert partial_area(*curve) == pytest.approx(roc_auc_score(is_error, -confidence, max_fpr=0.1))


@given(rows=pairs, rate=st.sampled_from([0.05, 0.1, 0.2]))
def test_shares_found_are_the_best_of_all_thresholds(rows, rate):
    confidence, is_error = (np.array(column) for column in zip(*rows, strict=True))
    errors, correct = confidence[is_error], confidence[~is_error]
    best = max(
        (errors <= threshold).mean()
        for threshold in (-1, *confidence)
        if (correct <= threshold).sum() <= rate * len(correct) + 1e-9
    )
    assert true_rate_at(rate)(*roc_curve(errors, correct)) == pytest.approx(best)


def test_ten_pairs_by_hand():
    # Confidence of the correct answers 1 to 10; two errors below all, one among them, seven above.
    curve = roc_curve(np.array([0, 0, 2.5, *range(11, 18)]), np.arange(1.0, 11.0))
    assert area(*curve) == pytest.approx((10 + 10 + 8) / 100)
    assert true_rate_at(0.05)(*curve) == true_rate_at(0.10)(*curve) == pytest.approx(0.2)
    assert true_rate_at(0.20)(*curve) == pytest.approx(0.3)


def test_a_task_without_choice_is_measured_as_it_stands():
    # As many errors as correct answers: every matching pairs all of them.
    frame = made(tasks=("a",), kinds=("claim",))
    n = min(frame["correct"].sum(), (~frame["correct"]).sum())
    even = pl.concat([frame.filter("correct").head(n), frame.filter(~pl.col("correct")).head(n)])
    found = measured(even)
    for name in ESTIMATORS:
        mine = found[name, "localized", "auroc"]
        assert mine["value"] == pytest.approx(roc_auc_score(even["correct"], even[name]))
        assert mine["sd"] == pytest.approx(0)
        assert (mine["n"], mine["errors"]) == (n, n)
        assert 0 < mine["length_gap"] < 30
        assert mine["low"] < mine["value"] < mine["high"]


def test_the_mean_difference_in_length_by_hand():
    frame = made(n=4, tasks=("a",), kinds=("claim",)).with_columns(
        length=pl.Series([5.0, 9.0, 6.0, 12.0]),
        correct=pl.Series([True, True, False, False]),
        error_kind=pl.Series([None, None, "claim", "claim"]),
    )
    assert measured(frame)["mars", "localized", "auroc"]["length_gap"] == 2.0


def test_both_tables_state_one_overall_value_and_kinds_add_up():
    frame = made()
    whole, kinds = measured(frame), measured(frame, "localized_error_subtypes")
    for name in ESTIMATORS:
        overall = kinds[name, "localized", "auroc"]
        assert overall == whole[name, "localized", "auroc"]
        parts = [kinds[name, kind, "auroc"] for kind in module.LOCALIZED]
        assert sum(one["n"] for one in parts) == pytest.approx(overall["n"])
        assert sum(one["errors"] for one in parts) == overall["errors"]


def test_the_gain_is_over_the_named_baseline():
    found = measured(made())
    values = {name: found[name, "localized", "auroc"]["value"] for name in ESTIMATORS}
    named = next(name for name in ESTIMATORS if name != "trace_plus")
    gain = found[GAIN, "localized", "auroc"]
    assert gain["value"] == pytest.approx(values["trace_plus"] - values[named])
    assert gain["low"] < gain["high"]


def test_row_order_changes_nothing_and_the_seed_does():
    frame = made()
    shuffled = frame.sample(fraction=1, shuffle=True, seed=5)
    assert measured(frame) == measured(shuffled)
    one, other = (
        localized_errors(frame, "localized_global_errors", ESTIMATORS, "seq_logp", bootstrap)
        for bootstrap in (BOOTSTRAP, BOOTSTRAP._replace(seed=4))
    )
    assert not other.equals(one)


@pytest.mark.parametrize("absent", KINDS)
def test_a_kind_that_no_error_has_is_undefined_and_the_rest_is_whole(absent):
    frame = made(kinds=[kind for kind in KINDS if kind != absent])
    table = "localized_global_errors" if absent == "global" else "localized_error_subtypes"
    found = measured(frame, table)
    mine = found["trace_plus", absent, "auroc"]
    assert (mine["value"], mine["low"], mine["n"], mine["errors"]) == (None, None, 0, 0)
    assert found[GAIN, absent, "auroc"]["value"] is None
    others = {key: row for key, row in found.items() if key[1] != absent}
    assert others
    assert all(row["value"] is not None for row in others.values())


def test_a_run_without_any_error_or_any_correct_answer_is_all_undefined():
    for correct in (True, False):
        frame = made().with_columns(
            correct=pl.lit(correct),
            error_kind=pl.lit(None if correct else "claim", dtype=pl.String),
        )
        found = measured(frame)
        assert all(row["value"] is None for row in found.values())


def test_a_null_score_takes_its_pair_out_for_that_estimator_alone():
    frame = made()
    holes = frame.with_columns(
        mars=pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise("mars")
    )
    whole, holed = measured(frame), measured(holes)
    assert holed["mars", "localized", "auroc"]["n"] < whole["mars", "localized", "auroc"]["n"]
    assert holed["seq_logp", "localized", "auroc"] == whole["seq_logp", "localized", "auroc"]


def test_without_the_estimators_that_a_run_lacks():
    found = measured(made(), estimators=["seq_logp"])
    assert {key[0] for key in found} == {"seq_logp", GAIN}
    assert found[GAIN, "localized", "auroc"]["value"] is None


def test_confidence_is_the_score_or_the_mean_probability():
    keys = {"model": ["m", "m"], "task": ["t", "t"], "example_id": ["a", "b"]}
    answers = pl.DataFrame(keys)
    scores = pl.DataFrame(keys | {"seq_logp": [0.5, None]})
    predictions = pl.DataFrame(
        {
            "model": "m",
            "task": "t",
            "estimator": ["trace_plus"] * 3 + ["other"],
            "split": [0, 1, 1, 0],
            "example_id": ["a", "a", "b", "a"],
            "probability": [0.2, 0.4, 0.9, 1.0],
        }
    )
    found = add_confidences(answers, scores, predictions, ["trace_plus", "absent"])
    assert found["seq_logp"].to_list() == [0.5, None]
    assert found["trace_plus"].to_list() == [pytest.approx(0.3), 0.9]
    assert found["absent"].to_list() == [None, None]
