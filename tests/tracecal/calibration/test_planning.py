"""`tracecal plan`: what it prints, draws and refuses; and the sentence that a report ends with."""

import json
import re
from xml.etree import ElementTree

import polars as pl
import pytest

from support.made import answers
from tracecal.apps import report
from tracecal.calibration import planning
from tracecal.cli.main import main

QUICK = ["--draws", "4", "--most", "200"]


def test_a_plan_is_a_table_a_picture_and_a_sentence(tmp_path, calibrator_file, capsys):
    path = tmp_path / "plan.svg"
    told = ["--calibrator", str(calibrator_file), "--error-rate", "0.3", "--picture", str(path)]
    assert main(["plan", *told, *QUICK]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(r"^ +(\d+) +\d+%", printed, re.MULTILINE)
    assert rows == ["50", "100", "200"]
    assert "labelled questions" in printed.splitlines()[-1]
    drawing = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    circles = [one for one in drawing.iter() if one.tag.endswith("circle")]
    assert len(circles) == 3


def test_guesses_do_without_a_calibrator(capsys):
    told = ["--accuracy", "0.9", "--auroc", "0.9", "--error-rate", "0.2"]
    assert main(["plan", *told, *QUICK]) == 0
    assert "About" in capsys.readouterr().out


def test_the_population_is_the_labelled_answers(content):
    part = planning.at_hand(content, "C.json").part
    frame = answers()
    assert part.correct.tolist() == frame["correct"].to_list()
    assert part.groups == frame.height
    assert part.probability[part.correct].mean() > part.probability[~part.correct].mean()


@pytest.mark.parametrize(
    "told, reason",
    [
        (["--accuracy", "0.9"], "give either --calibrator, or"),
        (["--calibrator", "C.json", "--auroc", "0.9"], "give either --calibrator, or"),
        (["--accuracy", "0.9", "--auroc", "0.8", "--error-rate", "1.5"], "--error-rate 1.5"),
        (["--accuracy", "0.9", "--auroc", "0.8", "--most", "10"], "--most must be 50"),
    ],
)
def test_what_cannot_be_planned_is_refused(told, reason, caplog):
    assert main(["plan", "--error-rate", "0.2", *told]) == 1
    assert reason in caplog.text


def test_a_runs_calibrator_has_no_answers_to_draw_from(content, calibrator_file, caplog):
    without = json.loads(json.dumps(content))
    del without["trace_plus"]["held_out"]
    calibrator_file.with_name("R.json").write_text(json.dumps(without))
    told = ["--calibrator", str(calibrator_file.with_name("R.json")), "--error-rate", "0.2"]
    assert main(["plan", *told]) == 1
    assert "give --accuracy and --auroc" in caplog.text


def test_a_report_ends_with_what_is_needed_where_something_is_not_promised(content):
    control = content["trace_plus"]["risk_control"]
    certified = report.guarantees(control, 300)
    missing = certified["threshold"].is_null()
    assert missing.any() and not missing.all()
    told = planning.outlook(content, certified, 0.35, 1)
    rate = max(certified.filter(missing)["error_rate"])
    assert f"{rate:.0%}" in told
    summary = report.summary(
        content, pl.DataFrame(schema=report.QUALITY), certified, "trace_plus", told
    )
    assert summary.endswith(told)
    assert planning.outlook(content, certified.filter(~missing), 0.35, 1) is None
