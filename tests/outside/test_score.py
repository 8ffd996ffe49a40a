"""Files of answers against calibrators: what is refused, what is null and why."""

import json

import polars as pl
import pytest

from outside.made import answers, stored
from tracecal.calibrate.predict import calibrate_all
from tracecal.calibrate.splits import make_splits
from tracecal.errors import InputError
from tracecal.outside.fit import Fitting, calibrate_answers
from tracecal.outside.fitted import from_stored, load
from tracecal.outside.inputs import inputs
from tracecal.outside.score import score_answers


def test_a_calibrator_says_what_it_was_fitted_on(content):
    frame = answers()
    assert content["fitted_on"] == {
        "model": "m",
        "known_as": [],
        "revision": None,
        "task": "t",
        "stop_token": "included",
        "processed": "no",
        "entropy": "exact",
        "vocabulary": 1000,
        "feature_version": 1,
        "n": frame.height,
        "base_rate": frame["correct"].mean(),
    }


def test_the_protocol_is_the_workflows_own(content):
    frame = answers()
    judged = frame.select("example_id", "correct").join(inputs(frame), on="example_id")
    groups = frame.select("example_id", group_id="example_id")
    splits = make_splits(groups, "t", 2026, 3, 0.35)
    names = [f"features.{name}" for name in content["trace_plus"]["features"]]
    _, expected = calibrate_all(judged, splits, {"trace_plus": names}, "platt")
    expected = json.loads(json.dumps(expected["trace_plus"]))
    assert {key: content["trace_plus"][key] for key in expected} == expected


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"model": "other"}, "fitted on answers of 'm', but some answers are by 'other'"),
        ({"stop_token": "absent"}, "that include the stop token, but 5 answer"),
        ({"processed": "yes"}, "raw probabilities, but 5 answer.* changed by temperature"),
    ],
)
def test_answers_of_another_kind_are_refused(calibrator, changed, sentence):
    with pytest.raises(InputError, match=sentence):
        score_answers(answers(5, **changed), calibrator)


@pytest.mark.parametrize("model", ["M", "owner/m", None])
def test_the_same_model_under_a_longer_name_is_known(calibrator, model):
    assert score_answers(answers(5, model=model), calibrator)["probability"].null_count() == 0


def test_other_names_of_a_model_are_known(content):
    told = content | {"fitted_on": content["fitted_on"] | {"known_as": ["hub/name-7b"]}}
    calibrator = from_stored(told, "trace_plus", "x")
    assert score_answers(answers(5, model="hub/Name-7B"), calibrator).height == 5


def test_what_is_unknown_is_warned_of(calibrator, caplog):
    caplog.set_level("WARNING", "tracecal")
    score_answers(answers(5, stop_token="unknown"), calibrator)
    assert "not known of the answers whether traces include the stop token" in caplog.text


def test_another_version_of_the_features_is_refused(content):
    older = content | {"fitted_on": content["fitted_on"] | {"feature_version": 0}}
    with pytest.raises(InputError, match=r"version 0 of the features, and this is version 1"):
        from_stored(older, "trace_plus", "C.json")


def test_a_calibrator_that_does_not_say_what_it_was_fitted_on_is_refused(content, tmp_path):
    path = tmp_path / "C.json"
    path.write_text(json.dumps({"trace_plus": content["trace_plus"]}), encoding="utf-8")
    with pytest.raises(InputError, match="does not say what it was fitted on"):
        load(path)


def test_other_features_than_the_estimators_are_refused(content):
    fewer = content["trace_plus"] | {"features": content["trace_plus"]["features"][:-1]}
    with pytest.raises(InputError, match="are not this estimator's inputs"):
        from_stored(content | {"trace_plus": fewer}, "trace_plus", "x")


def test_an_estimator_that_is_not_there_is_named(content):
    with pytest.raises(InputError, match="holds no calibrator of 'mars'; it has first_token_prob"):
        from_stored(content, "mars", "x")


def test_what_cannot_be_computed_is_null_with_its_reason(content, calibrator):
    lacking = answers(5, entropy=None, lacks="no top log-probabilities are given")
    scored = score_answers(lacking, calibrator, 0.3)
    assert scored["probability"].to_list() == [None] * 5
    assert scored["keep"].to_list() == [None] * 5
    assert set(scored["reason"]) == {"no top log-probabilities are given"}
    # Log-probabilities alone are enough for others.
    likelihood = from_stored(content, "min_prob", "x")
    assert score_answers(lacking, likelihood)["probability"].null_count() == 0


def test_answers_with_and_without_traces_stand_side_by_side(calibrator):
    frame = pl.concat([answers(3), answers(2, surprisal=None, entropy=None, lacks="x")])
    frame = frame.with_columns(example_id=pl.Series(["e", "c", "a", "b", "d"]))
    scored = score_answers(frame, calibrator)
    assert scored["example_id"].to_list() == ["a", "b", "c", "d", "e"]
    assert scored["probability"].is_null().to_list() == [False, True, False, True, False]


def test_calibrating_on_probabilities_alone_leaves_out_what_needs_entropies(caplog):
    caplog.set_level("WARNING", "tracecal")
    held = stored(answers(entropy=None, lacks="no top log-probabilities are given"))
    assert "seq_logp" in held
    assert "trace_plus" not in held
    assert "trace_plus" in caplog.text
    assert "no top log-probabilities are given" in caplog.text


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (answers(10), "10 of 10 answers say whether they are right; at least 20"),
        (answers(40, correct=None), "0 of 40 answers say"),
        (pl.concat([answers(20), answers(20, model="b")]), "several models .model: b, m"),
        (pl.concat([answers(20), answers(20, stop_token="absent")]), "absent, included"),
        (answers(40, surprisal=None, entropy=None), "no answer has log-probabilities"),
    ],
)
def test_answers_that_cannot_be_calibrated_on_are_refused(frame, sentence):
    frame = frame.with_columns(example_id=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(InputError, match=sentence):
        calibrate_answers(frame, "t", Fitting())


def test_variants_of_a_question_never_stand_on_both_sides():
    """Ten groups of labels that agree: promises count groups, not answers."""
    frame = answers(200).with_columns(group_id=(pl.int_range(pl.len()) % 10).cast(pl.String))
    assert stored(frame)["trace_plus"]["risk_control"]["groups"] < 10


@pytest.mark.parametrize("estimator", ["entropy_variance", "entropy_sentinel"])
def test_what_could_move_either_way_has_no_interval(content, estimator):
    calibrator = from_stored(content, estimator, "x")
    exact = score_answers(answers(5), calibrator)
    assert exact["lower"].equals(exact["probability"])
    wide = answers(5).with_columns(entropy_lower=pl.col("entropy"), entropy_upper=pl.col("entropy"))
    bounded = score_answers(wide, calibrator)
    assert bounded["probability"].equals(exact["probability"])
    assert bounded["lower"].null_count() == bounded["upper"].null_count() == 5
