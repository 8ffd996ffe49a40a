"""Guaranteed error rates of a run's estimator: what is tested, and its JSON."""

import json

import numpy as np
import polars as pl
import pytest

from support.grouped_answers import answers, logistic, make_split
from tracecal.calibrator.answer_ranking import Ranking, rank_split
from tracecal.calibrator.guarantee import find_guarantees, population_of_tested, with_forecasts
from tracecal.calibrator.schema import ErrorRateControl
from tracecal.fits.fit_settings import RiskControl
from tracecal.guarantees.line import find_places
from tracecal.statistics.splits import make_splits


def control_of(fits, frame, splits, rates):
    """The JSON values of what an estimator of the columns a and b guarantees."""
    columns = {f"features.{name}": name for name in fits.features}
    ranking = Ranking.of_split("trace_plus", columns, fits, frame.with_columns(**columns), splits)
    targets = RiskControl(error_rates=rates, overall_errors=(), confidence=0.9)
    return find_guarantees(ranking, rank_split(ranking), targets).model_dump(mode="json")


def control_frame(frame, seed=0, rates=(0.3,)):
    """Of each group the first answer counts, unless the frame says which."""
    if "represents" not in frame.columns:
        first = pl.col("example_id") == pl.col("example_id").min().over("group_id")
        frame = frame.with_columns(represents=first)
    return control_of(logistic(), frame, make_split(frame, seed), rates)


def test_one_answer_of_each_group_tests():
    frame = answers(np.random.default_rng(9), 300, 3, 0.05)
    control = control_frame(frame)
    assert control["groups"] == control["thresholds"][0]["n"] == 195
    assert "most_parts" not in control and "each counted once" in control["about"]
    first = frame.filter(pl.col("example_id").str.ends_with("-0"))
    assert control_frame(first)["thresholds"] == control["thresholds"]


def test_parts_of_documents_with_many_are_never_kept_and_that_is_said():
    frame = answers(np.random.default_rng(9), 300, 2, 0.05).with_columns(represents=True)
    large = frame.with_columns(
        pl.when(pl.int_range(600) < 40)
        .then(pl.lit("large"))
        .otherwise("group_id")
        .alias("group_id")
    ).with_columns(parent_id="group_id")
    control = control_frame(large)
    assert control["most_parts"] == 2
    assert "with more than 2 parts are never kept" in control["about"]
    tested = make_split(large).filter(part="evaluation").join(large, on="example_id")
    tested = tested.filter(pl.col("group_id") != "large")
    assert control["groups"] == tested["group_id"].n_unique()
    item = control["thresholds"][0]
    assert item["n"] == tested.height
    assert (item["coverage"], item["error"]) == (
        item["kept"] / item["n"],
        item["wrong"] / item["kept"],
    )
    ErrorRateControl.model_validate(control)


def test_the_first_split_has_the_guarantees():
    frame = answers(np.random.default_rng(7), 300, 1, 0.1).with_columns(represents=True)
    splits = make_splits(frame.select("example_id", "group_id"), "task", 0, 4, 0.35)
    fits = logistic(n_splits=4)
    controls = [
        control_of(fits, frame, splits.filter(pl.col("split") >= number), (0.2,))
        for number in range(4)
    ]
    assert [control["split"] for control in controls] == [0, 1, 2, 3]
    first = control_of(fits, frame, splits.filter(split=0), (0.2,))
    assert controls[0] == first != controls[1] | {"split": 0}


def test_a_user_can_apply_the_json_by_hand():
    rng = np.random.default_rng(4)
    frame = answers(rng, 300, 1, 0.5).with_columns(
        correct=pl.Series(rng.random(300)) < 1 / (1 + (-3 * pl.col("a")).exp())
    )
    split = make_split(frame)
    stored = json.loads(json.dumps(control_frame(frame, rates=(0.1, 0.2, 0.3))))
    assert (stored["split"], stored["confidence"]) == (0, 0.9)
    ErrorRateControl.model_validate(stored)
    evaluated = frame.join(split.filter(part="evaluation"), on="example_id")
    fits = logistic()
    fit = fits.splits[0]
    z = fit.intercept + sum(
        w * (evaluated[f] - m) / s
        for f, m, s, w in zip(fits.features, fit.means, fit.scales, fit.weights, strict=True)
    )
    probability = 1 / (1 + (-z).exp())
    assert [item["error_rate"] for item in stored["thresholds"]] == [0.1, 0.2, 0.3]
    assert stored["thresholds"][2]["threshold"] is not None
    for item in stored["thresholds"]:
        bar = 2 if item["threshold"] is None else item["threshold"]
        kept = evaluated.filter(probability >= bar)
        assert (item["n"], item["kept"]) == (195, kept.height)
        assert item["wrong"] == (~kept["correct"]).sum()
        # Single answers: what is guaranteed is estimated by plain shares.
        assert item["coverage"] == pytest.approx(kept.height / 195)
        if item["threshold"] is not None:
            assert item["wrong"] <= item["allowed"]
            assert item["error"] == pytest.approx(item["wrong"] / item["kept"])
            assert item["enough"] is None


def test_row_order_changes_nothing_and_null_features_are_left_out():
    frame = answers(np.random.default_rng(5), 200, 2, 0.05)
    plain = control_frame(frame)
    assert control_frame(frame.sample(fraction=1, shuffle=True, seed=1)) == plain
    assert plain["thresholds"][0]["threshold"] is not None
    holed = frame.with_columns(b=pl.when(pl.int_range(pl.len()) % 4 > 0).then("b"))
    assert 0 < control_frame(holed)["thresholds"][0]["n"] < 200


def test_risk_against_coverage_is_counted_at_tenths_with_their_ties():
    rng = np.random.default_rng(5)
    probability = rng.random(120).round(2)
    correct = rng.random(120) < probability
    curve = find_places(probability, ~correct).risk_coverage()
    ranked = sorted(probability, reverse=True)
    kept = [probability >= ranked[12 * tenth - 1] for tenth in range(1, 11)]
    expected = [(mask.sum() / 120, (~correct[mask]).sum() / mask.sum()) for mask in kept]
    assert np.allclose(curve, list(dict.fromkeys(expected)), atol=1e-4)
    assert (
        curve[-1][0] == 1
        and find_places(np.empty(0), np.empty(0, dtype=bool)).risk_coverage() == []
    )


def test_a_part_without_a_score_counts_in_its_document_as_not_kept():
    """As if it had the lowest score and a threshold of its own kept it never."""
    frame = answers(np.random.default_rng(5), 400, 2, 0.25).with_columns(
        represents=True, parent_id="group_id"
    )
    second = pl.int_range(pl.len()) % 2 == 1
    holed = frame.with_columns(a=pl.when(~second).then("a"))
    lowest = frame.with_columns(a=pl.when(second).then(-50.0).otherwise("a"))
    without, with_lowest = (control_frame(rows)["thresholds"][0] for rows in (holed, lowest))
    assert without["n"] == with_lowest["n"] / 2
    assert (without["threshold"] is None) or without["threshold"] > 0.01


@pytest.mark.parametrize("of_parts", [False, True])
def test_a_run_forecasts_by_the_answers_that_tested(of_parts):
    rng = np.random.default_rng(4)
    frame = answers(rng, 300, 1, 0.5).with_columns(represents=True)
    frame = frame.with_columns(
        correct=pl.Series(rng.random(300)) < 1 / (1 + (-1.5 * pl.col("a")).exp())
    )
    if of_parts:
        frame = frame.with_columns(parent_id="group_id")
    columns = {f"features.{name}": name for name in logistic().features}
    ranking = Ranking.of_split(
        "trace_plus", columns, logistic(), frame.with_columns(**columns), make_split(frame)
    )
    tested = rank_split(ranking)
    control = find_guarantees(ranking, tested, RiskControl(error_rates=(0.05, 0.5)))
    strict, loose = with_forecasts(control, population_of_tested(tested)).thresholds
    assert strict.threshold is None and "labelled questions like these would" in strict.reason
    assert loose.threshold is not None and loose.enough is None
