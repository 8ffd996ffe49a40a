"""One answer has one probability, decision and reason at every door."""

import json
from pathlib import Path

import pytest

import tracecal
from support.labelled_answers import batch_of_answers
from support.log_rows import write
from support.recorded_rows import FOLDER, recorded
from tracecal.answers.answers import answers_in
from tracecal.answers.reading import Reading
from tracecal.answers.row import answers_of, read_row
from tracecal.calibrator.scoring import score_answer
from tracecal.calibrator.trace_kinds import KNOWN_ANSWER, reading_for
from tracecal.errors import InputError
from tracecal.serving.scorer import Scorer

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RATE = 0.2
CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
# What replaces a message, and the reason why it ended.
NO_ANSWERS = {
    "refused": ({"refusal": "I can't help."}, "stop"),
    "called a tool": ({"tool_calls": [CALL]}, "tool_calls"),
    "empty": ({"content": ""}, "stop"),
    "filtered": ({"content": ""}, "content_filter"),
    "cut while reasoning": ({"reasoning_content": "Let me see."}, "length"),
    "request failed": ({"content": "Os"}, "error"),
}


SERVED = ("openai_chat", "openai_completions")  # formats of the proxy


@pytest.fixture(scope="module")
def calibrator():
    reading = Reading(vocabulary=49152)
    return tracecal.calibrate(EXAMPLES / "labelled.jsonl", "cities", reading=reading)


@pytest.fixture(scope="module")
def rows():
    """Answers, each with a label, and those that were not given among them."""
    lines = (EXAMPLES / "new.jsonl").read_text().splitlines()[: 4 * len(NO_ANSWERS)]
    rows = [json.loads(line) | {"correct": True} for line in lines]
    for row, (message, finish) in zip(rows[::4], NO_ANSWERS.values(), strict=True):
        (choice,) = row["response"]["choices"]
        choice["message"] = {"role": "assistant", "content": None} | message
        choice["finish_reason"], choice["logprobs"] = finish, {"content": []}
    return rows


UNKNOWN = {
    "model": "the answers do not say which model gave the answers",
    "stop token": "the answers do not say whether traces include the stop token",
}


@pytest.fixture(params=UNKNOWN)
def unknown(request, rows):
    """What the answers do not say, and answers that do not say it."""
    rows = json.loads(json.dumps([row for place, row in enumerate(rows) if place % 4]))
    for place, row in enumerate(rows):
        if request.param == "model":
            row["response"]["model"] = None if place % 2 else ""
        else:  # only spaces tell the tokens from the answer
            last = row["response"]["choices"][0]["logprobs"]["content"][-1]
            (listed,) = [top for top in last["top_logprobs"] if top["token"] == last["token"]]
            last["token"] = listed["token"] = " "
    return UNKNOWN[request.param], rows


@pytest.fixture(scope="module")
def expected(calibrator, rows):
    """`probability`, `keep` and `reason` of each answer, as `score` gives them of a list."""
    return outcomes(calibrator.score(rows, error_rate=RATE).to_dicts())


def outcomes(scored):
    return [(row["probability"], row["keep"], row["reason"]) for row in scored]


def test_every_answer_has_a_line_in_order_and_those_not_given_say_why(expected, rows, calibrator):
    assert [reason for _, _, reason in expected[::4]] == [*NO_ANSWERS]
    assert all(outcome[:2] == (None, False) for outcome in expected[::4])
    others = [outcome for place, outcome in enumerate(expected) if place % 4]
    assert all(None not in outcome[:2] and outcome[2] is None for outcome in others)
    ids = calibrator.score(rows)["example_id"].to_list()
    assert ids == [row["id"] for row in rows]


def test_without_a_target_nothing_is_decided(calibrator, rows):
    scored = calibrator.score(rows)
    assert scored["keep"].null_count() == len(rows)
    assert scored["reason"][::4].to_list() == [*NO_ANSWERS]


def test_a_file(calibrator, rows, expected, tmp_path):
    scored = calibrator.score(write(tmp_path / "a.jsonl", rows), error_rate=RATE)
    assert outcomes(scored.to_dicts()) == expected


def test_a_response(calibrator, rows, expected):
    for row, outcome in zip(rows, expected, strict=True):
        scored = calibrator.score_response(row["response"], row["request"], error_rate=RATE)
        assert (scored.probability, scored.keep, scored.reason) == outcome


def test_every_estimators_bits_are_those_of_a_file(calibrator, rows):
    """The probability and its bounds of a response, and of one answer's lists."""
    frame = answers_in(rows, calibrator.reading()).frame
    lists = ("surprisal", "entropy", "entropy_lower", "entropy_upper")
    for name in calibrator.estimators:
        scored = calibrator.score(rows, estimator=name).rows(named=True)
        predictor = calibrator.predictor(name)
        for row, trace, expected in zip(rows, frame.to_dicts(), scored, strict=True):
            response = calibrator.score_response(row["response"], row["request"], estimator=name)
            confidences = [response]
            if trace["surprisal"] is not None:
                surprisal, entropy, *bounds = (trace[key] for key in lists)
                confidences.append(
                    score_answer(predictor, surprisal, entropy, None, *bounds, top_k=trace["top_k"])
                )
            for confidence in confidences:
                assert vars(confidence) == {key: expected[key] for key in vars(confidence)}, name


def test_a_refusal_beside_a_text_is_none_at_any_door(calibrator, rows):
    """The tokens that are scored spell the text."""
    rows = json.loads(json.dumps([row for place, row in enumerate(rows) if place % 4]))
    expected = outcomes(calibrator.score(rows, error_rate=RATE).to_dicts())
    for row in rows:
        row["response"]["choices"][0]["message"]["refusal"] = "I can't help."
    assert any(keep for _, keep, _ in expected)
    assert outcomes(calibrator.score(rows, error_rate=RATE).to_dicts()) == expected
    test_a_response(calibrator, rows, expected)
    test_the_proxys_scorer(calibrator, rows, expected)


def test_the_proxys_scorer(calibrator, rows, expected):
    predictor = calibrator.predictor()
    scorer = Scorer(predictor, reading_for(predictor.fitted_on, Reading()), RATE)
    for row, outcome in zip(rows, expected, strict=True):
        answer = json.loads(json.dumps(row["response"]))
        scorer.add_confidence(answer, row["request"])
        assert outcomes([answer["choices"][0]["confidence"]]) == [outcome]


@pytest.mark.parametrize("target", [None, RATE])
def test_an_answer_that_was_fitted_on_has_a_probability_and_no_decision_at_any_door(
    calibrator, target
):
    with (EXAMPLES / "labelled.jsonl").open(encoding="utf-8") as lines:
        row = json.loads(next(lines))
    (expected,) = outcomes(calibrator.score([row], error_rate=target).to_dicts())
    assert expected[0] is not None
    assert expected[1:] == (None, KNOWN_ANSWER if target else None)
    scored = calibrator.score_response(row["response"], row["request"], error_rate=target)
    assert (scored.probability, scored.keep, scored.reason) == expected
    predictor = calibrator.predictor()
    scorer = Scorer(predictor, reading_for(predictor.fitted_on, Reading()), target)
    scorer.add_confidence(row["response"], row["request"])
    assert outcomes([row["response"]["choices"][0]["confidence"]]) == [expected]


def test_what_is_unknown_counts_as_equal_with_one_warning_at_every_door(
    calibrator, unknown, tmp_path, caplog
):
    warning, rows = unknown
    expected = outcomes(calibrator.score(rows, error_rate=RATE).to_dicts())
    assert all(None not in outcome[:2] and outcome[2] is None for outcome in expected)
    path = write(tmp_path / "a.jsonl", rows)
    predictor = calibrator.predictor()

    def of_a_file():
        return outcomes(calibrator.score(path, error_rate=RATE).to_dicts())

    def of_responses():
        bodies = [(row["response"], row["request"]) for row in rows]
        scored = [calibrator.score_response(*body, error_rate=RATE) for body in bodies]
        return outcomes(map(vars, scored))

    def of_the_proxy():
        scorer = Scorer(predictor, reading_for(predictor.fitted_on, Reading()), RATE)
        bodies = [(row["response"], row["request"]) for row in rows]
        return outcomes(scorer.confidence(*body) for body in bodies)

    for door in (of_a_file, of_responses, of_the_proxy):
        predictor.warn_once.cache_clear()
        caplog.clear()
        assert door() == expected, door.__name__
        assert caplog.text.count(warning) == 1, door.__name__
    keeps = [keep for _, keep, _ in expected]
    caplog.clear()
    checked = tracecal.check(rows, calibrator, RATE)
    assert (checked.n_undecided, checked.n_kept) == (0, sum(keeps))
    assert caplog.text.count(warning) == 1
    caplog.clear()
    batch = batch_of_answers(answers_in(rows, calibrator.reading()).frame, predictor, RATE)
    assert batch.keep.tolist() == keeps
    assert caplog.text.count(warning) == 1


@pytest.mark.parametrize("target", [None, RATE])
def test_a_request_that_changes_probabilities_is_decided_alike(calibrator, rows, target):
    row = rows[1] | {"request": rows[1]["request"] | {"temperature": 0.7}}
    (expected,) = outcomes(calibrator.score([row], error_rate=target).to_dicts())
    assert expected[0] is not None and expected[1] is None
    assert (expected[2] is None) == (target is None)
    scored = calibrator.score_response(row["response"], row["request"], error_rate=target)
    assert outcomes([vars(scored)]) == [expected]
    predictor = calibrator.predictor()
    scorer = Scorer(predictor, reading_for(predictor.fitted_on, Reading()), target)
    assert outcomes([scorer.confidence(row["response"], row["request"])]) == [expected]


def test_check(calibrator, rows, expected):
    checked = tracecal.check(rows, calibrator, RATE)
    n_kept = sum(keep for _, keep, _ in expected)
    assert (checked.n_answers, checked.n_undecided, checked.n_kept) == (len(rows), 0, n_kept)
    assert checked.n_wrong == 0


def test_watch(calibrator, rows, expected, tmp_path):
    frame = answers_in(rows, calibrator.reading()).frame
    batch = batch_of_answers(frame, calibrator.predictor(), RATE)
    assert batch.keep.tolist() == [float(keep) for _, keep, _ in expected]
    with tracecal.Monitors(calibrator, tmp_path / "state.db", error_rate=RATE) as monitors:
        assert monitors.watch(rows).new == len(rows)


def test_other_doors_take_them(calibrator, rows, tmp_path):
    assert tracecal.pick(rows, len(rows)).height == len(rows)
    path = tmp_path / "page.html"
    tracecal.explore(rows, path, calibrator=calibrator, task="cities")
    assert path.stat().st_size
    summary = tracecal.explain_reading(rows)
    assert f"{len(rows)} answers: 1 refuses, 1 calls a tool" in " ".join(str(summary).split())


def test_one_reads_like_the_file(calibrator, rows):
    frame = answers_in(rows, calibrator.reading()).frame
    for row, reason in zip(rows, frame["no_answer"], strict=True):
        assert read_row(row, calibrator.reading()).no_answer == reason


def with_some_cut(labelled):
    """The labelled example, of whose wrong answers 120 ended in their reasoning."""
    lines = (EXAMPLES / "labelled.jsonl").read_text(encoding="utf-8").splitlines()
    wrong = 0
    for row in map(json.loads, lines):
        wrong += not row["correct"]
        if not row["correct"] and wrong <= 120:
            (choice,) = row["response"]["choices"]
            choice |= {"finish_reason": "length", "logprobs": {"content": []}}
            choice["message"] = {"content": None, "reasoning_content": "Let me see."}
            row["correct"] = False if labelled else None
        yield row


@pytest.mark.parametrize(
    ("labelled", "failed", "n"),
    [(True, "unlabelled", 400), (False, "incorrect", 400), (False, "unlabelled", 280)],
)
def test_shares_are_of_all_answers(labelled, failed, n):
    reading = Reading(vocabulary=49152, failed=failed)
    fitted = tracecal.calibrate(with_some_cut(labelled), "cities", reading=reading)
    assert fitted.fitted_on.n == n
    assert fitted.fitted_on.base_rate == pytest.approx(0.56 if n == 400 else 0.8, abs=0.005)
    control = fitted.predictor().control
    (entry,) = [rate for rate in control.thresholds if rate.error_rate == RATE]
    assert entry.coverage == pytest.approx(0.64, abs=0.03)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.jsonl")))
def test_every_sample_of_every_format(calibrator, name):
    """The rows that the tests of formats read, as a list, as a response and in the proxy."""
    predictor = calibrator.predictor()
    kind = ("model", "stop_token", "processed")
    stated = {key: getattr(predictor.fitted_on, key) for key in kind} | {"choices": "first"}
    compared = 0
    for recording in recorded(name):
        reading = Reading(**recording["reading"] | stated)
        (answer,) = answers_of(recording["row"], reading)
        if answer.error is not None or answer.part_labels is not None or reading.columns:
            continue
        try:
            expected = outcomes(
                calibrator.score([answer.row], error_rate=RATE, reading=reading).to_dicts()
            )
        except InputError:  # of another kind than the labelled ones, or with verdicts that are none
            continue
        request = answer.row.get("request") or {}
        reading = reading.model_copy(update={"id": None})  # which a response has not
        response = calibrator.score_response(answer.body, request, error_rate=RATE, reading=reading)
        assert outcomes([vars(response)]) == expected
        if name in SERVED:
            scorer = Scorer(predictor, reading_for(predictor.fitted_on, reading), RATE)
            assert outcomes([scorer.confidence(answer.body, request)]) == expected
        compared += 1
    assert compared or name == "unknown"
