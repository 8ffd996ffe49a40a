"""Looks at growing labels: what the file remembers, and the confidence that falls honestly."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtr

import tracecal
from support.labelled_answers import answers
from tracecal.cli.main import main
from tracecal.errors import InputError
from tracecal.guarantees.error_rate import find_thresholds
from tracecal.guarantees.line import error_line, free_of_errors

FRAME = answers(220)


def look(n, **options):
    return tracecal.calibrate(FRAME.head(n), "t", **options)


def control_of(calibrator):
    return calibrator.file.estimators[calibrator.recommended].risk_control


def confidences(calibrators):
    return [control_of(calibrator).stated_confidence for calibrator in calibrators]


def in_turn(sizes, **options):
    made = []
    for n in sizes:
        options = options if not made else {"after": made[-1]}
        made.append(look(n, **options))
    return made


def test_planned_looks_share_the_chance_and_a_further_one_adds_its_share():
    made = in_turn([60, 90, 120, 150], looks=3)
    assert confidences(made) == pytest.approx([0.9667, 0.9333, 0.9, 0.8667], abs=1e-4)
    assert [control_of(each).confidence for each in made] == pytest.approx(4 * [1 - 0.1 / 3])
    assert [each.labels for each in made[-1].fitted_on.looks] == [60, 90, 120, 150]
    text = " ".join(str(made[-1].report()).split())
    assert "Look 4 of 3 planned: 96.7 % for this look alone; at least 86.7 % that no" in text
    assert "(86.7 % confidence)" in text and "at least 86.7 %" in str(made[-1].card())


def test_without_a_plan_each_look_costs_as_much_as_the_first():
    made = in_turn([60, 90, 120])
    assert confidences(made) == pytest.approx([0.9, 0.8, 0.7])
    assert {control_of(each).confidence for each in made} == {0.9}
    assert "Look" not in str(made[0].report())
    assert control_of(made[0]).overall == control_of(look(60)).overall


def test_the_same_labels_are_the_same_look_and_changed_verdicts_are_not():
    first = look(60, looks=2)
    again = tracecal.calibrate(FRAME.head(60).reverse(), "t", after=first)
    assert again.fitted_on.looks == first.fitted_on.looks
    assert again.file.text() == first.file.text()
    changed = FRAME.head(60).with_columns(correct=pl.col("correct") ^ (pl.int_range(60) == 3))
    second = tracecal.calibrate(changed, "t", after=first)
    assert len(second.fitted_on.looks) == 2
    assert confidences([tracecal.calibrate(FRAME.head(60), "t", after=second)]) == [0.9]


def test_labels_that_share_no_answer_are_no_look(caplog):
    first = look(60, looks=2)
    other = tracecal.calibrate(FRAME.tail(60), "t", after=first)
    assert len(other.fitted_on.looks) == 1 and other.fitted_on.planned_looks is None
    assert "so this is a first look" in caplog.text


def test_the_number_of_looks_is_stated_with_the_first(caplog):
    second = look(90, looks=5, after=look(60, looks=2))
    assert second.fitted_on.planned_looks == 2 and "it changes nothing" in caplog.text
    with pytest.raises(InputError, match="looks=0"):
        look(60, looks=0)


def test_an_output_that_shares_labels_is_named_and_the_same_command_gives_the_same_bytes(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    FRAME.head(60).write_ndjson("few.jsonl")
    FRAME.head(90).write_ndjson("more.jsonl")
    caplog.set_level("INFO")

    def run(answers, *more, output="C.json"):
        return main(["calibrate", "--answers", answers, "--task", "t", "--output", output, *more])

    assert run("few.jsonl") == 0
    first = (tmp_path / "C.json").read_bytes()
    assert run("few.jsonl") == 0
    assert (tmp_path / "C.json").read_bytes() == first and "--after" not in caplog.text
    assert run("more.jsonl") == 0 and "C.json held a look at 60 labels" in caplog.text
    caplog.clear()
    assert run("few.jsonl", output="earlier.json") == 0
    assert (tmp_path / "earlier.json").read_bytes() == first
    assert run("more.jsonl", "--after", "earlier.json") == 0
    assert len(tracecal.Calibrator.load("C.json").fitted_on.looks) == 2
    assert "held a look" not in caplog.text


@pytest.mark.parametrize(
    ("looks", "firsts", "end"),
    [
        (1, (15, 24, 33), 11),
        (2, (19, 28, 37), 10),
        (3, (21, 31, 40), 10),
        (6, (24, 34, 44), 9),
    ],
)
def test_the_line_of_a_look_of_several(looks, firsts, end):
    line = error_line(100, 0.2, 0.1 / looks)
    places = [line.first + int(np.argmax(line.allowed >= wrong)) for wrong in range(3)]
    assert (*places,) == firsts and line.allowed[-1] == end


@pytest.mark.parametrize(
    ("rate", "fewest"), [(0.2, [11, 14, 16, 17, 18, 19]), (0.1, [22, 29, 33, 36, 38, 39])]
)
def test_the_fewest_labels_of_a_look_of_several(rate, fewest):
    needed = [math.ceil(free_of_errors(rate, 0.1 / looks)) for looks in range(1, 7)]
    assert needed == fewest
    for looks, n in enumerate(fewest, 1):
        assert bdtr(0, n, rate) <= 0.1 / looks < bdtr(0, n - 1, rate)
        score, wrong = np.arange(n) / n, np.zeros(n, dtype=bool)
        (test,) = find_thresholds(score, wrong, score[:0], [rate], 0.1 / looks)
        assert test.threshold is not None


def test_where_nothing_is_guaranteed_it_says_what_a_second_look_is_and_asks_for_what_decides():
    wrong_more = FRAME.with_columns(correct=pl.col("correct") & (pl.int_range(220) % 3 > 0))
    report = tracecal.calibrate(wrong_more, "t", error_rates=[0.1]).report()
    entry = report.control.thresholds[0]
    assert entry.threshold is None
    if entry.enough is not None:
        assert entry.enough > 220
        assert entry.reason.endswith("is a second look (--looks 2 from the first)")
        assert "Calibrating on more is a second look" in str(report)
    command = report.with_commands("a.jsonl", "C.json", tracecal.Reading()).commands[0][1]
    assert command.startswith("tracecal label ") and "--error-rate 0.1" in command


@pytest.fixture
def mixed(tmp_path):
    """A file of 60 labels, five of which a search asked for."""
    frame = FRAME.head(60).with_columns(
        labelled=pl.struct("example_id", "correct", asked_for=pl.int_range(60) < 5)
    )
    rows = frame.select("example_id", "surprisal", "entropy", "model", "labelled")
    rows.write_ndjson(tmp_path / "labelled.jsonl")
    rows.drop("labelled").write_ndjson(tmp_path / "answers.jsonl")
    return tmp_path / "labelled.jsonl"


def test_of_mixed_labels_those_that_a_search_asked_for_neither_fit_nor_test(mixed, caplog):
    """The calibrator is that of the random ones, whatever the way in."""
    read = tracecal.read_answers(mixed)
    without = read.with_columns(
        asked_for=None, correct=pl.when(~pl.col("asked_for").fill_null(False)).then("correct")
    )
    expected = control_of(tracecal.calibrate(without, "t"))
    answers_file, imported = mixed.with_name("answers.jsonl"), mixed.with_name("imported.jsonl")
    command = ["label", str(answers_file), "--output", str(imported)]
    assert main([*command, "--labels", str(mixed)]) == 0
    ways = [(mixed, None), (answers_file, tracecal.Reading(labels=str(mixed))), (imported, None)]
    for path, reading in ways:
        caplog.clear()
        calibrator = tracecal.calibrate(path, "t", reading=reading)
        assert calibrator.fitted_on.n == 55 and control_of(calibrator) == expected
        assert "5 of the 60 labels are not used: 'tracecal label --error-rate' asked" in caplog.text
        assert calibrator.report(path, reading=reading).n_answers == 60


def test_labels_that_a_search_asked_for_alone_calibrate_nothing():
    asked = FRAME.head(60).with_columns(asked_for=pl.int_range(60) < 50)
    sentence = "10 of 60 answers have a verdict beside the 50 that 'tracecal label --error-rate'"
    with pytest.raises(InputError, match=sentence):
        tracecal.calibrate(asked, "t")


def test_a_check_counts_no_label_that_a_search_asked_for(caplog):
    calibrator = tracecal.calibrate(FRAME, "t", error_rates=[0.5])
    new = answers(120, seed=9)
    asked = new.with_columns(asked_for=pl.int_range(120) < 70)
    rest = new.with_columns(correct=pl.when(pl.int_range(120) >= 70).then("correct"))
    assert tracecal.check(asked, calibrator, 0.5) == tracecal.check(rest, calibrator, 0.5)
    assert "70 of the 120 labels are not used" in caplog.text


def test_no_number_of_looks_makes_certain():
    text = str(look(150, looks=1000).report())
    assert "Look 1 of 1000 planned: 99.9 % for this look alone." in text
    assert "(99.9 % confidence)" in " ".join(text.split())
