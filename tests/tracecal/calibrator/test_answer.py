"""One answer's confidence: the workflow's own value, fast, with an interval that always holds."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.labelled_answers import answers, fitted, predictor_of
from tracecal.answers.answers import read_answers
from tracecal.answers.reading import Reading
from tracecal.answers.trace import entropy_bounds
from tracecal.calibrator.predictor import Kinds
from tracecal.calibrator.scoring import score_answer, score_answers
from tracecal.calibrator.scoring import score_response as score_a_response
from tracecal.errors import InputError
from tracecal.estimators.feature_sets import TRACE_PLUS_FEATURES
from tracecal.estimators.features import (
    ENTROPY_INPUTS,
    FEATURES,
    SLOPES,
    UNBOUNDED,
    answer_features,
    compute_bounded_inputs,
    compute_inputs,
    trace_inputs,
)
from tracecal.fits.fits import probability_bounds
from tracecal.serving.scorer import Scorer

REPOSITORY = Path(__file__).resolve().parents[3]
values = st.floats(0, 12, width=32)
traces = st.lists(st.tuples(values, values), min_size=1, max_size=20)


@given(trace=traces)
def test_every_feature_is_the_workflows(trace):
    surprisal, entropy = (list(column) for column in zip(*trace, strict=True))
    frame = pl.DataFrame(
        {"example_id": ["a"], "surprisal": [surprisal], "entropy": [entropy]},
        schema_overrides=dict.fromkeys(("surprisal", "entropy"), pl.List(pl.Float32)),
    )
    expected = answer_features(frame).row(0, named=True)
    s, h = np.array(surprisal), np.array([entropy])
    found = trace_inputs([f"features.{name}" for name in FEATURES], s[None], h[None])[0, 0]
    for name, value in zip(FEATURES, found, strict=True):
        assert value == pytest.approx(expected[name], abs=1e-12)


@pytest.mark.parametrize(
    "estimator",
    ["trace_plus", "stack_of_six", "trace", "entropy_local_only", "min_prob", "entropy_variance"],
)
def test_one_answer_and_a_file_of_answers_agree(estimator):
    calibrator, frame = fitted(estimator), answers(60, seed=1)
    whole = score_answers(frame, calibrator, 0.3)
    for row, expected in zip(frame.iter_rows(named=True), whole.iter_rows(named=True), strict=True):
        one = score_answer(calibrator, row["surprisal"], row["entropy"], 0.3)
        assert one.probability == expected["probability"]
        assert one.keep == expected["keep"]


def test_one_answer_has_the_bits_that_it_has_in_a_file(content):
    """With every estimator: its probability and both bounds, where entropies have bounds."""
    frame = answers(25, seed=3)
    widths = np.random.default_rng(0).random(25)
    bounded = frame.with_columns(
        pl.Series(
            name,
            [np.multiply(h, 1 + sign * w) for h, w in zip(frame["entropy"], widths, strict=True)],
            dtype=pl.List(pl.Float32),
        )
        for name, sign in (("entropy_lower", -1), ("entropy_upper", 1))
    )
    lists = bounded.select("surprisal", "entropy", "entropy_lower", "entropy_upper")
    estimators = content.keys() - {"fitted_on"}
    assert len(estimators) > 30
    for estimator in sorted(estimators):
        predictor = predictor_of(content, estimator, "made up")
        scored = score_answers(bounded, predictor).select("probability", "lower", "upper")
        for (s, *h), expected in zip(lists.iter_rows(), scored.iter_rows(), strict=True):
            alone = score_answer(predictor, s, h[0], None, h[1], h[2])
            assert (alone.probability, alone.lower, alone.upper) == expected, estimator


def test_a_file_is_scored_by_the_protocols_own_probabilities(ranked_content, calibrator):
    """The final fit on the features, as scikit-learn standardises and weighs them."""
    frame = answers(50, seed=2)
    features = answer_features(frame).select(TRACE_PLUS_FEATURES).to_numpy()
    fit = ranked_content["trace_plus"]["final"]
    logit = fit["intercept"] + ((features - fit["means"]) / fit["scales"]) @ fit["weights"]
    found = score_answers(frame, calibrator)["probability"].to_numpy()
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-logit)), atol=1e-12)


def test_a_threshold_is_on_the_ranking_score(ranked_content, calibrator):
    frame = answers(50, seed=2)
    control = ranked_content["trace_plus"]["risk_control"]
    (rate, threshold) = next(
        (one["error_rate"], one["threshold"])
        for one in control["thresholds"]
        if one["threshold"] is not None
    )
    fit = control["fit"]
    features = answer_features(frame).select(TRACE_PLUS_FEATURES).to_numpy()
    logit = fit["intercept"] + ((features - fit["means"]) / fit["scales"]) @ fit["weights"]
    expected = 1 / (1 + np.exp(-logit)) >= threshold
    assert score_answers(frame, calibrator, rate)["keep"].to_list() == expected.tolist()
    assert 0 < expected.sum() < 50


def test_an_answer_at_the_threshold_is_kept_and_one_just_below_is_not(calibrator):
    """A threshold is the score of the last labelled answer that was counted as kept."""
    names = [name.removeprefix("features.") for name in calibrator.columns]
    x = answer_features(answers(50, seed=2)).select(names).to_numpy()
    x = x[calibrator.ranking_score(x).argsort()[24:27]]
    control = calibrator.control
    (rate, *_) = calibrator.thresholds
    _, middle, _ = calibrator.ranking_score(x)
    for threshold, kept in (
        (middle, [False, True, True]),
        (np.nextafter(middle, 1), [False, False, True]),
    ):
        moved = [entry.model_copy(update={"threshold": threshold}) for entry in control.thresholds]
        changed = replace(calibrator, control=control.model_copy(update={"thresholds": moved}))
        kinds = Kinds(*[[None] * 3] * 3, [1] * 3)
        assert changed.decide(np.stack([x] * 3), kinds, rate)["keep"] == kept


def test_an_untested_error_rate_is_refused(calibrator):
    with pytest.raises(InputError, match=r"not tested for an error rate of 0\.123; tested: 0\.05,"):
        score_answer(calibrator, [0.1], [0.1], 0.123)


def test_the_recommended_fit_scores_an_answer_with_bounds_in_half_a_millisecond(content):
    calibrator = predictor_of(content, "mean_of_three", "made up")
    rng = np.random.default_rng(0)
    surprisal, entropy = rng.random((2, 60)).tolist()
    took = []
    for _ in range(50):
        start = time.process_time()
        score_answer(calibrator, surprisal, entropy, None, entropy, entropy, 5)
        took.append(time.process_time() - start)
    assert min(took) < 0.5e-3  # what other work on the machine adds is not the function's


def test_neither_torch_nor_snakemake_nor_transformers_is_imported():
    program = (
        "import sys, tracecal.calibrator.scoring, tracecal.cli.main, tracecal.calibrator.fitting;"
        "print([name for name in ('torch', 'snakemake', 'transformers') if name in sys.modules])"
    )
    paths = {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | paths
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("surprisal", "entropy"),
    [(None, None), ([], []), ([0.1], [0.1, 0.2]), ([-0.1], [0.1]), ([0.1], [float("nan")])],
)
def test_lists_that_are_no_trace_are_refused(calibrator, surprisal, entropy):
    with pytest.raises(InputError):
        score_answer(calibrator, surprisal, entropy)


def test_an_estimator_of_more_than_a_trace_is_refused(calibrator):
    more = replace(calibrator, estimator="mars_with_trace", inputs=("scores.mars",))
    with pytest.raises(InputError, match="which cannot be computed from one answer's two lists"):
        score_answer(more, [0.1], [0.1])


def test_surprisals_alone_are_enough_for_an_estimator_of_likelihood(content, calibrator):
    likelihood = predictor_of(content, "min_prob", "x")
    alone = score_answer(likelihood, [0.1, 0.7], None)
    assert alone == score_answer(likelihood, [0.1, 0.7], [0.5, 0.5])
    assert score_answer(calibrator, [0.1, 0.7], None).probability is None


def response(**more):
    top = [{"token": "51", "logprob": -0.2}, {"token": "50", "logprob": -2.0}]
    token = {"token": "51", "logprob": -0.2, "top_logprobs": top}
    choice = {"message": {"content": "51"}, "logprobs": {"content": [token]}, "stop_reason": 0}
    return {"model": "m", "choices": [choice | more]}


class FromAClient:
    """As the openai package returns it."""

    def model_dump(self):
        return response()


def score_response(predictor, response, target=None):
    return score_a_response(predictor, response, None, target)


def test_a_response_of_a_server_is_scored_as_its_trace_is(calibrator):
    found = score_response(calibrator, response())
    known = [entropy_bounds([-0.2, -2.0], 1000)]
    lists = ([getattr(one, end) for one in known] for end in ("middle", "lower", "upper"))
    middle, low, high = lists
    expected = score_answer(calibrator, [0.2], middle, None, low, high)
    assert found.probability == pytest.approx(expected.probability, abs=1e-3)
    assert found.lower < found.probability < found.upper
    assert found.reason is None, "decoded as the labelled answers were"
    assert score_response(calibrator, FromAClient()) == found
    exact = {"logprobs": [-0.001], "entropy": [0.001]}
    rate = max(entry.error_rate for entry in calibrator.control.thresholds)
    assert score_answer(calibrator, [0.001], [0.001], rate).keep
    found = score_response(calibrator, exact, rate)
    assert found.keep and found.reason is None, "what is unknown counts as equal"
    lacking = score_response(calibrator, response(logprobs=None))
    assert (lacking.probability, lacking.reason) == (None, "no log-probabilities are given")


def test_what_is_unknown_of_a_response_counts_as_equal_with_a_warning(calibrator, caplog):
    rate = next(rate for rate, value in calibrator.thresholds.items() if value is not None)
    body = {
        "logprobs": [-0.05, -0.4],
        "entropy": [0.2, 0.9],
        "model": "m",
        "stop_token": "included",
    }
    known = score_response(calibrator, body, target=rate)
    assert known.keep is not None and known.reason is None
    calibrator.warn_once.cache_clear()
    for _ in range(2):
        assert score_response(calibrator, body | {"stop_token": "unknown"}, target=rate) == known
    assert caplog.text.count("the answers do not say whether traces include the stop token") == 1


def test_text_that_runs_on_is_decided_about_alike_at_every_door(calibrator, caplog):
    """As in the tests of thresholds, in which such answers were, and each door warns of it."""
    rate = next(rate for rate, value in calibrator.thresholds.items() if value is not None)
    tokens = ["51", "\n\nQ: What is 2 + 2?"]
    trace = {"tokens": tokens, "logprobs": [-0.05, -0.4], "entropy": [0.2, 0.9]}
    body = {"answer": "".join(tokens), "model": "m", "stop_token": "included"} | trace
    doors = {
        "score": lambda: score_answers(
            read_answers([{"id": "answer"} | body]), calibrator, rate
        ).row(0, named=True),
        "score_response": lambda: vars(score_response(calibrator, body, rate)),
        "serve": lambda: Scorer(calibrator, Reading(), rate).confidence(body, {}),
    }
    outcomes = []
    for door, score in doors.items():
        caplog.clear()
        calibrator.warn_once.cache_clear()
        outcomes.append({name: score()[name] for name in ("probability", "keep", "reason")})
        assert caplog.text.count("1 of 1 answers, such as 'answer', run on into another") > 0, door
    assert outcomes[0]["keep"] is not None and outcomes[0]["reason"] is None
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_threshold_certified_for_exact_entropies_decides_nothing_about_bounds(calibrator):
    rate = next(rate for rate, value in calibrator.thresholds.items() if value is not None)
    exact = score_answer(calibrator, [0.1], [0.1], rate)
    bounded = score_answer(calibrator, [0.1], [0.1], rate, [0.05], [0.15], top_k=5)
    assert exact.keep is not None
    assert exact.reason is None
    assert bounded.keep is None
    assert "tested on answers with exact entropies, and this one has entropies from the 5" in (
        bounded.reason
    )
    assert bounded.probability == exact.probability


def test_an_input_moves_one_way_with_each_entropy_unless_it_is_declared_otherwise():
    """A new estimator that does not, and is not in `UNBOUNDED`, fails here."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(40):
        entropy = rng.gamma(1.0, 1.0, size=int(rng.integers(2, 9)))
        for place in range(len(entropy)):
            rows += [entropy, entropy + np.eye(len(entropy))[place] * rng.gamma(1.0)]
    frame = pl.DataFrame(
        {
            "example_id": [str(place) for place in range(len(rows))],
            "surprisal": [(row * 0 + 0.5).tolist() for row in rows],
            "entropy": [row.tolist() for row in rows],
        }
    )
    values = compute_inputs(frame).drop("example_id")
    changes = (values[1::2].to_numpy() - values[::2].to_numpy()).T
    for name, change in zip(values.columns, changes, strict=True):
        one_way = (change >= -1e-12).all() or (change <= 1e-12).all()
        assert one_way or name in {*SLOPES, *UNBOUNDED}, name
        assert (np.abs(change).max() > 1e-12) == (name in ENTROPY_INPUTS), name


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    sharpness=st.floats(0.3, 6),
    k=st.sampled_from([1, 5, 20]),
    length=st.integers(1, 12),
)
def test_the_interval_always_holds_the_exact_probability(calibrator, seed, sharpness, k, length):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(length, 1000)) * sharpness
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    exact = (-p * np.log(p)).sum(axis=1)
    known = [entropy_bounds(np.log(np.sort(row)[::-1][:k]).tolist(), 1000) for row in p]
    surprisal = -np.log(p.max(axis=1))
    low, middle, high = (
        [getattr(one, end) for one in known] for end in ("lower", "middle", "upper")
    )
    truth = score_answer(calibrator, surprisal, exact).probability
    cut = score_answer(calibrator, surprisal, middle, None, low, high)
    assert cut.lower <= truth <= cut.upper
    assert cut.lower <= cut.probability <= cut.upper


@settings(max_examples=25)
@given(trace=traces, widths=st.lists(st.floats(0, 2, width=32), min_size=20, max_size=20))
def test_bounds_of_inputs_hold_every_input_and_agree_with_one_answers(calibrator, trace, widths):
    surprisal, exact = (np.float32(column) for column in zip(*trace, strict=True))
    below = np.minimum(exact, np.float32(widths[: len(exact)]))
    columns = {
        "surprisal": surprisal,
        "entropy": exact,
        "entropy_lower": exact - below,
        "entropy_upper": exact + below[::-1],
    }
    frame = pl.DataFrame(
        {"example_id": ["a"]} | {name: [values.tolist()] for name, values in columns.items()},
        schema_overrides=dict.fromkeys(columns, pl.List(pl.Float32)),
    )
    _, low, high = compute_bounded_inputs(frame)
    known = compute_inputs(frame).row(0, named=True)
    least, most = low.row(0, named=True), high.row(0, named=True)
    for name, value in known.items():
        if name != "example_id" and least[name] is not None:
            assert least[name] - 1e-9 <= value <= most[name] + 1e-9, name
    ends = probability_bounds(
        calibrator.final,
        np.stack([bound.select(calibrator.inputs).to_numpy() for bound in (low, low, high)]),
    )[1:]
    one = score_answer(
        calibrator, surprisal, exact, None, columns["entropy_lower"], columns["entropy_upper"]
    )
    assert [one.lower, one.upper] == pytest.approx([end[0] for end in ends], abs=1e-12)
