"""A page of any file's answers: what it holds, and how it shows what a file lacks."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

import polars as pl
import pytest

from support.labelled_answers import answers, predictor_of
from tests.tracecal.calibrator.test_parts import CALIBRATE, rows, write
from tracecal.answers.answers import answers_in, read_file
from tracecal.answers.facts import find_question
from tracecal.calibrator.calibrator import Calibrator
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.part_confidences import score_parts
from tracecal.calibrator.predictor import load_predictor
from tracecal.calibrator.schema import CalibratorFile
from tracecal.calibrator.scoring import score_answers
from tracecal.calibrator.trace_kinds import fingerprints
from tracecal.calibrator.training_set import make_training_set
from tracecal.cli.main import main
from tracecal.explorer.confidences import trace_predictors
from tracecal.explorer.page_answers import PageAnswers
from tracecal.fits.fit_settings import FitSettings
from tracecal.statistics.percentages import percent

BOTH = "json: [capital, currency]"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def explored(tmp_path, name, *more):
    output = tmp_path / "answers.html"
    assert main(["explore", "--answers", str(name), "--output", str(output), *more]) == 0
    return output


def data(page):
    packed = re.search(r'<script id="data"[^>]*>([^<]*)</script>', page.read_text()).group(1)
    return json.loads(gzip.decompress(b64decode(packed)))


def test_new_answers_have_the_probabilities_of_score_and_known_ones_those_of_other_fits(
    tmp_path, content
):
    """The calibrator was fitted on `answers()`; the last ten are new."""
    new = answers(10, seed=9).with_columns(example_id=pl.format("new{}", pl.int_range(pl.len())))
    frame = pl.concat([answers().head(20), new])
    frame.write_ndjson(tmp_path / "log.jsonl")
    read = answers_in(tmp_path / "log.jsonl", keep_rows=True)
    calibrators = trace_predictors(CalibratorFile.parse(content, "made up"), "made up")
    data = PageAnswers(read, calibrators, None, None).page_data()
    shown = data["answers"]
    for name in (DEFAULT, "min_prob"):
        scored = score_answers(read.frame, calibrators[name])["probability"].to_list()
        assert shown["probability"][name][20:] == pytest.approx(scored[20:], rel=1e-3)
        assert shown["held_out"][name][20:] == shown["probability"][name][20:]
    held_out = content[DEFAULT]["held_out"]
    by_answer = dict(zip(held_out["answer"], held_out["probability"], strict=True))
    expected = [by_answer[name] for name in fingerprints(read.frame.head(20))]
    assert shown["probability"][DEFAULT][:20] == pytest.approx(expected, rel=1e-3)
    assert shown["held_out"][DEFAULT] == shown["probability"][DEFAULT]
    assert shown["held_out"]["min_prob"][:20] == [None] * 20
    assert data["use"] == DEFAULT
    assert None not in shown["score"]["min_prob"]


def test_a_calibrator_without_other_fits_leaves_its_own_answers_out_of_the_charts(
    tmp_path, content, caplog
):
    content = json.loads(json.dumps(content))
    del content[DEFAULT]["held_out"]
    answers(20).write_ndjson(tmp_path / "log.jsonl")
    read = answers_in(tmp_path / "log.jsonl", keep_rows=True)
    shown = PageAnswers(
        read, trace_predictors(CalibratorFile.parse(content, "made up"), "made up"), None, None
    ).page_data()["answers"]
    assert shown["held_out"]["min_prob"] == [None] * 20
    assert "fitted on 20 of the answers" in caplog.text


def test_the_page_of_calibrate_has_every_estimator_by_fits_that_had_not_seen_the_answer(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    answers(80).write_ndjson("labelled.jsonl")
    Path("fit.yaml").write_text("splits: {count: 1}\nbootstrap: {resamples: 20}\n")
    told = ["--answers", "labelled.jsonl", "--task", "t", "--output", "C.json"]
    assert main(["calibrate", *told, "--config", "fit.yaml", "--report", "r.html"]) == 0
    shown = data(tmp_path / "r.answers.html")
    known = make_training_set(read_file("labelled.jsonl").frame, "t", FitSettings())
    expected = known.cross_fitted()
    for name in (DEFAULT, "trace_plus", "min_prob"):
        own = expected.filter(estimator=name).sort("example_id")["probability"].to_list()
        assert shown["answers"]["held_out"][name] == pytest.approx(own, rel=1e-3)
    explored_later = data(explored(tmp_path, "labelled.jsonl", "--calibrator", "C.json"))
    own = explored_later["answers"]["held_out"][DEFAULT]
    assert own == pytest.approx(shown["answers"]["held_out"][DEFAULT], rel=1e-3)


def test_a_file_has_the_layout_of_a_run(tmp_path):
    from support.explorer_answers import ESTIMATORS, MODELS, TASKS
    from support.explorer_answers import answers as of_run
    from tracecal.explorer.explorer_contents import contents

    run = contents(of_run(4), ESTIMATORS, MODELS, TASKS, "run", 16)
    file = data(explored(tmp_path, EXAMPLES / "columns.jsonl"))
    assert list(file) == list(run)
    assert set(file["answers"]) == set(run["answers"])


def test_many_answers_are_chosen_at_random(tmp_path):
    answers(50).write_ndjson(tmp_path / "log.jsonl")
    shown = data(explored(tmp_path, tmp_path / "log.jsonl", "--number", "20"))
    assert shown["total"] == 50
    assert len(set(shown["answers"]["example_id"])) == 20


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"question": "Who?", "references": ["A", 3]}, ("Who?", None, ["A", "3"])),
        ({"doc": {"question": "Who?"}, "target": "A"}, ("Who?", None, ["A"])),
        ({"input": "Who?", "target": ["A", "B"]}, ("Who?", None, ["A", "B"])),
        (
            {"request": {"body": {"messages": [{"role": "user", "content": "Who?"}]}}},
            ("Who?", None, []),
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Who?"}]}]},
            ("Who?", None, []),
        ),
        ({"context": "There.", "response": {"x": 1}}, ("the prompt", "There.", [])),
    ],
)
def test_a_question_is_found_where_tools_put_it(row, expected):
    found = find_question(row, "the prompt")
    assert (found["question"], found["context"], found["references"]) == expected


def test_answers_without_labels_show_no_overview(browser, tmp_path, content):
    (tmp_path / "C.json").write_text(json.dumps(content))
    frame = answers(12, seed=4).with_columns(correct=None, tokens=None)
    frame.write_ndjson(tmp_path / "log.jsonl")
    told = ["--calibrator", str(tmp_path / "C.json"), "--vocabulary", "1000"]
    browser.open(explored(tmp_path, tmp_path / "log.jsonl", *told))
    assert not browser.complaints
    text = browser.ask("document.body.innerText")
    assert "All 12 answers of the file." in text
    assert "Not labelled" in text
    assert "Confident errors" not in text
    assert browser.ask("document.getElementById('overview').hidden")
    assert browser.ask("document.querySelectorAll('.token').length") > 0
    first = browser.ask("document.querySelector('.row .confidence').textContent")
    most = max(data(tmp_path / "answers.html")["answers"]["probability"][DEFAULT])
    assert float(first) == pytest.approx(most, abs=6e-4)


def test_labelled_answers_show_the_overview(browser, tmp_path, content):
    (tmp_path / "C.json").write_text(json.dumps(content))
    answers(60, seed=4).write_ndjson(tmp_path / "log.jsonl")
    told = ["--calibrator", str(tmp_path / "C.json"), "--vocabulary", "1000"]
    browser.open(explored(tmp_path, tmp_path / "log.jsonl", *told))
    assert not browser.ask("document.getElementById('overview').hidden")
    basis = browser.ask("document.getElementById('basis').textContent")
    assert basis.startswith("of labelled answers: 60 of 60")
    assert "NaN" not in browser.ask("document.body.innerText")


def test_rows_without_texts_of_tokens_show_their_answer_as_text(browser, tmp_path):
    frame = answers(12, seed=4).with_columns(answer=pl.lit("Lima, of course."), tokens=None)
    frame.write_ndjson(tmp_path / "log.jsonl")
    browser.open(explored(tmp_path, tmp_path / "log.jsonl"), "#order=down")
    shown = browser.ask("document.querySelector('#answer .text-of-answer').innerText")
    assert shown.startswith("Lima, of course.") and "◌" not in shown
    chips = browser.ask("document.querySelectorAll('#answer .untold .token').length")
    name = browser.ask("document.querySelector('#answer .where bdi').textContent")
    assert chips == len(frame.filter(example_id=name)["surprisal"][0])


@pytest.mark.parametrize("name", ["llama_cpp.jsonl", "samples_cities.jsonl"])
def test_what_a_file_lacks_is_left_out(browser, tmp_path, name):
    more = ["--id", "doc.id"] if name.startswith("samples") else []
    browser.open(explored(tmp_path, EXAMPLES / name, *more))
    assert not browser.complaints
    browser.ask("document.querySelectorAll('#answer details').forEach((one) => (one.open = true))")
    browser.ask("new Promise((done) => setTimeout(done, 50))")
    assert not browser.complaints
    text = browser.ask("document.body.innerText")
    assert "undefined" not in text.replace("–: undefined", "") and "NaN" not in text


def test_answers_of_another_model_are_refused(tmp_path, content, caplog):
    (tmp_path / "C.json").write_text(json.dumps(content))
    answers(5, model="other").write_ndjson(tmp_path / "log.jsonl")
    told = ["--answers", str(tmp_path / "log.jsonl"), "--output", str(tmp_path / "a.html")]
    assert main(["explore", *told, "--calibrator", str(tmp_path / "C.json")]) == 1
    assert "calibrate on that model's answers" in caplog.text
    assert not (tmp_path / "a.html").exists()


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """A calibrator of two fields, and a file of answers that hold them."""
    root = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write("labelled.jsonl", rows(60, 1))
        write("new.jsonl", rows(20, 3))
        (root / "fit.yaml").write_text("splits: {count: 1}\nbootstrap: {resamples: 20}\n")
        assert main(CALIBRATE) == 0
    return root


@pytest.fixture
def of_parts(calibrated, monkeypatch):
    monkeypatch.chdir(calibrated)
    return calibrated


def test_parts_of_a_file_have_the_probabilities_of_score(of_parts):
    page = explored(of_parts, "new.jsonl", "--calibrator", "C.json")
    shown, places = data(page)["answers"], data(page)["places"]
    scored = score_parts(read_file("new.jsonl").frame, load_predictor("C.json", "trace_plus"))
    known = {
        f"{example}/{part['name']}": part
        for example, parts in scored.select("example_id", "parts").iter_rows()
        for part in parts
    }
    assert sorted(known) == sorted(shown["example_id"])
    wanted = [known[name] for name in shown["example_id"]]
    probabilities = [part["probability"] for part in wanted]
    assert shown["probability"]["trace_plus"] == pytest.approx(probabilities, rel=1e-3)
    assert shown["prediction"] == [part["value"] for part in wanted]
    assert None not in shown["correct"]
    assert places["part"] == [part["name"] for part in wanted]
    assert data(page)["total"] == 40


def test_parts_without_a_calibrator_are_shown_with_scores(of_parts):
    page = explored(of_parts, "new.jsonl", "--parts", BOTH, "--number", "7")
    shown, parents = data(page)["answers"], data(page)["parents"]
    # The parts of an answer are shown together, so there is no room for the fourth's.
    assert (len(shown["example_id"]), len(parents["tokens"])) == (6, 3)
    assert None not in shown["score"]["seq_logp"]


@pytest.mark.parametrize(
    "given, expected",
    [
        (["--parts", "lines: [capital]"], "no answer holds the parts"),
        (["--parts", BOTH, "--calibrator", "W.json"], "was fitted on whole answers"),
    ],
)
def test_parts_that_cannot_be_shown_are_refused(of_parts, content, caplog, given, expected):
    of_any = content | {"fitted_on": content["fitted_on"] | {"vocabulary": None}}
    Path("W.json").write_text(json.dumps(of_any))
    write("plain.jsonl", rows(20, 3, labelled=False))
    told = ["explore", "--answers", "plain.jsonl", "--output", "a.html"]
    assert main([*told, *given]) == 1
    assert expected in caplog.text


def test_a_page_at_an_error_rate_says_what_is_kept_and_opens_on_its_threshold(
    browser, tmp_path, content, caplog
):
    (tmp_path / "C.json").write_text(json.dumps(content))
    frame = answers(60, seed=4)
    frame.write_ndjson(tmp_path / "log.jsonl")
    told = ["--calibrator", str(tmp_path / "C.json"), "--vocabulary", "1000"]
    browser.open(explored(tmp_path, tmp_path / "log.jsonl", *told, "--error-rate", "0.4"))
    assert not browser.complaints
    decision = data(tmp_path / "answers.html")["decision"]
    scored = score_answers(frame, predictor_of(content, DEFAULT, "C.json"), 0.4)
    assert decision["kept"] == scored["keep"].to_list() and 0 < sum(decision["kept"]) < 60
    least = scored.filter(pl.col("keep"))["probability"].min()
    assert decision["threshold"] == pytest.approx(least)
    assert browser.ask("Number(document.getElementById('threshold').value)") == pytest.approx(
        int(100 * least) / 100
    )
    assert browser.ask("document.querySelectorAll('#histogram .decided').length") == 1
    browser.ask("document.getElementById('everything').click()")
    said = browser.ask("document.querySelector('#answer .decision').textContent")
    assert said.startswith("Kept at an error rate of 40 %")
    alone = ["--answers", str(tmp_path / "log.jsonl"), "--output", str(tmp_path / "x.html")]
    assert main(["explore", *alone, "--error-rate", "0.4"]) == 1
    assert "--error-rate needs --calibrator" in caplog.text


def test_a_page_without_an_error_rate_shows_the_guaranteed_one_nearest_to_the_usual(
    tmp_path, content
):
    (tmp_path / "C.json").write_text(json.dumps(content))
    answers(60, seed=4).write_ndjson(tmp_path / "log.jsonl")
    explored(tmp_path, tmp_path / "log.jsonl", "--calibrator", str(tmp_path / "C.json"))
    thresholds = predictor_of(content, DEFAULT, "C.json").thresholds
    rates = [
        rate for rate, least in thresholds.items() if least is not None and isinstance(rate, float)
    ]
    decision = data(tmp_path / "answers.html")["decision"]
    assert decision["rate"] == min(rates, key=lambda rate: abs(rate - 0.2))
    assert decision["threshold"] is not None


@pytest.mark.parametrize("error_rate", [None, "0.1"])
def test_the_slider_of_labelled_answers_keeps_the_share_that_the_guarantee_keeps(
    browser, tmp_path, error_rate
):
    log, file = str(EXAMPLES / "labelled.jsonl"), str(tmp_path / "C.json")
    assert main(["calibrate", "--answers", log, "--task", "cities", "--output", file]) == 0
    options = ["--calibrator", file, "--task", "cities"]
    options += [] if error_rate is None else ["--error-rate", error_rate]
    browser.open(explored(tmp_path, log, *options))
    decision = data(tmp_path / "answers.html")["decision"]
    predictor = Calibrator.load(file).predictor()
    guarantee = predictor.control.targets[decision["rate"]]
    assert error_rate is None or decision["rate"] == float(error_rate)
    n_kept = sum(value >= decision["threshold"] for value in predictor.held_out.values())
    assert n_kept == pytest.approx(400 * guarantee.coverage, abs=2) and n_kept > 0
    assert decision["about"].startswith(
        f"Guaranteed: keep the surest {percent(guarantee.coverage)}"
    )
    slider = browser.ask("Number(document.getElementById('threshold').value)")
    assert slider == int(100 * decision["threshold"]) / 100 != 0.5
    assert browser.ask("document.getElementById('decided').textContent") == decision["about"]
    browser.ask("document.getElementById('everything').click()")
    assert browser.ask("document.querySelector('#answer .decision')") is None


def test_five_scores_are_offered_and_the_others_behind_more(browser, tmp_path):
    answers(20, seed=4).write_ndjson(tmp_path / "log.jsonl")
    browser.open(explored(tmp_path, tmp_path / "log.jsonl", "--vocabulary", "1000"))
    options = "[...document.querySelectorAll('#by option')].map((one) => one.value)"
    first = browser.ask(options)
    chosen = browser.ask("document.getElementById('by').value")
    assert len(first) == 6 and "more" in first and chosen in first
    browser.ask(
        "(document.getElementById('by').value = 'more',"
        " document.getElementById('by').dispatchEvent(new Event('input')))"
    )
    everything = browser.ask(options)
    assert len(everything) > 6 and {*first} - {"more"} < {*everything}
    assert "more" not in everything
    assert browser.ask("document.getElementById('by').value") == chosen
