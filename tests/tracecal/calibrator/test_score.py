"""Files of answers against calibrators: what is refused, what is null and why."""

import json
import re
from time import process_time

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from support.labelled_answers import answers, fitted, fitted_file, predictor_of, stored
from tracecal.answers.groups import group_answers, place_answers
from tracecal.answers.imported_traces import entropy_metadata
from tracecal.answers.reading import Reading
from tracecal.calibrator import recommendation, training_set
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.predictor import load_predictor
from tracecal.calibrator.recommendation import mean_interval, varies
from tracecal.calibrator.schema import CalibratorFile
from tracecal.calibrator.scoring import score_answers
from tracecal.calibrator.trace_kinds import NEXT_QUESTION, describe_traces, vocabulary_for
from tracecal.errors import InputError
from tracecal.estimators import registry
from tracecal.estimators.features import ENTROPY_INPUTS, compute_inputs
from tracecal.fits.fits import EstimatorFits, Identity
from tracecal.fits.predictions import calibrate_all
from tracecal.io.files import write_json


def bounded(frame, top_k=5):
    """The answers with entropies as if from their likeliest tokens."""
    return frame.with_columns(
        entropy_lower=pl.col("entropy"),
        entropy_upper=pl.col("entropy"),
        top_k=pl.lit(top_k, pl.Int32),
    )


def certified(calibrator):
    """An error rate with a threshold."""
    return next(rate for rate, value in calibrator.thresholds.items() if value is not None)


def test_a_calibrator_says_what_it_was_fitted_on(content):
    frame = answers()
    held = dict(content["fitted_on"])
    assert len(set(held.pop("answers"))) == frame.height
    assert {"trace_plus", "seq_logp"} < set(held.pop("ranking"))
    assert len(held.pop("not_for")) == 6
    assert [(look["labels"], look["level"]) for look in held.pop("looks")] == [(frame.height, 0.1)]
    assert held == {
        "card_version": 2,
        "model": "m",
        "known_as": [],
        "revision": None,
        "task": "t",
        "stop_token": "included",
        "processed": "no",
        "entropy": "exact",
        "top_k": None,
        "vocabulary": 1000,
        "feature_version": 1,
        "n": frame.height,
        "groups": frame.height,
        "unit": "questions",
        "base_rate": frame["correct"].mean(),
        "estimator": DEFAULT,
    }


def test_the_fits_are_those_of_the_workflows_protocol(ranked_content):
    """On all labels, and for the ranking on a fifth that their contents choose."""
    frame, content = answers(), ranked_content
    groups = frame.select("example_id", group_id="example_id")
    places = place_answers(frame, groups)
    part = (
        pl.when(pl.col("side") == "fit").then(pl.lit("calibration")).otherwise(pl.lit("evaluation"))
    )
    split = places.select("example_id", "rank", part=part, split=pl.lit(0))
    judged = frame.select("example_id", "correct").join(compute_inputs(frame), on="example_id")
    judged = places.select("example_id").join(
        judged, on="example_id", how="left", maintain_order="left"
    )
    # Sums are in the order of the places, which ids do not decide.
    order = pl.Series("example_id", [f"{place:09}" for place in range(frame.height)])
    judged, split = judged.with_columns(order), split.with_columns(order)
    names = [f"features.{name}" for name in content["trace_plus"]["features"]]
    _, expected = calibrate_all(judged, split, {"trace_plus": names}, "platt")
    expected = json.loads(json.dumps(expected["trace_plus"].model_dump(mode="json")))
    assert content["trace_plus"]["final"] == expected["final"]
    assert ranked_content["trace_plus"]["risk_control"]["fit"] == expected["splits"]["0"]
    assert content["trace_plus"]["splits"] == {}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"model": "other"}, "fitted on answers of 'm', but some answers are by 'other'"),
        ({"stop_token": "absent"}, "that include the stop token, but 5 answer"),
        ({"processed": "yes"}, "raw probabilities, but 5 answer.* changed by temperature"),
        ({"reasoning": "apart"}, "without reasoning before them, but 5 answer.* leave out the rea"),
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
    calibrator = predictor_of(told, "trace_plus", "x")
    assert score_answers(answers(5, model="hub/Name-7B"), calibrator).height == 5


def test_what_is_unknown_is_warned_of(calibrator, caplog):
    caplog.set_level("WARNING", "tracecal")
    score_answers(answers(5, stop_token="unknown"), calibrator)
    assert "the answers do not say whether traces include the stop token" in caplog.text


def test_another_version_of_the_features_is_refused(content):
    older = content | {"fitted_on": content["fitted_on"] | {"feature_version": 0}}
    with pytest.raises(InputError, match=r"version 0 of the features, and this is version 1"):
        predictor_of(older, "trace_plus", "C.json")


def test_a_calibrator_that_does_not_say_what_it_was_fitted_on_is_refused(content, tmp_path):
    path = tmp_path / "C.json"
    path.write_text(json.dumps({"trace_plus": content["trace_plus"]}), encoding="utf-8")
    with pytest.raises(InputError, match="does not say what it was fitted on"):
        load_predictor(path)


def test_other_features_than_the_estimators_are_refused(content):
    reordered = content["trace_plus"] | {"features": content["trace_plus"]["features"][::-1]}
    with pytest.raises(InputError, match="are not this estimator's inputs"):
        predictor_of(content | {"trace_plus": reordered}, "trace_plus", "x")


def test_an_estimator_that_is_not_there_is_named(content):
    with pytest.raises(InputError, match="holds no calibrator of 'mars'; it has first_token_prob"):
        predictor_of(content, "mars", "x")


def test_what_cannot_be_computed_is_null_with_its_reason(content, calibrator):
    lacking = answers(5, entropy=None, lacks="no top log-probabilities are given")
    scored = score_answers(lacking, calibrator, 0.3)
    assert scored["probability"].to_list() == [None] * 5
    assert scored["keep"].to_list() == [None] * 5
    assert set(scored["reason"]) == {"no top log-probabilities are given"}
    # Log-probabilities alone are enough for others.
    likelihood = predictor_of(content, "min_prob", "x")
    assert score_answers(lacking, likelihood)["probability"].null_count() == 0


def test_answers_with_and_without_traces_stand_side_by_side(calibrator):
    frame = pl.concat([answers(3), answers(2, surprisal=None, entropy=None, lacks="x")])
    frame = frame.with_columns(example_id=pl.Series(["e", "c", "a", "b", "d"]))
    scored = score_answers(frame, calibrator)
    assert scored["example_id"].to_list() == ["e", "c", "a", "b", "d"]
    assert scored["probability"].is_null().to_list() == [False, False, False, True, True]


def test_calibrating_on_probabilities_alone_leaves_out_what_needs_entropies(caplog):
    caplog.set_level("WARNING", "tracecal")
    held = stored(answers(entropy=None, lacks="no top log-probabilities are given"))
    assert "seq_logp" in held
    assert "trace_plus" not in held
    assert "24 estimators left out: no top log-probabilities" in caplog.text
    assert "no top log-probabilities are given" in caplog.text


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (answers(10), "10 of 10 answers have a verdict; at least 20"),
        (answers(40, correct=None), "0 of 40 answers have a verdict"),
        (
            pl.concat([answers(20), answers(20, 1, reasoning="apart")]).with_columns(
                example_id=pl.format("a{}", pl.int_range(pl.len()))
            ),
            "several kinds .reasoning: apart, none",
        ),
        (pl.concat([answers(20), answers(20, model="b")]), "several models .model: b, m"),
        (pl.concat([answers(20), answers(20, stop_token="absent")]), "absent, included"),
        (answers(40, surprisal=None, entropy=None), "no answer has log-probabilities"),
    ],
)
def test_answers_that_cannot_be_calibrated_on_are_refused(frame, sentence):
    frame = frame.with_columns(example_id=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(InputError, match=sentence):
        fitted_file(frame)


@pytest.mark.parametrize(
    ("usual", "other", "kind"),
    [
        (answers(90), bounded(answers(60, 1)), "exact"),
        (bounded(answers(90)), answers(60, 1), "top-k"),
    ],
)
def test_mixed_entropies_enter_the_fits_and_the_commonest_kind_the_tests(
    few_estimators, caplog, usual, other, kind
):
    caplog.set_level("WARNING", "tracecal")
    mixed = pl.concat([usual, other]).with_columns(
        example_id=pl.int_range(pl.len()).cast(pl.String)
    )
    held = stored(mixed, splits={"count": 1})
    assert (held["fitted_on"]["entropy"], held["fitted_on"]["n"]) == (kind, 150)
    assert held["fitted_on"]["top_k"] == (5 if kind == "top-k" else None)
    assert "the 60 other labels enter the fits, and not the tests" in caplog.text
    tested = {
        name: stored(mixed, name)[name]["risk_control"]["thresholds"][0]["n"]
        for name in ("trace_plus", "seq_logp")
    }
    assert tested["trace_plus"] < tested["seq_logp"], "which needs none"
    found = score_answers(mixed, predictor_of(held, "trace_plus", "x"))
    assert found["probability"].null_count() == 0


def test_what_score_takes_as_equal_calibrate_does_too(few_estimators, caplog):
    """Two spellings of a model, and a kind that is known of some answers alone."""
    caplog.set_level("WARNING", "tracecal")
    mixed = pl.concat([answers(60), answers(40, 1, model="owner/M", stop_token="unknown")])
    mixed = mixed.with_columns(example_id=pl.int_range(pl.len()).cast(pl.String))
    told = stored(mixed, splits={"count": 1})["fitted_on"]
    assert (told["model"], told["known_as"]) == ("m", ["owner/M"])
    assert told["stop_token"] == "included"
    assert "40 of 100 labelled answers do not say whether traces include" in caplog.text


def test_answers_that_do_not_name_their_model_are_calibrated_on_with_a_warning(caplog):
    held = stored(answers(60, model=None))
    assert held["fitted_on"]["model"] is None
    assert "no answer names its model" in caplog.text and "Reading(model=...)" in caplog.text


def test_guarantees_are_of_what_ranks_and_say_how_many_labels_would_do(content):
    held = [name for name in content if "risk_control" in content[name]]
    assert held == [content["fitted_on"]["estimator"]] == [DEFAULT]
    control = content[DEFAULT]["risk_control"]
    assert control["ranked_by"] == DEFAULT
    missing = [entry for entry in control["thresholds"] if entry["threshold"] is None]
    assert missing and all("labelled questions like these would" in e["reason"] for e in missing)
    with pytest.raises(InputError, match=r"'tracecal calibrate --estimator trace_plus'"):
        score_answers(answers(5, 1), predictor_of(content, "trace_plus", "x"), 0.4)


def test_variants_of_a_question_never_stand_on_both_sides():
    """Ten groups of labels that agree: guarantees count groups, not answers."""
    frame = answers(200).with_columns(group_id=(pl.int_range(pl.len()) % 10).cast(pl.String))
    control = stored(frame)[DEFAULT]["risk_control"]
    assert control["groups"] == 10


@pytest.mark.parametrize("estimator", ["entropy_variance", "entropy_sentinel"])
def test_what_could_move_either_way_has_no_interval(content, estimator):
    calibrator = predictor_of(content, estimator, "x")
    exact = score_answers(answers(5), calibrator)
    assert exact["lower"].equals(exact["probability"])
    wide = answers(5).with_columns(entropy_lower=pl.col("entropy"), entropy_upper=pl.col("entropy"))
    bounded = score_answers(wide, calibrator)
    assert bounded["probability"].equals(exact["probability"])
    assert bounded["lower"].null_count() == bounded["upper"].null_count() == 5


def repeated(frame, times, **more):
    """Each answer `times` times, under ids of its own."""
    copies = pl.concat([frame] * times)
    return copies.with_columns(example_id=pl.int_range(pl.len()).cast(pl.String), **more)


def test_answers_repeated_under_other_ids_are_one_group():
    """Otherwise each would be tested on the labels that it was fitted on."""
    once = answers(40).filter(pl.col("surprisal").list.len() > 1)
    frame = repeated(once, 12)
    control = stored(frame)[DEFAULT]["risk_control"]
    assert control["groups"] == once.height


def test_answers_to_one_prompt_are_one_group():
    place = pl.int_range(pl.len())
    frame = answers(60).with_columns(
        prompt=pl.format("question {}", place // 3), answer=place.cast(pl.String)
    )
    groups = group_answers(frame)
    assert groups["group_id"].n_unique() == 20
    assert groups["example_id"].n_unique() == 60
    given = frame.with_columns(group_id=pl.when(pl.int_range(pl.len()) < 6).then(pl.lit("g")))
    assert group_answers(given)["group_id"].n_unique() == 19


def test_short_traces_that_may_agree_by_chance_stay_apart():
    frame = answers(20, surprisal=[0.0], entropy=[0.0])
    assert group_answers(frame)["group_id"].n_unique() == 20


@pytest.mark.parametrize("more", [{}, {"prompt": "the same", "answer": "51"}])
def test_contradictory_twins_are_refused(more):
    once = answers(40, **more).filter(pl.col("surprisal").list.len() > 1)
    twins = pl.concat([once, once.with_columns(~pl.col("correct"))])
    frame = repeated(twins, 1)
    with pytest.raises(InputError, match="is labelled correct in .* and incorrect in"):
        fitted_file(frame)


@pytest.mark.parametrize(
    ("fitted_with", "scored", "decides"),
    [(None, None, True), (None, 5, False), (5, None, False), (5, 6, True), (1, 20, False)],
)
def test_a_threshold_decides_about_entropies_of_its_own_kind_only(fitted_with, scored, decides):
    frame = answers() if fitted_with is None else bounded(answers(), fitted_with)
    calibrator = predictor_of(stored(frame, "trace_plus"), "trace_plus", "x")
    new = answers(5, seed=1) if scored is None else bounded(answers(5, seed=1), scored)
    found = score_answers(new, calibrator, certified(calibrator))
    assert found["keep"].is_not_null().all() == decides
    assert found["probability"].null_count() == 0
    assert found["reason"].is_null().all() == decides
    if not decides:
        assert found["reason"].str.contains("the threshold was tested on answers with").all()


def test_in_a_mixed_file_only_answers_of_the_calibrators_kind_are_decided(calibrator):
    mixed = pl.concat([answers(5, seed=1), bounded(answers(5, seed=2))])
    found = score_answers(repeated(mixed, 1), calibrator, certified(calibrator))
    assert found["keep"].is_null().to_list() == [False] * 5 + [True] * 5


def test_kinds_of_entropy_do_not_matter_where_none_is_needed():
    likelihood = fitted("min_prob")
    found = score_answers(bounded(answers(5, seed=1)), likelihood, certified(likelihood))
    assert found["keep"].null_count() == 0


def test_an_answer_that_was_fitted_on_is_not_decided(calibrator):
    found = score_answers(repeated(answers(5, seed=9), 1), calibrator, certified(calibrator))
    assert found["keep"].null_count() == 0
    labelled = answers(5).filter(pl.col("surprisal").list.len() > 2)  # no chance
    found = score_answers(labelled, calibrator, certified(calibrator))
    assert found["keep"].null_count() == labelled.height > 3
    assert found["reason"].str.contains("fitted on this very answer").all()


def test_an_error_rate_that_cannot_be_guaranteed_says_why():
    few = predictor_of(stored(answers(40)), "log_ridge", "x")
    found = score_answers(answers(3, seed=1), few, 0.05)
    assert found["keep"].null_count() == 3
    assert found["probability"].null_count() == 0
    assert len(set(found["reason"])) == 1
    assert len(found["reason"][0]) > 40


@pytest.fixture
def few_estimators(monkeypatch):
    """Fewer fits, for tests of what is chosen among them."""
    names = (
        "log_ridge",
        "mean_of_three",
        "surprisal_ridge",
        "trace_plus",
        "trace",
        "seq_logp",
        "first_token_prob",
        "mean_token_entropy",
    )
    kept = {*names, "last_k_entropy", "entropy_slope", "entropy_variance"}
    monkeypatch.setattr(
        training_set, "ESTIMATORS", [e for e in registry.ESTIMATORS if e.id in kept]
    )


def test_the_file_recommends_the_estimator_that_scores_and_is_planned_with(
    few_estimators, tmp_path
):
    held = stored(answers(60))
    assert held["fitted_on"]["estimator"] == DEFAULT, "nothing is known to be better"
    write_json(
        held | {"fitted_on": held["fitted_on"] | {"estimator": "trace"}}, tmp_path / "C.json"
    )
    calibrator = load_predictor(tmp_path / "C.json")
    assert calibrator.estimator == "trace"
    found = score_answers(answers(3, seed=1), calibrator)
    assert found.equals(score_answers(answers(3, seed=1), predictor_of(held, "trace", "x")))
    assert [name for name in held if "held_out" in held[name]] == [DEFAULT]


def test_a_file_that_names_no_estimator_is_of_the_default_fit_or_trace_plus(content):
    unnamed = content | {"fitted_on": content["fitted_on"] | {"estimator": None}}
    assert predictor_of(unnamed, None, "x").estimator == DEFAULT
    without = {name: held for name, held in unnamed.items() if name != DEFAULT}
    assert predictor_of(without, None, "x").estimator == "trace_plus"


def of_one_token(n, seed, values):
    """Answers of one token whose entropy is one of `values`; the smaller, the more often right."""
    rng = np.random.default_rng(seed)
    frame = answers(n, seed=seed)
    place = rng.integers(len(values), size=n)
    entropy = np.asarray(values)[place]
    return frame.with_columns(
        surprisal=pl.Series((entropy / 2)[:, None].tolist(), dtype=pl.List(pl.Float32)),
        entropy=pl.Series(entropy[:, None].tolist(), dtype=pl.List(pl.Float32)),
        correct=pl.Series(rng.random(n) < 0.95 - 0.6 * place / len(values)),
    )


def test_a_default_without_a_gain_over_it_stays(few_estimators, monkeypatch):
    """One token has no slope, whose fit gives every answer one probability: no number tells."""
    monkeypatch.setattr(recommendation, "choose_default", lambda _: "entropy_slope")
    chosen = stored(of_one_token(200, 1, np.linspace(0, 1.5, 40)))["fitted_on"]
    assert chosen["estimator"] == "entropy_slope" and "gain" not in chosen
    places = {name: place for place, name in enumerate(chosen["ranking"])}
    assert places["entropy_slope"] > places["mean_token_entropy"]
    few = stored(of_one_token(200, 1, [0.1, 0.5, 0.9, 1.4]))["fitted_on"]
    assert few["estimator"] == "entropy_slope", "four values are few for all"


@pytest.mark.parametrize(("values", "told_apart"), [([1, 2, 3, 4, 5], True), ([1, 2, 3, 4], False)])
def test_what_takes_few_values_or_mostly_one_is_a_constant(values, told_apart):
    identity = EstimatorFits(features=["x"], splits={0: Identity()}, final=Identity())
    rows = pl.DataFrame({"x": np.tile(values, 20) / 10})
    assert varies(rows, ["x"], identity) == told_apart
    mostly = pl.DataFrame({"x": np.append(np.full(90, 0.5), np.linspace(0, 1, 10))})
    assert not varies(mostly, ["x"], identity)


def test_another_estimator_is_recommended_only_where_it_gains_more_than_its_interval(
    few_estimators, monkeypatch
):
    """First-token entropy decides here; the last token's says nothing."""
    rng = np.random.default_rng(3)
    frame = answers(2500, seed=3)
    entropy = rng.gamma(1.0, 0.7, size=(2500, 3))
    frame = frame.with_columns(
        entropy=pl.Series(entropy.tolist(), dtype=pl.List(pl.Float32)),
        surprisal=pl.Series(rng.gamma(1.0, 0.5, (2500, 3)).tolist(), dtype=pl.List(pl.Float32)),
        correct=pl.Series(rng.random(2500) < np.exp(-1.2 * entropy[:, 1])),
    )
    monkeypatch.setattr(recommendation, "choose_default", lambda _: "last_k_entropy")
    assert stored(frame)["fitted_on"]["estimator"] == "last_k_entropy", "the mean, as good as any"
    monkeypatch.setattr(recommendation, "choose_default", lambda _: "first_token_prob")
    chosen = stored(frame)["fitted_on"]
    assert chosen["estimator"] == chosen["ranking"][0] != "first_token_prob"
    gain, low, high = chosen["gain"]
    assert 0 < low < gain < high


def test_the_interval_of_a_mean_is_students_and_counts_groups():
    values = np.random.default_rng(4).normal(0.1, 1, 40)
    mean, low, high = mean_interval(values, np.arange(40), 0.9)
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert mean == pytest.approx(values.mean())
    # Each value twice in its group says no more than once.
    twice = mean_interval(np.repeat(values, 2), np.repeat(np.arange(40), 2), 0.9)
    assert twice == pytest.approx((mean, low, high))
    assert mean_interval(values, np.zeros(40), 0.9)[1:] == (-np.inf, np.inf)


def mixed(n, seed=0, rest=10):
    """Labels of which two in three have eight listed tokens, and are worse than the others."""
    rng = np.random.default_rng(seed)
    kind = np.where(np.arange(n) % 3 < 2, 8, rest)
    frame = bounded(answers(n, seed=seed))
    return frame.with_columns(
        top_k=pl.Series(kind, dtype=frame.schema["top_k"]),
        correct=pl.Series(rng.random(n) < np.where(kind == 8, 0.7, 0.97)),
    )


def test_thresholds_are_tested_on_what_they_decide_about(few_estimators, caplog):
    caplog.set_level("WARNING", "tracecal")
    frame = mixed(600)
    held = stored(frame, "trace_plus", risk_control={"error_rates": [0.2, 0.4]})
    assert held["fitted_on"]["top_k"] == 8
    assert "the 8 likeliest tokens (400 answers)" in caplog.text
    assert "the 200 other labels" in caplog.text
    places = place_answers(frame, frame.select("example_id", group_id="example_id"))
    tested = places.filter(side="test")
    decided = frame.filter(top_k=8).join(tested, on="example_id")
    strict, lax = held["trace_plus"]["risk_control"]["thresholds"]
    assert strict["n"] == lax["n"] == decided.height
    assert strict["threshold"] is None, "of those with eight 30 % are wrong"
    calibrator = predictor_of(held, "trace_plus", "x")
    new = mixed(300, seed=5)
    kept = score_answers(new, calibrator, 0.4)["keep"]
    assert (kept.is_null() == (new["top_k"] == 10)).all(), "the same rule"
    # Where no entropies are needed every label is tested.
    every = stored(frame, "seq_logp")["seq_logp"]["risk_control"]["thresholds"][0]["n"]
    assert every == tested.height
    caplog.clear()
    stored(mixed(60, rest=9))
    assert "several kinds" not in caplog.text


def test_answers_to_another_task_are_refused(calibrator):
    with pytest.raises(InputError, match="task 't', but the answers are of 'other'"):
        score_answers(answers(5), calibrator, None, "other")
    assert score_answers(answers(5), calibrator, None, "t").height == 5


@pytest.mark.parametrize("side", ["calibrator", "answers"])
def test_an_unknown_model_is_warned_of(content, caplog, side):
    caplog.set_level("WARNING", "tracecal")
    named = content["fitted_on"] | ({"model": None} if side == "calibrator" else {})
    calibrator = predictor_of(content | {"fitted_on": named}, "trace_plus", "x")
    score_answers(answers(5, model="m" if side == "calibrator" else None), calibrator)
    assert "not say which model gave the answers" in caplog.text and f"the {side} do" in caplog.text


def test_the_calibrators_vocabulary_counts_and_another_is_said(calibrator, caplog):
    assert vocabulary_for(calibrator.fitted_on, None) == 1000
    assert vocabulary_for(calibrator.fitted_on, 1000) == 1000 and not caplog.text
    assert vocabulary_for(calibrator.fitted_on, 50000) == 1000
    assert "1,000 tokens, as for the labelled answers, and not of 50,000" in caplog.text


def test_a_changed_calibrator_is_refused(content, tmp_path):
    path = tmp_path / "C.json"
    CalibratorFile.parse(content, "C.json").write(path)
    assert load_predictor(path).estimator == DEFAULT
    text = path.read_text(encoding="utf-8")
    place = text.index('"intercept": ') + len('"intercept": ') + 3
    flipped = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
    path.write_text(flipped, encoding="utf-8")
    with pytest.raises(InputError, match=r"C\.json does not match the checksum in it"):
        load_predictor(path)


def test_without_entropies_the_surprisal_ridge_is_taken(content):
    held = stored(answers(entropy=None, lacks="no top log-probabilities are given"))
    calibrator = predictor_of(held, None, "x")
    assert calibrator.estimator == held["fitted_on"]["estimator"] == "surprisal_ridge"
    assert ENTROPY_INPUTS.isdisjoint(calibrator.inputs)
    file = CalibratorFile.parse(content, "C.json")
    assert file.recommended(with_entropies=False) == "surprisal_ridge"


def test_text_that_runs_on_into_the_next_question_is_warned_of(calibrator, caplog):
    caplog.set_level("WARNING", "tracecal")
    score_answers(answers(5, answer="51\n\nQ: What is 2 + 2?"), calibrator)
    assert "5 of 5 answers, such as 'a0000', run on into another question" in caplog.text


def test_long_answers_keep_their_order_by_log_likelihood_and_length():
    """exp(log-likelihood) of 60 tokens is so small that a fit on it gives all the same value."""
    rng = np.random.default_rng(0)
    lengths = [1] * 20 + [60] * 180
    lists = [rng.gamma(2.0, 0.5, size=length).tolist() for length in lengths]
    frame = answers(200).with_columns(
        surprisal=pl.Series(lists, dtype=pl.List(pl.Float32)), entropy=None
    )
    held = stored(frame.cast({"entropy": pl.List(pl.Float32)}))
    probabilities = {
        name: score_answers(
            frame.cast({"entropy": pl.List(pl.Float32)}), predictor_of(held, name, "x")
        )["probability"].n_unique()
        for name in ("seq_logp", "likelihood_and_length")
    }
    assert probabilities["seq_logp"] < 100
    assert probabilities["likelihood_and_length"] == 200


def test_a_workflows_calibrator_says_how_many_tokens_its_entropies_came_from():
    metadata = entropy_metadata(bounded(answers(5), 20), Reading(vocabulary=1000))
    data = describe_traces(metadata, pl.Series([True, False]), "m", [], "t")
    assert (data.entropy, data.top_k, data.vocabulary) == ("top-k", 20, 1000)


def test_a_calibrator_of_answers_behind_reasoning_says_so_and_refuses_others():
    content = stored(answers(reasoning="apart"))
    assert content["fitted_on"]["reasoning"] == "apart"
    of_reasoning = predictor_of(content, "trace_plus", "made up")
    scored = score_answers(answers(5, 1, reasoning="apart"), of_reasoning)
    assert scored["probability"].null_count() == 0
    for kind in ("none", "within", "alone"):
        with pytest.raises(InputError, match="that leave out the reasoning tokens .* but 5 answer"):
            score_answers(answers(5, 1, reasoning=kind), of_reasoning)
    of_traces = {"reasoning": "within"}
    made = describe_traces(of_traces, answers(9)["correct"], "m", [], "t")
    assert made.reasoning == "within"


@given(st.text("\n \tQ:1x"))
def test_another_question_is_found_as_by_an_expression_that_reads_white_space_again(text):
    again = r"\n\s*(?:Q|Question)\s*\d*\s*:"
    assert bool(re.search(NEXT_QUESTION, text)) == bool(re.search(again, text))


@pytest.mark.parametrize("text", ["\n" * 40_000, "\nQ" + " " * 40_000], ids=["lines", "blanks"])
def test_another_question_is_sought_in_time_in_proportion(text):
    begun = process_time()
    assert not re.search(NEXT_QUESTION, text)
    assert process_time() - begun < 2
