"""Calibration cards: their schema, what they say, and files of earlier versions.

Those in `before/` were made by the release before cards: `cascade` and `watch` on made-up answers,
and `label --error-rate` with the verdicts beside them.
"""

import json
import re
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from jsonschema import Draft202012Validator

from support.labelled_answers import answers, stored
from support.log_rows import write
from tracecal.calibration.fits import from_json
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.rated_answers import LabelledAnswers
from tracecal.calibration.risk_control import risk_coverage
from tracecal.calibrator import card
from tracecal.calibrator.fitting import FitSettings, calibrate_answers, labelled
from tracecal.calibrator.schema import DEFAULT, fitted_on, stored_in, unfit_for
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.io.checksums import write_sum
from tracecal.io.files import write_json

BEFORE = Path(__file__).parents[1] / "before"
SCHEMA = json.loads((Path(card.__file__).parent / "card.schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def before(tmp_path, monkeypatch):
    """A folder with files of before, which is the current one."""
    for path in BEFORE.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_a_run():
    """As a run of the workflow makes them: all splits, and thresholds of one estimator at most."""
    settings = FitSettings(splits={"count": 2})
    known = labelled(answers(), "t", settings)
    _, fits = calibrate_all(known.frame, known.splits, known.estimators, "platt", known.fits())
    metadata = {"revision": "abc", "entropy": "exact"}
    return {"fitted_on": fitted_on(metadata, known.frame["correct"], "m", ["owner/m"], "t"), **fits}


@pytest.mark.parametrize(
    "made",
    [
        stored,
        lambda: stored(calibration={"method": "isotonic"}),
        lambda: stored(calibration={"method": "platt_raw"}),
        lambda: stored(answers(60).with_columns(correct=pl.lit(True))),
        lambda: stored(answers(60).with_columns(entropy=pl.lit(None, pl.List(pl.Float32)))),
        of_a_run,
        lambda: stored_in(BEFORE / "C.json"),
    ],
    ids=["usual", "isotonic", "raw", "one class", "no entropies", "run", "before"],
)
def test_every_calibrator_fits_the_schema(made, tmp_path):
    content = json.loads(json.dumps(made()))
    errors = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(content)]
    assert errors == []
    write_json(content, tmp_path / "C.json")
    assert "is a calibration card of version 1" in card.checked(tmp_path / "C.json")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda content: content["fitted_on"].pop("task"),
        lambda content: content["fitted_on"].update(n=0),
        lambda content: content["min_prob"]["final"].update(kind="magic"),
        lambda content: content["min_prob"]["final"].pop("weights"),
        lambda content: content["min_prob"]["risk_control"]["thresholds"][0].pop("error_rate"),
        lambda content: content.update(min_prob=3),
    ],
)
def test_what_does_not_fit_is_refused_with_one_sentence(wrong, content, tmp_path, caplog):
    changed = json.loads(json.dumps(content))
    wrong(changed)
    assert not Draft202012Validator(SCHEMA).is_valid(changed)
    write_json(changed, tmp_path / "C.json")
    assert main(["card", str(tmp_path / "C.json"), "--check"]) == 1
    assert "does not fit the schema of calibration cards" in caplog.text
    assert len(caplog.messages) == 1 and "\n" not in caplog.messages[0]


def test_a_changed_file_and_none_at_all_are_refused(calibrator_file, caplog, capsys):
    write_sum(calibrator_file)
    assert main(["card", str(calibrator_file), "--check"]) == 0
    assert "it matches its checksum" in capsys.readouterr().out
    text = calibrator_file.read_text(encoding="utf-8")
    calibrator_file.write_text(text.replace('"n": 300', '"n": 301'), encoding="utf-8")
    assert main(["card", str(calibrator_file), "--check"]) == 1
    assert "does not match its checksum" in caplog.text
    other = calibrator_file.with_name("other.json")
    other.write_text("{}", encoding="utf-8")
    assert main(["card", str(other), "--check"]) == 1
    assert "it is not a calibrator" in caplog.text


def test_a_later_version_is_refused_wherever_it_is_read(content, tmp_path):
    later = content | {"fitted_on": content["fitted_on"] | {"card_version": 2, "new": 1}}
    write_json(later, tmp_path / "C.json")
    with pytest.raises(InputError, match=r"of version 2, and this tracecal reads version 1"):
        stored_in(tmp_path / "C.json")


def test_a_card_is_made_byte_for_byte_from_the_same_answers_in_any_order(tmp_path):
    frame = answers(90)
    for name, rows in (("one", frame), ("two", frame.sample(fraction=1, shuffle=True, seed=4))):
        made = calibrate_answers(rows, "t", FitSettings(splits={"count": 2}))
        write_json(made, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_it_holds_the_first_and_the_last_day_of_its_answers(tmp_path, content, capsys):
    assert "dates" not in content["fitted_on"] and "given: " not in card.text(content, "C.json")
    began = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC).timestamp()
    frame = answers(90).with_columns(created=began + pl.int_range(pl.len()) * 3600.0)
    rows = [row | {"created": int(row["created"])} for row in frame.iter_rows(named=True)]
    write(tmp_path / "a.jsonl", rows)
    made = ["calibrate", "--answers", str(tmp_path / "a.jsonl"), "--task", "t", "--output"]
    assert main([*made, str(tmp_path / "C.json")]) == 0
    stored = stored_in(tmp_path / "C.json")
    assert stored["fitted_on"]["dates"] == ["2026-03-01", "2026-03-05"]
    assert Draft202012Validator(SCHEMA).is_valid(stored)
    capsys.readouterr()
    assert main(["card", str(tmp_path / "C.json")]) == 0
    assert "  given: from 2026-03-01 to 2026-03-05 (UTC)\n" in capsys.readouterr().out
    one, other = (calibrate_answers(frame, "t", FitSettings()) for frame in (frame, answers(90)))
    assert "dates" not in other["fitted_on"]
    told = card.compared(one, other, ("C.json", "D.json"))
    assert "  given: from 2026-03-01 to 2026-03-05 (UTC) -> not known when\n" in told
    some = frame.with_columns(created=pl.when(pl.int_range(pl.len()) > 0).then("created"))
    assert "dates" not in calibrate_answers(some, "t", FitSettings())["fitted_on"]


def test_risk_against_coverage_is_counted_group_by_group():
    rng = np.random.default_rng(5)
    group, probability = np.repeat(np.arange(60), 2), rng.random(120).round(2)
    correct = rng.random(120) < probability
    found = risk_coverage(LabelledAnswers(group, probability, correct), 3)
    ranked = sorted(probability, reverse=True)
    kept = [[one >= ranked[12 * tenth - 1] for one in probability] for tenth in range(1, 11)]
    # Each group has two answers, so that all weigh the same.
    expected = [(sum(mask) / 120, sum(~correct[mask]) / sum(mask)) for mask in map(np.array, kept)]
    assert np.allclose(found, list(dict.fromkeys(expected)), atol=1e-4)
    assert (
        found[-1][0] == 1
        and risk_coverage(LabelledAnswers(*np.empty((2, 0)), np.empty(0, bool)), 1) == []
    )


def test_the_curve_is_of_the_answers_that_thresholds_are_tested_on(content):
    known = labelled(answers(), "t", FitSettings(splits={"count": 3}))
    tested = known.frame.join(
        known.first_split.filter(part="evaluation"), on="example_id", how="semi"
    )
    share, wrong = content[DEFAULT]["risk_control"]["risk_coverage"][-1]
    assert share == 1 and wrong == pytest.approx(1 - tested["correct"].mean(), abs=1e-4)
    fit = from_json(content[DEFAULT]["splits"]["0"])
    p = fit.predict(tested.select(known.estimators[DEFAULT]).to_numpy())
    best = p >= np.sort(p)[-round(0.5 * len(p) + 0.4)]
    share, wrong = content[DEFAULT]["risk_control"]["risk_coverage"][4]
    assert share == pytest.approx(best.mean(), abs=1e-4)
    assert wrong == pytest.approx(1 - tested["correct"].to_numpy()[best].mean(), abs=1e-4)


def test_it_says_in_plain_words_what_it_is_and_is_not_for(content, calibrator):
    told = card.text(content, "C.json")
    assert told.startswith("Calibration card: m for t\n")
    assert "300 labelled answers to 300 questions" in told
    assert "Risk against coverage" in told and "keeping 100%: " in told
    assert "at most 50% incorrect: keeps" in told and "each with confidence 0.9" in told
    for sentence in content["fitted_on"]["not_for"]:
        assert f"  {sentence}\n" in f"{told}\n"
    described = calibrator.fitted_on.model_copy(
        update={"revision": "abc", "reasoning": "within", "entropy": "top-k", "top_k": 20}
    )
    told = " ".join(unfit_for(described))
    assert "than m, revision abc." in told and "entropies from the 20 likeliest tokens" in told
    assert "with the reasoning before the answer" in told


def test_the_page_says_the_same_and_runs_nothing(calibrator_file, content, tmp_path):
    path = tmp_path / "card.html"
    assert main(["card", str(calibrator_file), "--output", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page and "http" not in re.sub(r'http-equiv="', "", page)
    for section in card.sections(content, "C.json"):
        assert f"<h2>{section.heading}</h2>" in page
        assert page.count("<li>") >= len(section.lines) > 0
    assert "300 labelled answers to 300 questions" in page


def test_two_cards_are_compared(content, tmp_path, capsys):
    other = stored(answers(200, seed=2, model="n"), risk_control={"error_rates": (0.3, 0.45)})
    for name, one in (("C.json", content), ("D.json", other)):
        write_json(one, tmp_path / name)
    paths = [str(tmp_path / name) for name in ("C.json", "D.json")]
    assert main(["card", *paths]) == 0
    told = capsys.readouterr().out
    assert "  model: m -> n\n" in told and "  n: 300 -> 200\n" in told
    assert "labelled answers in both: 0" in told and "  intercept: " in told
    assert "at most 45% incorrect: not tested -> keeps" in told
    assert main(["card", paths[0], paths[0]]) == 0
    assert capsys.readouterr().out.count("  the same\n") == 4
    assert main(["card", *paths, "--output", str(tmp_path / "c.html")]) == 1


def test_a_calibrator_and_its_promise_of_before_are_read(before, capsys):
    assert main(["card", "C.json", "--check"]) == 0
    assert main(["card", "C.json"]) == 0
    told = capsys.readouterr().out
    assert "at most 5.0% less often than l: 83% of the questions are asked again" in told
    scoring = ["score", "--answers", "new.jsonl", "--calibrator", "C.json", "--output", "s.jsonl"]
    for target in (["--error-rate", "0.5"], ["--promise", "below:0.05"]):
        assert main([*scoring, *target]) == 0
        assert pl.read_ndjson("s.jsonl")["keep"].null_count() == 0


def test_a_state_of_monitors_of_before_goes_on(before, capsys):
    connection = sqlite3.connect("S.db")
    connection.executescript((before / "state.sql").read_text(encoding="utf-8"))
    connection.close()
    new = answers(5, seed=9).with_columns(example_id=pl.format("n{}", pl.int_range(pl.len())))
    new.write_ndjson("more.jsonl")
    watch = ["watch", "--answers", "more.jsonl", "--calibrator", "C.json", "--state", "S.db"]
    assert main([*watch, "--error-rate", "0.5"]) == 0
    assert "35 of 35 answers watched" in capsys.readouterr().out


def test_a_search_for_a_promise_of_before_goes_on(before):
    shutil.copy("L.promise.json", "first.json")
    search = ["label", "new.jsonl", "--calibrator", "C.json", "--labels", "given.jsonl"]
    search += ["--output", "L.jsonl", "--error-rate"]
    first = json.loads(Path("first.json").read_text(encoding="utf-8"))
    assert main([*search, "0.5"]) == 0
    assert json.loads(Path("L.promise.json").read_text(encoding="utf-8")) == first
    assert main([*search, "0.4"]) == 0
    record = json.loads(Path("L.promise.json").read_text(encoding="utf-8"))
    assert record["joint_confidence"] == 0.8 and record["tried"][0]["error_rate"] == 0.5
