"""Calibration cards: their schema and what they say."""

import json
import re
from datetime import UTC, datetime
from html import escape

import numpy as np
import polars as pl
import pytest
from jsonschema import Draft202012Validator

from support.labelled_answers import answers, fitted_file
from support.log_rows import write
from tracecal.calibrator.card import Card, verify
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.schema import CalibratedEstimator, CalibratorFile
from tracecal.calibrator.trace_kinds import describe_traces
from tracecal.calibrator.training_set import make_training_set
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.fits.fit_settings import FitSettings
from tracecal.io.files import write_json
from tracecal.statistics.splits import make_splits

SCHEMA = CalibratorFile.model_json_schema(mode="validation")


def file_of_a_run():
    """As a run of the workflow makes it: all splits, and thresholds of one estimator at most."""
    settings = FitSettings(splits={"count": 2})
    training = make_training_set(answers(), "t", settings)
    groups = training.frame.select("example_id", group_id="example_id")
    _, fits = training.calibrate(make_splits(groups, "t", settings.seed, 2, 0.35))
    metadata = {"revision": "abc", "entropy": "exact"}
    fitted_on = describe_traces(metadata, training.frame["correct"], "m", ["owner/m"], "t")
    estimators = {name: CalibratedEstimator(**dict(fit)) for name, fit in fits.items()}
    return CalibratorFile.of(fitted_on, estimators)


def without_entropies(n):
    return answers(n).with_columns(entropy=pl.lit(None, pl.List(pl.Float32)))


@pytest.mark.parametrize(
    "make",
    [
        fitted_file,
        lambda: fitted_file(calibration={"method": "isotonic"}),
        lambda: fitted_file(calibration={"method": "platt_raw"}),
        lambda: fitted_file(answers(60).with_columns(correct=pl.lit(True))),
        lambda: fitted_file(without_entropies(60)),
        file_of_a_run,
    ],
    ids=["usual", "isotonic", "raw", "one class", "no entropies", "run"],
)
def test_every_calibrator_is_read_as_it_was_written(make, tmp_path):
    file, path = make(), tmp_path / "C.json"
    file.write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    errors = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(content)]
    assert errors == []
    assert verify(path).endswith("it matches its checksum.")
    again = tmp_path / "again.json"
    CalibratorFile.read(path).write(again)
    assert again.read_bytes() == path.read_bytes()


def first_threshold(content):
    return content[DEFAULT]["risk_control"]["thresholds"][0]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda content: content["min_prob"]["final"].update(kind="magic"), "min_prob.final"),
        (lambda content: content["min_prob"]["final"].pop("weights"), "weights"),
        (lambda content: content["min_prob"]["final"].update(weights=[1.0, 2.0]), "1 numbers"),
        (lambda content: content["min_prob"]["final"].update(scales=[0.0]), "above 0"),
        (lambda content: content[DEFAULT]["risk_control"].pop("fit"), "fit"),
        (lambda content: content[DEFAULT]["risk_control"]["features"].pop(), "risk_control"),
        (lambda content: content["min_prob"].update(features=[]), "features"),
        (lambda content: first_threshold(content).pop("error_rate"), "error_rate"),
        (lambda content: first_threshold(content).update(threshold="x"), "threshold"),
        (lambda content: first_threshold(content).update(wrong=999), "wrong must be at most kept"),
        (lambda content: content[DEFAULT]["reference"]["probability"].append(-1), "reference"),
        (lambda content: content[DEFAULT]["held_out"]["fold"].pop(), "of one length"),
        (lambda content: content.update(min_prob=3), "min_prob"),
    ],
)
def test_what_does_not_fit_is_refused_with_one_sentence(change, place, content, tmp_path, caplog):
    changed = json.loads(json.dumps(content))
    change(changed)
    write_json(changed, tmp_path / "C.json")
    assert main(["card", str(tmp_path / "C.json"), "--check"]) == 1
    assert "does not fit the schema of calibration cards" in caplog.text and place in caplog.text
    assert len(caplog.messages) == 1 and "\n" not in caplog.messages[0]


@pytest.mark.parametrize(("key", "value"), [("task", None), ("n", 0), ("base_rate", 2), ("new", 1)])
def test_wrong_data_of_the_answers_are_refused(key, value, content):
    fitted_on = content["fitted_on"] | {key: value}
    with pytest.raises(InputError, match=f"C.json: fitted_on.*{key}"):
        CalibratorFile.parse(content | {"fitted_on": fitted_on}, "C.json")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"n": 500', '"n": 500, "n": 500', "twice|repeated|more than once"),
        ('"base_rate": 0', '"base_rate": NaN, "x": 0', "NaN"),
        ('"n": 500', '"n": -Infinity', "Infinity"),
    ],
)
def test_json_with_a_repeated_key_or_no_number_is_refused(old, new, told, calibrator_file):
    text = calibrator_file.read_text(encoding="utf-8")
    assert old in text
    calibrator_file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        CalibratorFile.read(calibrator_file)


def test_a_file_that_was_edited_is_told_wherever_it_goes(tmp_path, caplog, capsys):
    path = tmp_path / "C.json"
    fitted_file().write(path)
    assert [*tmp_path.iterdir()] == [path], "no file beside it holds the checksum"
    assert main(["card", str(path), "--check"]) == 0
    assert "it matches its checksum" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8")
    relaid = tmp_path / "elsewhere" / "D.json"
    relaid.parent.mkdir()
    relaid.write_text(json.dumps(json.loads(text), sort_keys=True), encoding="utf-8")
    assert main(["card", str(relaid), "--check"]) == 0, "its layout is not its content"
    relaid.write_text(text.replace('"n": 500', '"n": 501'), encoding="utf-8")
    assert main(["card", str(relaid), "--check"]) == 1
    assert "does not match the checksum in it" in caplog.text


def test_what_is_no_calibrator_is_refused(tmp_path, caplog):
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    assert main(["card", str(path), "--check"]) == 1
    assert "it is not a calibrator" in caplog.text


def test_keys_of_a_later_version_are_kept(content, tmp_path):
    later = content | {"min_prob": content["min_prob"] | {"novelty": {"a": 1}}}
    CalibratorFile.parse(later, "C.json").write(tmp_path / "C.json")
    assert json.loads((tmp_path / "C.json").read_text())["min_prob"]["novelty"] == {"a": 1}


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_refused_wherever_it_is_read(content, tmp_path, version):
    other = content | {"fitted_on": content["fitted_on"] | {"card_version": version, "new": 1}}
    write_json(other, tmp_path / "C.json")
    with pytest.raises(InputError, match=rf"C\.json was made by tracecal {version}: calibrate"):
        CalibratorFile.read(tmp_path / "C.json")


def test_a_card_is_made_byte_for_byte_from_the_same_answers_in_any_order(tmp_path):
    frame = answers(90)
    for name, rows in (("one", frame), ("two", frame.sample(fraction=1, shuffle=True, seed=4))):
        fitted_file(rows).write(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def card_of(content):
    return Card.of(CalibratorFile.parse(content, "C.json"))


def test_it_holds_the_first_and_the_last_day_of_its_answers(tmp_path, content, capsys):
    assert "dates" not in content["fitted_on"] and "given: " not in str(card_of(content))
    began = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC).timestamp()
    frame = answers(90).with_columns(created=began + pl.int_range(pl.len()) * 3600.0)
    rows = [row | {"created": int(row["created"])} for row in frame.iter_rows(named=True)]
    write(tmp_path / "a.jsonl", rows)
    made = ["calibrate", "--answers", str(tmp_path / "a.jsonl"), "--task", "t", "--output"]
    assert main([*made, str(tmp_path / "C.json")]) == 0
    file = CalibratorFile.read(tmp_path / "C.json")
    assert file.fitted_on.dates == ("2026-03-01", "2026-03-05")
    capsys.readouterr()
    assert main(["card", str(tmp_path / "C.json")]) == 0
    assert "  answered: from 2026-03-01 to 2026-03-05 (UTC)\n" in capsys.readouterr().out
    assert "dates" not in fitted_file(answers(90)).content()["fitted_on"]
    some = frame.with_columns(created=pl.when(pl.int_range(pl.len()) > 0).then("created"))
    assert fitted_file(some).fitted_on.dates is None


def test_the_curve_is_of_the_answers_that_thresholds_are_tested_on(content):
    training = make_training_set(answers(), "t", FitSettings())
    tested = training.frame.filter(side="test")
    share, wrong = content[DEFAULT]["risk_control"]["risk_coverage"][-1]
    assert share == 1 and wrong == pytest.approx(1 - tested["correct"].mean(), abs=1e-4)
    control = CalibratorFile.parse(content, "C.json").estimators[DEFAULT].risk_control
    score = control.fit.predict(tested.select(training.estimators[DEFAULT]).to_numpy())
    best = score >= np.sort(score)[-round(0.5 * len(score) + 0.4)]
    share, wrong = content[DEFAULT]["risk_control"]["risk_coverage"][4]
    assert share == pytest.approx(best.mean(), abs=1e-4)
    assert wrong == pytest.approx(1 - tested["correct"].to_numpy()[best].mean(), abs=1e-4)


def test_it_says_in_plain_words_what_it_is_and_is_not_for(content, calibrator):
    told = str(card_of(content))
    assert told.startswith("Calibration card: m for t\n")
    assert "500 labelled answers to 500 questions" in told
    assert (
        "Errors where the least certain are dropped or checked" in told
        and "keeping 100 %: " in told
    )
    assert "at most 50 % wrong: keeps" in told and "each by itself (90 % confidence)" in told
    for sentence in content["fitted_on"]["not_for"]:
        assert f"  {sentence}\n" in f"{told}\n"
    described = calibrator.fitted_on.model_copy(
        update={"revision": "abc", "reasoning": "within", "entropy": "top-k", "top_k": 20}
    )
    told = " ".join(described.exclusions())
    assert "than m, revision abc." in told and "entropies from the 20 likeliest tokens" in told
    assert "with the reasoning before the answer" in told


def test_the_page_says_the_same_and_runs_nothing(calibrator_file, content, tmp_path):
    path = tmp_path / "card.html"
    assert main(["card", str(calibrator_file), "--output", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page and "http" not in re.sub(r'http-equiv="', "", page)
    for section in card_of(content).sections:
        assert f"<h2>{section.heading}</h2>" in page
        if section.picture is None:
            assert all(f"<li>{escape(line)}</li>" in page for line in section.lines)
    # The curve is drawn in place of its list.
    assert page.count("<polyline") == 1 and "of the kept are wrong" not in page
    assert "500 labelled answers to 500 questions" in page
