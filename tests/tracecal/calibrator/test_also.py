"""Columns of a user's own beside the trace: a judge's verdict, a retriever's score (--also)."""

import json

import numpy as np
import polars as pl
import pytest

import tracecal
from support.labelled_answers import answers
from tracecal.answers.answers import answers_in
from tracecal.answers.reading import Reading
from tracecal.cli.main import main
from tracecal.estimators.custom_scores import with_own_inputs
from tracecal.estimators.features import compute_inputs
from tracecal.explorer.confidences import trace_predictors
from tracecal.explorer.page_answers import PageAnswers
from tracecal.fits.regression import OWN_COLUMN, RIDGE
from tracecal.labelling.search import deciding_scores
from tracecal.serving.proxy_settings import ProxySettings
from tracecal.serving.server import run

CONFIG = {"splits": {"count": 1}}
JUDGE = {"judge": "scores.judge"}
READING = tracecal.Reading(also=JUDGE)
CALIBRATE = ["calibrate", "--answers", "labelled.jsonl", "--task", "t", "--output", "C.json"]
SCORE = ["score", "--answers", "new.jsonl", "--calibrator", "C.json", "--output", "scored.jsonl"]


def judged(n, seed=0, right=0.85, inverse=False, missing=()):
    """Rows of answers, each with the verdict of a judge that agrees with `right` of the labels."""
    rng = np.random.default_rng(seed)
    rows = answers(n, seed=seed).drop("also").rows(named=True)
    for place, row in enumerate(rows):
        agrees = (rng.random() < right) != inverse
        verdict = "C" if row["correct"] == agrees else "I"
        row["scores"] = {} if place in missing else {"judge": verdict}
    return rows


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def shown_in(path, calibrator):
    """What a page of a file's answers shows."""
    known = tracecal.Calibrator.load(calibrator)
    read = answers_in(path, known.reading(), keep_rows=True)
    return PageAnswers(read, trace_predictors(known.file, calibrator), None, None).page_data()


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(json.dumps(CONFIG), encoding="utf-8")
    written(tmp_path / "labelled.jsonl", judged(200))
    new = [row | {"correct": None} for row in judged(40, seed=1, missing=(3, 5))]
    written(tmp_path / "new.jsonl", new)
    return tmp_path


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *[(0.25, 0.25), (3, 3.0), (True, 1.0), ("I", 0.0), ("correct", 1.0), ("-1.5", -1.5)],
        *[("", None), (None, None), (float("nan"), None)],
    ],
)
def test_numbers_are_read_as_they_are_and_verdicts_as_1_and_0(value, number):
    row = {"id": "a", "logprobs": [-0.5], "more": {"judge": value}}
    (told,) = answers_in([row], Reading(also={"judge": "more.judge"})).frame["also"][0]
    assert told == {"name": "judge", "path": "more.judge", "value": number}


@pytest.mark.parametrize("value", ["maybe", [1], {"score": 1}, float("inf")])
def test_what_is_neither_is_refused_with_its_place(value):
    row = {"id": "a", "logprobs": [-0.5], "judge": value}
    with pytest.raises(tracecal.InputError, match="row 1: judge holds .*neither a number nor a v"):
        answers_in([row], Reading(also={"judge": "judge"}))


def test_a_value_may_stand_beside_a_servers_answer_or_in_it():
    body = {"logprobs": [-0.5], "inner": 0.5}
    rows = [{"id": "a", "outer": 0.25, "response": body}]
    frame = answers_in(rows, Reading(also={"x": "outer", "y": "inner"})).frame
    assert [one["value"] for one in frame["also"][0]] == [0.25, 0.5]


def test_commands_and_functions_take_them_and_the_calibrator_knows_where_they_are(
    files, caplog, capsys
):
    assert main([*CALIBRATE, "--config", "config.yaml", "--also", "judge=scores.judge"]) == 0
    printed = capsys.readouterr().out
    assert "guarantees rest on the trace and judge, made as for the labelled ans" in caplog.text
    assert "--also judge=scores.judge" in printed and "tracecal serve" not in printed
    calibrator = tracecal.calibrate("labelled.jsonl", "t", config=CONFIG, reading=READING)
    calibrator.save("own.json")
    assert (files / "own.json").read_bytes() == (files / "C.json").read_bytes()
    assert calibrator.recommended == "log_ridge_also"
    assert calibrator.fitted_on.columns == JUDGE
    lines = calibrator.report().text.splitlines()
    assert all(line in printed for line in lines if not line.startswith("Read with"))
    # The path need not be told again.
    assert main([*SCORE, "--error-rate", "0.4"]) == 0
    scored = pl.read_ndjson("scored.jsonl", infer_schema_length=None)
    assert scored.filter(pl.col("probability").is_null())["example_id"].to_list() == [
        "a0003",
        "a0005",
    ]
    assert "it has no judge, which the calibrator takes beside the trace" in scored["reason"][3]
    assert "2 of 40 answers have no probability" in caplog.text
    own = calibrator.score("new.jsonl", error_rate=0.4)
    assert own["keep"].to_list() == scored["keep"].to_list()
    assert own["probability"].round(4).to_list() == scored["probability"].to_list()
    watched = ["watch", "--answers", "new.jsonl", "--calibrator", "C.json", "--state", "s.db"]
    assert main(watched) == 0
    assert "40 answers" in capsys.readouterr().out
    assert main(["explore", *SCORE[1:-1], "page.html"]) == 0
    shown = shown_in("new.jsonl", "C.json")
    name, values = deciding_scores(shown, None, calibrator.recommended)
    assert name == "log_ridge_also"
    assert [value is None for value in values].count(True) == 2


@pytest.fixture(scope="module")
def calibrator():
    return tracecal.calibrate(judged(300), "t", config=CONFIG, reading=READING)


def test_one_answer_is_scored_as_a_file_of_it(calibrator):
    row = judged(1, seed=9)[0]
    whole = calibrator.score([row])["probability"][0]
    value = 1.0 if row["scores"]["judge"] == "C" else 0.0
    trace = row["surprisal"], row["entropy"]
    assert calibrator.score_trace(*trace, also={"judge": value}).probability == pytest.approx(whole)
    other = calibrator.score_trace(*trace, also={"judge": 1 - value}).probability
    assert (other < whole) == (value == 1), "larger is more trustworthy"
    for given in (None, {}, {"judge": None}):
        found = calibrator.score_trace(*trace, also=given)
        assert found.probability is None and "it has no judge" in found.reason
    response = {name: row[name] for name in ("surprisal", "entropy", "scores", "model")}
    response |= {"stop_token": "included", "processed": "no"}
    assert calibrator.score_response(response).probability == pytest.approx(whole)


def test_a_frame_that_was_read_may_have_them_as_its_own_columns(calibrator):
    rows = judged(50, seed=4)
    read = tracecal.read_answers(rows, reading=READING)
    scored = calibrator.score(rows)
    assert calibrator.score(read).equals(scored)
    values = pl.Series("mine", [row["scores"]["judge"] == "C" for row in rows])
    plain = tracecal.read_answers(rows).with_columns(values)
    assert calibrator.score(plain, reading=tracecal.Reading(also={"judge": "mine"})).equals(scored)
    assert calibrator.score(plain)["probability"].null_count() == 50
    with pytest.raises(tracecal.InputError, match="are not all numbers or verdicts"):
        calibrator.score(plain, reading=tracecal.Reading(also={"judge": "example_id"}))


def test_the_weight_is_at_least_0_so_that_an_inverse_judge_counts_for_nothing(calibrator):
    def weight(of):
        return dict(zip(of[1].features, of[1].final.weights, strict=True))["judge"]

    inverse = tracecal.calibrate(judged(300, inverse=True), "t", config=CONFIG, reading=READING)
    fits = [(one, one.file.estimators["log_ridge_also"]) for one in (calibrator, inverse)]
    assert weight(fits[0]) > 0.5
    assert weight(fits[1]) == 0
    # Without weight the fit is that of the trace alone.
    alone = inverse.file.estimators["log_ridge"].final
    own = inverse.file.estimators["log_ridge_also"].final
    x = np.random.default_rng(0).normal(size=(5, len(alone.weights)))
    assert own.predict(np.column_stack([x, np.ones(5)])) == pytest.approx(alone.predict(x))


def test_the_fit_is_scikit_learns_with_a_penalty_of_each_column(calibrator):
    """Minimises the same loss: a step along any free weight does not lower it."""
    fit = calibrator.file.estimators["log_ridge_also"].final
    known = tracecal.read_answers(judged(300), reading=READING).filter(
        pl.col("entropy").is_not_null()
    )
    names = calibrator.predictor().inputs
    x = compute_inputs(with_own_inputs(known, names), names).select(names).to_numpy()
    z = (x - fit.means) / np.array(fit.scales)
    y, w = known["correct"].to_numpy(), np.array(fit.weights)
    residual = 1 / (1 + np.exp(-(fit.intercept + z @ w))) - y
    penalty = np.array([RIDGE] * (len(w) - 1) + [OWN_COLUMN])
    gradient = z.T @ residual + penalty * w
    free = w > 1e-9
    assert free[-1] and np.abs(gradient[free]).max() < 1e-5


def test_without_entropies_the_columns_stand_beside_log_probabilities():
    rows = [row | {"entropy": None} for row in judged(100)]
    calibrator = tracecal.calibrate(rows, "t", config=CONFIG, reading=READING)
    assert calibrator.recommended == "log_ridge_also"
    features = calibrator.file.estimators["log_ridge_also"].features
    assert features[-1] == "judge" and not any("entropy" in name for name in features)
    assert calibrator.score(judged(5, seed=2))["probability"].null_count() == 0
    assert calibrator.score(rows[:5])["probability"].null_count() == 0


def test_parts_of_an_answer_have_its_value():
    rows = []
    for place, row in enumerate(judged(80)):
        tokens = ['{"a"', ': 1, "b"', ": 2}"]
        told = {"surprisal": [0.1, 0.2, 0.1 + place / 80], "entropy": [0.2, 0.3, place / 40]}
        labels = {"correct": {"a": row["correct"], "b": not place % 3}}
        same = {name: row[name] for name in ("example_id", "model", "scores")}
        rows.append(same | told | {"tokens": tokens, "answer": "".join(tokens)} | labels)
    parts = {"json": ["a", "b"]}
    calibrator = tracecal.calibrate(rows, "t", config=CONFIG, reading=READING, parts=parts)
    assert calibrator.file.estimators["log_ridge_also"].features[-1] == "judge"
    scored = calibrator.score(rows[:3])
    assert scored["parts"].list.len().to_list() == [2, 2, 2]
    assert (
        scored.explode("parts").unnest("parts", separator="_")["parts_probability"].null_count()
        == 0
    )


def test_the_card_says_what_it_rests_on(calibrator):
    told = str(calibrator.card())
    assert "further column: judge (at scores.judge in a row), larger: more trustworthy" in told
    assert "answers are kept by the trace and judge, made as for the labelled answers" in told
    assert "Answers whose judge was made in another way than that of the labelled" in told


@pytest.mark.parametrize(
    ("rows", "also", "sentence"),
    [
        (judged(60), {"judge": "nowhere"}, "0 of 60 labelled answers have a trace and judge"),
        (judged(60), {"log_length": "scores.judge"}, "a feature of traces has this name"),
    ],
)
def test_columns_that_cannot_be_fitted_on_are_refused(rows, also, sentence):
    with pytest.raises(tracecal.InputError, match=sentence):
        tracecal.calibrate(rows, "t", config=CONFIG, reading=tracecal.Reading(also=also))


def test_a_column_that_the_calibrator_does_not_know_is_refused(calibrator):
    with pytest.raises(tracecal.InputError, match="not fitted on the further column 'x'.*: judge"):
        calibrator.score(judged(3), reading=tracecal.Reading(also={"x": "y"}))


def test_a_proxy_takes_none(calibrator, files):
    calibrator.save("C.json")
    settings = ProxySettings(upstream="http://localhost:1")
    with pytest.raises(tracecal.InputError, match="takes judge beside the trace"):
        run(settings, "C.json", None, Reading())


def test_the_option_is_column_and_path(files, caplog):
    assert main([*CALIBRATE, "--also", "judge"]) == 1
    assert "--also judge: expected COLUMN=PATH, such as judge=scores.judge" in caplog.text


def test_answers_that_get_no_probability_are_warned_of_and_counted_in_a_dozen_lines(
    files, capsys, caplog
):
    rows = [row | ({"entropy": None} if n % 4 == 0 else {}) for n, row in enumerate(judged(200))]
    written(files / "labelled.jsonl", rows)
    rates = [f"--error-rate={rate}" for rate in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)]
    assert main([*CALIBRATE, "--also", "judge=scores.judge", *rates, "--report", "r.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 12 and max(map(len, lines)) <= 80
    assert "; 50 have no probability: no top log-probabilities" in " ".join(lines[:2])
    assert "50 of 200 answers list no alternatives and have no entropies" in caplog.text
    assert "columns, which gives these no probability" in caplog.text


@pytest.mark.parametrize(
    ("path", "rows", "sentence"),
    [
        ("correct", judged(60), "is the path of the label"),
        ("scores.judge", judged(60, right=1.0), "equals the label in all 60 labelled answers"),
    ],
    ids=["its path", "its values"],
)
def test_a_column_that_is_the_label_is_refused(path, rows, sentence):
    reading = tracecal.Reading(also={"judge": path})
    with pytest.raises(tracecal.InputError, match=rf"also={{'judge': '{path}'}}\) {sentence}"):
        tracecal.calibrate(rows, "t", reading=reading)


def test_a_column_that_tells_nearly_as_much_as_the_label_is_warned_of(caplog):
    caplog.set_level("WARNING", "tracecal")
    rows = judged(400, right=0.997)
    assert 0 < sum((row["scores"]["judge"] == "C") != row["correct"] for row in rows) < 4
    tracecal.calibrate(rows, "t", reading=READING)
    assert "tells right from wrong labels nearly perfectly (AUROC 0.99" in caplog.text
    caplog.clear()
    tracecal.calibrate(judged(200), "t", reading=READING)
    assert "nearly perfectly" not in caplog.text
