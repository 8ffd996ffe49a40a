"""The command `tracecal`: what it prints, its help, and the files it writes."""

import csv
import itertools
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import BaseModel
from sklearn.metrics import roc_auc_score
from typer.core import TyperOption

from support.labelled_answers import answers, fitted_file, unsealed
from support.log_rows import write
from support.running import REPOSITORY
from trace_workflow.tables.csv_file import render_csv
from trace_workflow.tables.table import Column, Table
from tracecal.answers.reading import Reading
from tracecal.calibrator import recommendation
from tracecal.calibrator.catalogue import LABELS
from tracecal.calibrator.catalogue import MEAN_OF_THREE as DEFAULT
from tracecal.calibrator.guarantee_text import guarantee_line
from tracecal.calibrator.next_commands import next_commands
from tracecal.calibrator.predictor import load_predictor
from tracecal.calibrator.recommendation import measure_quality
from tracecal.calibrator.schema import CalibrationData, ErrorRateControl
from tracecal.calibrator.training_set import make_training_set
from tracecal.cli import command as command_module
from tracecal.cli.main import COMMANDS, main
from tracecal.cli.score import expected_error_rate, explain_keeping, scores_file
from tracecal.fits.fit_settings import FitSettings
from tracecal.io.log import Printable


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    answers(120).write_ndjson("labelled.jsonl")
    new = answers(6, seed=1).with_columns(
        example_id=pl.Series(["z", "=1+1", "b", "-2", "@c", "a"]), correct=None
    )
    new.write_ndjson("new.jsonl")
    return tmp_path


CALIBRATE = ["calibrate", "--answers", "labelled.jsonl", "--task", "t", "--output", "C.json"]
SCORE = ["score", "--answers", "new.jsonl", "--calibrator", "C.json"]


def test_calibrating_says_what_the_calibrator_is_worth(files, capsys, caplog):
    assert main([*CALIBRATE, "--report", "report.html"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0] == '120 answers by m to "t"; all labelled, 46 % wrong.'
    assert len(lines) <= 12 and max(map(len, lines)) <= 80
    assert "at most 20 % wrong is not guaranteed" in " ".join(lines)
    assert "Probabilities: default fit, Brier score 0." in printed
    assert "open report.html in a browser" in caplog.text
    assert lines[-1].startswith("More: --all ")
    page = (files / "report.html").read_text(encoding="utf-8")
    for text in (
        "120 labelled answers",
        "seq_logp",
        "Guaranteed error rates",
        f"Probabilities are those of {LABELS[DEFAULT]}",
    ):
        assert text in page
    assert main([*CALIBRATE, "--all"]) == 0
    table = capsys.readouterr().out.splitlines()[len(lines) :]
    assert max(map(len, table)) <= 80 and len(table) > 30
    assert sum(line.startswith("* ") for line in table) == 2, "an estimator and the legend"
    groups = [line for line in table if line in ("Scores", "Fits", "Ablations")]
    assert groups == ["Scores", "Fits", "Ablations"]


def test_error_rates_that_are_asked_for_are_tested_and_the_first_decides(files, capsys, caplog):
    assert main([*CALIBRATE, "--error-rate", "0.35", "0.12", "--error-rate", "0.6"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    held = json.loads((files / "C.json").read_text(encoding="utf-8"))
    thresholds = held[DEFAULT]["risk_control"]["thresholds"]
    assert [entry["error_rate"] for entry in thresholds] == [0.12, 0.35, 0.6]
    assert "35 % wrong is not" in printed or "at most 35 % of those kept" in printed
    assert "at 12 %: " in printed and "at 60 %: keep " in printed


@pytest.mark.parametrize("rate", ["1.2", "0", "-0.1", "nan", "inf", "9e-7", "1e-320"])
def test_an_error_rate_out_of_range_is_refused(files, caplog, rate):
    label = ["label", "labelled.jsonl", "--output", "verdicts.jsonl"]
    for command in (CALIBRATE, label):
        caplog.clear()
        assert main([*command, f"--error-rate={rate}"]) == 1
        expected = f"--error-rate {float(rate):g}: expected a number from 1e-06 to below 1"
        assert expected in caplog.text


def test_quality_is_that_of_fits_without_the_answers_own_group():
    """Labels drawn at random within groups of twins: fits that saw a twin would look good."""
    frame = answers(300).with_columns(
        group_id=(pl.int_range(pl.len()) // 2).cast(pl.String),
        correct=pl.int_range(pl.len()).map_elements(
            lambda place: hash(("x", place // 2)) % 2 == 0, return_dtype=pl.Boolean
        ),
    )
    settings = FitSettings(bootstrap={"resamples": 50})
    known = make_training_set(frame, "t", settings)
    measured = measure_quality(known, known.cross_fitted(), settings)
    row = measured.row(by_predicate=pl.col("estimator") == "trace_plus", named=True)
    reported = known.frame.filter(side="test")["example_id"]
    assert row["n"] == len(reported) < 270, "no answer that an estimator is chosen by"
    assert row["brier_low"] < row["brier"] < row["brier_high"]
    predicted = known.cross_fitted().filter(estimator="trace_plus")
    assert sorted(predicted["example_id"]) == sorted(frame["example_id"])
    joined = predicted.join(known.frame, on="example_id")
    joined = joined.filter(pl.col("example_id").is_in(reported.implode()))
    expected = ((joined["probability"] - joined["correct"]) ** 2).mean()
    assert row["brier"] == pytest.approx(expected)
    gap = joined["probability"].mean() - joined["correct"].mean()
    assert row["gap"] == pytest.approx(gap)
    # A fit of many features is ranked within folds, a score by itself.
    folds = [part for part in joined.partition_by("fold") if part["correct"].n_unique() > 1]
    pairs = [part["correct"].sum() * (~part["correct"]).sum() for part in folds]
    areas = [roc_auc_score(part["correct"], part["probability"]) for part in folds]
    assert row["auroc"] == pytest.approx(np.average(areas, weights=pairs))
    row = measured.row(by_predicate=pl.col("estimator") == "min_prob", named=True)
    assert row["auroc"] == pytest.approx(
        roc_auc_score(joined["correct"], joined["scores.min_prob"])
    )


def test_the_ranking_sees_no_answer_that_thresholds_were_tested_on():
    """Labels of the tested part may change without another choice."""
    frame = answers(300)
    tested = make_training_set(frame, "t", FitSettings()).frame.filter(side="test")["example_id"]
    flipped = pl.when(pl.col("example_id").is_in(tested.implode())).then(~pl.col("correct"))
    changed = frame.with_columns(correct=flipped.otherwise("correct"))
    data, data_of_changed = (fitted_file(labelled).fitted_on for labelled in (frame, changed))
    assert data.ranking == data_of_changed.ranking
    assert data.estimator == data_of_changed.estimator


def test_every_output_recommends_the_estimator_that_score_takes(files, capsys, monkeypatch):
    """The text, the table, the page, the promises, the plan and the file name one."""
    monkeypatch.setattr(recommendation, "choose_default", lambda _: "entropy_variance")
    frame = answers(400).with_columns(correct=pl.col("entropy").list.mean() < 0.5)
    frame.write_ndjson("labelled.jsonl")
    assert main([*CALIBRATE, "--report", "report.html"]) == 0
    printed, page = capsys.readouterr().out, (files / "report.html").read_text(encoding="utf-8")
    held = json.loads((files / "C.json").read_text(encoding="utf-8"))
    name = held["fitted_on"]["estimator"]
    assert name != "entropy_variance" and load_predictor(files / "C.json").estimator == name
    label = LABELS[name]
    assert f"Probabilities: {label}, Brier score" in printed
    assert f"Probabilities are those of {label} (--estimator {name})" in page
    assert f"{label} <small>recommended</small>" in page
    assert [one for one in held if "held_out" in held[one]] == [name]


def test_one_command_leads_from_labels_to_a_decision(files, capsys, browser):
    """A page that loads nothing, the answers by fits that had not seen them, and what to type."""
    assert main([*CALIBRATE, "--report", "my page.html", "--error-rate", "0.4", "0.5"]) == 0
    printed = capsys.readouterr().out
    content = json.loads((files / "C.json").read_text(encoding="utf-8"))
    own = content[DEFAULT]
    browser.open(files / "my page.html")
    assert browser.requests == [(files / "my page.html").as_uri()] and not browser.complaints
    headline = browser.ask("document.querySelector('#decision p').textContent")
    assert headline in " ".join(printed.split())
    kept = [one for one in own["risk_control"]["thresholds"] if one["threshold"] is not None]
    assert headline.startswith("Keep about ") and "at most 40 % of those kept" in headline
    table = browser.ask("[...document.querySelectorAll('caption')].at(0).parentNode.innerText")
    assert all(f"{100 * one['error_rate']:.0f} %" in table for one in kept)
    assert browser.ask("document.querySelector('tr.chosen td').textContent") == "40 %"
    # One for the errors of the kept, one for those of all answers.
    assert browser.ask("document.querySelectorAll('svg .mark.chosen').length") == 2
    assert browser.ask("document.querySelectorAll('svg .limit').length") == 2
    # The line passes through what was observed at each threshold.
    line = browser.ask("document.querySelector('svg .line').getAttribute('points')").split()
    dots = browser.ask(
        "[...document.querySelectorAll('svg .mark:not(.overall)')].map((one) => "
        "`${one.getAttribute('cx')},${one.getAttribute('cy')}`)"
    )
    assert len(dots) == len(kept) and {*dots} <= {*line}
    overall = own["risk_control"]["overall"]
    mended = sum(one["threshold"] is not None for one in overall)
    assert browser.ask("document.querySelectorAll('svg .mark.overall').length") == mended > 0
    assert browser.ask("document.querySelector('a').getAttribute('href')") == "my page.answers.html"
    typed = browser.ask("[...document.querySelectorAll('pre')].map((one) => one.textContent)")
    commands = [shlex.split(one) for one in typed]
    headings = browser.ask("[...document.querySelectorAll('h2')].map((one) => one.textContent)")
    assert headings == [
        "Which answers do I keep?",
        "Can I believe it?",
        "What next?",
    ]
    assert " ".join(commands[0][:-2]) in " ".join(printed.replace("\\\n", " ").split())
    assert [words[1] for words in commands] == ["score", "explore", "watch", "serve"]
    for words in commands[:3]:
        assert main(words[1:]) == 0
    assert {"scored.jsonl", "my page.answers.html", "C.db"} <= {one.name for one in files.iterdir()}


@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_fits_a_window_with_all_columns(files, browser, width):
    assert main([*CALIBRATE, "--report", "report.html"]) == 0
    browser.resize(width, 900)
    browser.open(files / "report.html")
    browser.ask("document.querySelector('details').open = true")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    right = "[...document.querySelectorAll('td, li, text')].map((one) => one.getBoundingClientRect().right)"
    assert browser.ask(f"Math.max(...{right})") <= width


def test_commands_to_type_say_how_the_file_was_read_and_ask_for_labels_where_nothing_is_promised():
    fitted_on = CalibrationData(task="t", n=1, base_rate=1)
    reading = Reading(label="ok", columns={"answer": "a b"}, greedy=True, vocabulary=99, id="")
    files = "in.csv", "C.json"
    commands = next_commands(fitted_on, "x", 0.1, False, *files, reading, task="other")
    typed = dict(map(reversed, commands))
    assert list(typed)[:2] == [
        "tracecal label new.csv --vocabulary 99 --columns 'answer=a b' --calibrator C.json "
        "--task t --error-rate 0.1",
        "tracecal plan --calibrator C.json --error-rate 0.1",
    ]
    explored = next(one for one in typed if "explore" in one)
    assert "--label ok" in explored and explored.endswith("--output in.answers.html")
    assert not any("--error-rate" in one for one in list(typed)[2:])


def test_a_rate_is_guaranteed_where_it_has_a_threshold():
    counts = {"n": 10, "kept": 5, "wrong": 1}
    thresholds = [
        {"error_rate": 0.1, "threshold": None, "coverage": 0.0, "error": None} | counts,
        {"error_rate": 0.3, "threshold": 0.7, "coverage": 0.5, "error": 0.2} | counts,
    ]
    terms = {"confidence": 0.9, "groups": 10}
    terms |= {"ranked_by": "x", "features": ["x"], "fit": {"kind": "constant", "probability": 0.5}}
    control = ErrorRateControl.model_validate({**terms, "thresholds": thresholds})
    assert [guarantee_line(entry) for entry in control.thresholds] == [
        "at most 10 % wrong: cannot be guaranteed",
        "at most 30 % wrong: keeps 50 % of the answers (20 % observed)",
    ]


def test_scores_keep_the_order_of_the_file_and_csv_cells_are_no_formulas(files, capsys):
    assert main(CALIBRATE) == 0
    assert main([*SCORE, "--output", "s.csv"]) == 0
    assert main([*SCORE, "--output", "s.jsonl"]) == 0
    assert pl.read_ndjson("s.jsonl")["example_id"].to_list() == ["z", "=1+1", "b", "-2", "@c", "a"]
    ids = pl.read_csv("s.csv")["example_id"].to_list()
    assert ids == ["z", "'=1+1", "b", "'-2", "'@c", "a"]


def test_a_score_that_decides_about_no_answer_ends_with_4_and_says_why(files, caplog):
    assert main([*CALIBRATE, "--error-rate", "0.01"]) == 0, "a calibrator that guarantees nothing"
    assert main([*SCORE, "--output", "s.jsonl"]) == 0, "no decision was asked for"
    caplog.clear()
    with pytest.raises(SystemExit) as status:
        main([*SCORE, "--error-rate", "0.01", "--output", "decided.jsonl"])
    assert status.value.code == 4
    assert pl.read_ndjson("decided.jsonl")["keep"].null_count() == 6
    said = caplog.messages[-1]
    assert (
        said.startswith("no answer has a decision, kept or not: ") and "needs at least 230" in said
    )
    assert caplog.text.count("needs at least 230") == 1


def test_confidence_is_written_beside_the_rows_of_a_file(files, caplog):
    main(CALIBRATE)
    samples = [{"doc_id": one, "resps": [["x"]], "filter": "none"} for one in ("b", "missing", "z")]
    write(files / "samples.jsonl", samples)
    assert main([*SCORE, "--beside", "samples.jsonl", "--output", "s.jsonl"]) == 0
    assert "1 rows of samples.jsonl are not in new.jsonl" in caplog.text
    assert main([*SCORE, "--output", "plain.jsonl"]) == 0
    plain = {row.pop("example_id"): row for row in pl.read_ndjson("plain.jsonl").to_dicts()}
    lines = (files / "s.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        row | {"confidence": plain.get(row["doc_id"])} for row in samples
    ]


def test_half_a_surrogate_pair_beside_an_answer_stays_as_it_is(files):
    """As of an emoji that a program cut."""
    main(CALIBRATE)
    cut = {"note": "\ud83d", "\ud83d": ["ö"], "question": "Which? \ud83d"}
    rows = [json.loads(line) | cut for line in Path("new.jsonl").read_text().splitlines()]
    write(files / "cut.jsonl", rows)
    write(files / "labels.jsonl", [{"id": row["example_id"], "correct": True} for row in rows])
    commands = [
        ["explore", "cut.jsonl", "--calibrator", "C.json", "--output", "page.html"],
        ["pick", "cut.jsonl", "--number", "6", "--output", "pick.jsonl"],
        ["label", "pick.jsonl", "--labels", "labels.jsonl", "--output", "judged.jsonl"],
        ["label", "pick.jsonl", "--labels", "labels.jsonl", "--output", "judged.jsonl"],
        [*SCORE, "--beside", "cut.jsonl", "--output", "beside.jsonl"],
    ]
    assert [main(command) for command in commands] == [0] * 5
    for name in ("pick", "judged", "beside"):
        lines = Path(f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        written = [json.loads(line) for line in lines]
        assert len(written) == 6 and all(row.items() >= cut.items() for row in written)


def test_without_log_probabilities_nothing_is_written_beside(files, caplog):
    main(CALIBRATE)
    write(files / "samples.jsonl", [{"doc_id": 1, "resps": [["x"]], "filter": "none"}])
    beside = ["--beside", "samples.jsonl", "--output", "s.jsonl"]
    assert main(["score", "--answers", "samples.jsonl", *SCORE[3:], *beside]) == 1
    assert "samples.jsonl: no answer has log-probabilities" in caplog.text
    assert not (files / "s.jsonl").exists()


def test_tables_as_csv_hold_no_formulas():
    frame = pl.DataFrame({"label": ["=HYPERLINK(1)", "+1", "TRACE+"], "value": [-1.5, 2.0, 3.0]})
    text = render_csv(Table(frame, (Column(("label",)),)))
    assert text == "label,value\n'=HYPERLINK(1),-1.5\n'+1,2.0\nTRACE+,3.0\n"


@pytest.mark.parametrize("text", ["=1", "\n=1", " \r\n@a", "＝1", "\u3000＋1", "－1", "＠a", "\ta"])
def test_both_csv_files_hold_a_formula_behind_line_ends_or_in_full_width_signs_as_text(
    text, tmp_path
):
    table = pl.DataFrame({"label": [text, "a=1", ""], "value": [-1.0, 2.0, 3.0]})
    written = render_csv(Table(table, (Column(("label",)),)))
    assert next(csv.reader(StringIO(written.partition("\n")[2], newline="")))[0] == f"'{text}"
    scores = pl.DataFrame({"example_id": [text, "a=1"], "probability": [0.5, 0.5]})
    with scores_file(str(tmp_path / "s.csv")) as write:
        write(scores)
    assert pl.read_csv(tmp_path / "s.csv")["example_id"].to_list() == [f"'{text}", "a=1"]


def test_answers_without_entropies_are_scored_by_the_best_estimator_of_likelihood(files, caplog):
    assert main(CALIBRATE) == 0
    answers(6, seed=1, entropy=None).write_ndjson("new.jsonl")
    assert main([*SCORE, "--output", "s.jsonl"]) == 0
    assert pl.read_ndjson("s.jsonl")["probability"].null_count() == 0
    assert f"{LABELS[DEFAULT]} is not defined; using" in caplog.text


def test_another_vocabulary_changes_nothing_and_is_said(files, caplog, capsys):
    assert main([*CALIBRATE, "--vocabulary", "10000"]) == 0
    assert main([*SCORE, "--vocabulary", "20000"]) == 0
    assert "of 10,000 tokens, as for the labelled answers, and not of 20,000" in caplog.text
    with pytest.raises(SystemExit):
        main(["calibrate", "--help"])
    assert "--vocabulary" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_has_an_emoji(command, capsys):
    # In FILE:ID:VERDICT rich sees one.
    assert max(help_of(capsys, command)) < "\U00010000"


def test_without_arguments_it_shows_its_help(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "tracecal calibrate --answers" in shown
    assert "serve" in shown


def test_it_tells_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("tracecal ")


@pytest.mark.parametrize("command", ["calibrate", "score", "replay", "watch", "serve"])
def test_help_has_a_description_an_example_and_defaults(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    assert f"Example: tracecal {command} " in shown
    assert "default: None" not in shown
    assert COMMANDS[command].help().count(".") >= 2


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_of_help_are_as_full_as_they_can_be(width, capsys, monkeypatch):
    """Rather than broken where a line of the docstring ends."""
    monkeypatch.setenv("COLUMNS", str(width))
    for name, command in COMMANDS.items():
        prose = help_of(capsys, name).partition("[OPTIONS]")[2].partition("╭")[0]
        paragraphs = re.split(r"\n\s*\n", prose.partition("\n")[2].strip())
        assert [" ".join(text.split()) for text in paragraphs] == command.help().split("\n\n")
        for text in paragraphs:
            lines = [line.strip() for line in text.split("\n")]
            for line, following in itertools.pairwise(lines):
                assert len(line) + 1 + len(following.split()[0]) > width - 2, (name, line)


def test_help_fits_on_a_page(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for name in COMMANDS:
        lines = help_of(capsys, name).count("\n")
        assert lines <= {"serve": 68, "reading": 64, "calibrate": 70}.get(name, 44), (name, lines)
    assert help_of(capsys).count("\n") <= 44
    assert "╭─ False alarms ─" in help_of(capsys, "watch")


def test_help_begins_with_what_most_people_need_and_lists_few_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    total = 0
    for name, command in COMMANDS.items():
        options = [p for p in command.build().params if isinstance(p, TyperOption) and not p.hidden]
        total += len(options) - 1  # --help
        panels = [option.rich_help_panel for option in options]
        assert panels[-1] == "More", name
        if len(options) > 3:
            assert panels[0] == "Usually", name
        assert all(o.rich_help_panel == "Usually" for o in options if o.required), name
    assert total <= 125


def test_the_first_argument_may_be_named_like_an_option(files, calibrator_file, caplog):
    for arguments in (
        ["labelled.jsonl"],
        ["--answers", "labelled.jsonl"],
        ["--answers=labelled.jsonl"],
    ):
        assert main(["pick", "--number", "5", *arguments, "--output", "p.jsonl"]) == 0
        assert "p.jsonl holds" in caplog.text
        caplog.clear()
    assert main(["reading", "--answers", "labelled.jsonl"]) == 0
    assert main(["card", "--calibrator", str(calibrator_file), "--check"]) == 0
    for arguments in (["labelled.jsonl", "--answers", "new.jsonl"], ["--answers"], []):
        with pytest.raises(SystemExit) as ended:
            main(["pick", "--number", "5", "--output", "p.jsonl", *arguments])
        assert ended.value.code == 2


def test_the_reading_options_of_a_first_hour_are_shown_and_completed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("calibrate", "reading"):
        page = help_of(capsys, name)
        assert all(
            f"--{option}" in page for option in ("id", "columns", "also", "labels", "wrong-rows")
        )
    code = "from tracecal.cli.main import main; main()"
    words = {"COMP_WORDS": "tracecal calibrate --wro", "COMP_CWORD": "2"}
    assert run_apart(code, _TRACECAL_COMPLETE="complete_bash", **words).split() == ["--wrong-rows"]


def test_options_of_reading_are_described_on_a_page_of_their_own_and_accepted_everywhere(
    files, capsys
):
    page = help_of(capsys, "reading")
    names = Reading.model_fields.keys() - {"greedy", "rounding"}
    options = [f"--{name.replace('_', '-')} " for name in names]
    assert all(option in page for option in options)
    assert "--greedy" not in page and "--rounding" not in page
    assert "Usually" in page and "[default: auto]" in page
    shown = help_of(capsys, "pick")
    assert "'tracecal reading --help'" in " ".join(shown.split())
    assert not any(option in shown for option in options)
    pick = ["pick", "--answers", "labelled.jsonl", "--number", "5", "--output", "p.jsonl"]
    assert main([*pick, "--format", "columns", "--processed", "no"]) == 0
    with pytest.raises(SystemExit) as ended:
        main([*pick, "--format", "no_format"])
    assert ended.value.code == 2 and "'no_format'" in capsys.readouterr().err


def test_alone_it_says_which_command_is_for_which_wish(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {command.wish}:\n      {command.example}\n" in shown
        assert command.example.split()[:2] == ["tracecal", name]


def test_an_unknown_command_or_option_is_told_with_status_2(capsys):
    for arguments in (["scor"], ["score", "--answer", "x"], ["plan"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert "Did you mean 'score'" in capsys.readouterr().err


def run_apart(code, **more):
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")} | more
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout


@pytest.mark.parametrize("words", [["--help"], ["calibrate", "--help"], ["score", "--help"]])
def test_help_loads_none_of_the_slow_libraries(words):
    code = f"import sys; from tracecal.cli.main import main\ntry: main({words})\n"
    loaded = run_apart(f"{code}except SystemExit: print([*sys.modules])").splitlines()[-1]
    slow = ("polars", "numpy", "scipy", "sklearn", "pyarrow", "aiohttp", "torch", "jinja2")
    assert "'typer'" in loaded and not [one for one in slow if f"'{one}'" in loaded]


def test_the_shell_completes_commands_and_options():
    code = "from tracecal.cli.main import main; main()"
    for words, completed in (("tracecal sc", "score"), ("tracecal score --err", "--error-rate")):
        told = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        assert run_apart(code, _TRACECAL_COMPLETE="complete_bash", **told).split() == [completed]


def defaults_of(model, prefix=""):
    """A model's keys, nested ones with a dot, and their defaults as a page writes them."""
    for name, field in model.model_fields.items():
        if isinstance(default := field.get_default(), BaseModel):
            yield from defaults_of(type(default), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", re.sub(r'[\[\]"]', "", json.dumps(default)) or "none"


def test_the_keys_of_the_settings_are_documented():
    page = (REPOSITORY / "docs/guides/calibrate.md").read_text(encoding="utf-8")
    for key, default in defaults_of(FitSettings):
        assert f"| {key} | {default} |" in page.replace("`", ""), key


def test_several_columns_may_stand_behind_one_option(files):
    rows = [json.loads(line) for line in Path("labelled.jsonl").read_text().splitlines()]
    renamed = [
        {"id": row["example_id"], "out": {"s": row["surprisal"], "text": row["answer"]}}
        for row in rows
    ]
    write(files / "renamed.jsonl", renamed)
    told = ["--columns", "surprisal=out.s", "answer=out.text", "--number", "5"]
    assert main(["pick", "--answers", "renamed.jsonl", *told, "--output", "p.jsonl"]) == 0


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("label missing.jsonl", "aiohttp"),
        ("serve --upstream http://localhost:1 --calibrator C.json", "aiohttp"),
        ("replay --answers missing.jsonl --weights . --output o.arrow", "torch"),
    ],
)
def test_a_missing_extra_is_said_before_any_work(files, caplog, monkeypatch, command, module):
    monkeypatch.setattr(command_module, "find_spec", lambda name: None)
    assert main(command.split()) == 1
    assert f"needs {module}, which is not installed: pip install 'tracecal[" in caplog.text


def test_probabilities_in_files_have_four_digits(files):
    main(CALIBRATE)
    for suffix, read in ((".jsonl", pl.read_ndjson), (".csv", pl.read_csv)):
        assert main([*SCORE, "--output", f"s{suffix}"]) == 0
        found = read(f"s{suffix}").select(pl.col(pl.Float64))
        assert found.width == 3 and found.equals(found.select(pl.all().round(4)))
    held = json.loads((files / "C.json").read_text(encoding="utf-8"))
    assert any(weight != round(weight, 6) for weight in held["log_ridge"]["final"]["weights"])


OWN = """import polars as pl
ESTIMATORS = {
    "brevity": {"label": "Brevity", "score": -pl.col("log_length")},
    "calm": {"label": "Calm", "score": -pl.col("entropy").list.mean()},
}
"""


def test_estimators_of_ones_own_are_calibrated_and_scored(files, caplog, capsys):
    (files / "own.py").write_text(OWN)
    assert main(CALIBRATE) == 0
    usual = json.loads((files / "C.json").read_text(encoding="utf-8"))
    assert main([*CALIBRATE, "--estimators", "own.py", "--all"]) == 0
    assert "\n~ brevity " in capsys.readouterr().out
    held = json.loads((files / "C.json").read_text(encoding="utf-8"))
    held, usual = unsealed(held), unsealed(usual)
    assert held["fitted_on"] == usual["fitted_on"], "none of them is recommended"
    assert {name: held[name] for name in usual} == usual
    known = make_training_set(
        answers(120), "t", FitSettings(), custom={"calm": -pl.col("entropy").list.mean()}
    )
    # The same values as the workflow's family of custom estimators computes.
    mean = answers(120).sort("example_id")["entropy"].list.mean()
    assert known.frame.sort("example_id")["scores.calm"].to_list() == pytest.approx(
        (-mean).to_list()
    )
    assert held["calm"]["splits"].keys() == held["mean_token_entropy"]["splits"].keys()
    told = ["--estimator", "calm", "--output", "s.jsonl"]
    assert main([*SCORE, *told]) == 1
    assert "name it with --estimators" in caplog.text
    assert main([*SCORE, *told, "--estimators", "own.py"]) == 0
    assert main([*SCORE, "--estimator", "mean_token_entropy", "--output", "m.jsonl"]) == 0
    same = [pl.read_ndjson(name)["probability"].to_list() for name in ("s.jsonl", "m.jsonl")]
    assert same[0] == pytest.approx(same[1], abs=2e-4)
    (files / "own.py").write_text(OWN.replace("list.mean()", "list.max()"))
    assert main([*SCORE, *told, "--estimators", "own.py"]) == 1
    assert "another expression than the calibrator was fitted on" in caplog.text
    (files / "own.py").write_text(OWN.replace("log_length", "language"))
    assert main([*CALIBRATE, "--estimators", "own.py"]) == 1
    assert "columns are example_id, answer, finish_reason, tokens" in caplog.text


def test_columns_are_given_as_name_and_path(files, caplog):
    told = ["--columns", "answer=output.text", "surprisal"]
    assert main([*CALIBRATE, *told]) == 1
    assert "--columns surprisal: expected COLUMN=PATH" in caplog.text


HOSTILE = "</td><img src=x onerror=alert(1)>\x1b[31m\u202e\x9b2J"


def test_names_from_elsewhere_neither_run_in_the_report_nor_reach_the_terminal(files, capsys):
    answers(120, model=HOSTILE).write_ndjson("labelled.jsonl")
    assert main([*CALIBRATE, "--report", "report.html"]) == 0
    printed = "".join(capsys.readouterr())
    assert "\\x1b[31m\\u202e\\x9b2J" in printed
    assert not {"\x1b", "\u202e", "\x9b"} & {*printed}
    assert "<img" not in (files / "report.html").read_text(encoding="utf-8")


def test_errors_do_not_reach_the_terminal_with_what_controls_it():
    started = [sys.executable, "-m", "tracecal.cli.main", "explore", "--output", "x.html"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    ended = subprocess.run(
        [*started, "--answers", "\x1b[31m"], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "tracecal: error: \\x1b[31m cannot be read" in ended.stderr


@pytest.mark.parametrize("task", ["", " \t"])
def test_an_empty_task_is_refused(files, caplog, task):
    assert main([*CALIBRATE[:3], "--task", task, "--output", "C.json"]) == 1
    assert "--task is empty: name the task of the answers" in caplog.text
    assert not (files / "C.json").exists()


def test_a_name_as_long_as_a_file_is_shortened_in_messages():
    message = f"some answers are by {'m' * 10**6!r}, others by 'n'"
    record = logging.LogRecord("tracecal", logging.ERROR, "x", 1, message, None, None)
    shown = Printable("tracecal: %(message)s").format(record)
    assert shown.startswith("tracecal: some answers are by 'mm") and shown.endswith("by 'n'")
    assert " characters left out] " in shown and len(shown) < 4_100


def test_a_name_that_no_calibrator_may_hold_is_refused_before_one_is_written(files, caplog):
    answers(120, model="<script>").write_ndjson("labelled.jsonl")
    assert main(CALIBRATE) == 1
    assert "'<script' would run" in caplog.text
    assert not (files / "C.json").exists()


def test_the_errors_that_probabilities_expect_among_kept_answers_are_summed(calibrator):
    keep = [True, True, None, False]
    scores = pl.DataFrame({"keep": keep, "probability": [0.9, 0.5, 0.3, 0.6]})
    assert expected_error_rate(scores) == pytest.approx(0.3)
    assert expected_error_rate(scores.filter(pl.col("keep").is_null())) is None
    assert expected_error_rate(scores.drop("keep")) is None


def test_answers_that_are_kept_in_another_order_or_below_one_half_are_explained(calibrator):
    proba, keep = [0.9, 0.47, 0.3, 0.6], [True, True, None, False]
    scores = pl.DataFrame({"example_id": list("abcd"), "keep": keep, "probability": proba})
    order, unlikely = explain_keeping(scores, calibrator)
    assert "Answers to keep are ranked by TRACE+, fitted on labels that test nothing" in order
    assert order.endswith(", so that 1 of the 2 most probable answers are not kept")
    assert unlikely.startswith(
        "1 of 2 kept answers have a probability below 50 %, the lowest 0.47: the guarantee is about"
    )
    assert len(explain_keeping(scores.filter(pl.col("probability") != 0.47), calibrator)) == 1
    assert explain_keeping(scores.drop("keep"), calibrator) == []


def ended(arguments, shell, **more):
    """The status and the errors of a command whose output goes where a shell sends it."""
    line = f"{sys.executable} -m tracecal.cli.main {arguments} {shell}"
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")} | more
    environment.pop("PYTHONUNBUFFERED", None)
    done = subprocess.run(
        ["bash", "-c", line], env=environment, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stderr


READING = f"reading {shlex.quote(str(REPOSITORY / 'examples/new.jsonl'))}"


@pytest.mark.parametrize("arguments", [READING, "--help", "score --help", "--version", ""])
def test_an_output_that_cannot_be_written_is_an_error(arguments):
    for shell, why in ((">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")):
        assert ended(arguments, shell) == (1, f"tracecal: error: the output: {why}.\n")
    assert ended(arguments, "| true; exit ${PIPESTATUS[0]}") == (141, "")


def test_what_writes_a_file_needs_no_output(files):
    main(CALIBRATE)
    score = " ".join([*SCORE, "--output", "s.jsonl"])
    assert ended(score, "<&- >&- 2>&-") == (0, "")
    assert pl.read_ndjson("s.jsonl").height == 6
    assert ended(" ".join(SCORE), ">&-")[0] == 1


def test_a_report_is_written_though_the_reader_of_the_summary_is_gone(files):
    gone = "| true; exit ${PIPESTATUS[0]}"
    calibrate = " ".join([*CALIBRATE, "--report", "report.html"])
    assert ended(calibrate, gone)[0] == 141
    assert (files / "report.html").exists() and (files / "report.answers.html").exists()


def test_names_that_a_terminals_encoding_lacks_are_written_out_and_rows_are_utf_8(files):
    answers(120, model="ü✓").with_columns(example_id="é" + pl.col("example_id")).write_ndjson(
        "labelled.jsonl"
    )
    terminal = {"PYTHONIOENCODING": "ascii"}
    assert ended(" ".join(CALIBRATE), "> out", **terminal)[0] == 0
    assert r"answers by \xfc\u2713 to" in (files / "out").read_text(encoding="ascii")
    score = ["score", "--answers", "labelled.jsonl", *SCORE[3:]]
    assert ended(" ".join(score), "> rows.jsonl", **terminal)[0] == 0
    assert pl.read_ndjson("rows.jsonl")["example_id"].str.starts_with("é").all()


def test_in_a_folder_that_was_deleted_a_relative_path_is_a_sentence(files):
    line = f"cd {files} && mkdir gone && cd gone && rmdir ../gone"
    code = (
        f"{line}; {sys.executable} -m tracecal.cli.main calibrate --answers x --task t --output y"
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    done = subprocess.run(["bash", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "error: x cannot be read in a folder that was deleted: No such file" in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["explore", *SCORE[1:3], "--number", "0", "--output", "e.html"], "--number 0: expected 1"),
        (["explore", *SCORE[1:3], "--number", "-3", "--output", "e.html"], "--number -3: expected"),
    ],
)
def test_a_number_that_is_out_of_range_is_refused(files, caplog, command, said):
    assert main(command) == 1
    assert said in caplog.text
