"""Checks of a guarantee with new labels: what they say, and how the command ends."""

import json
from xml.etree import ElementTree

import polars as pl
import pytest
from scipy.stats import binomtest

import tracecal
from support.labelled_answers import answers
from tracecal.cli.main import main

RATE = 0.4


@pytest.fixture(scope="module")
def large():
    """A calibrator with a guarantee at RATE that keeps many answers."""
    return calibrated(answers(800))


def calibrated(frame):
    reading, config = tracecal.Reading(vocabulary=100_000), {"splits": {"count": 2}}
    rates = (0.01, RATE)
    return tracecal.calibrate(frame, "t", config=config, error_rates=rates, reading=reading)


@pytest.fixture(scope="module")
def new():
    return answers(300, seed=9)


def with_verdicts(frame, calibrator, wrong_share):
    """The kept answers are wrong in this share of places."""
    keep = calibrator.score(frame, error_rate=RATE)["keep"]
    place = keep.cast(pl.Int64).cum_sum()
    wrong = (place * wrong_share).floor() > ((place - 1) * wrong_share).floor()
    return frame.with_columns(correct=~wrong)


def longer(frame):
    lists = (pl.concat_list(name, name, name).alias(name) for name in ("surprisal", "entropy"))
    return frame.with_columns(*lists)


def test_labels_that_fit(large, new):
    result = tracecal.check(with_verdicts(new, large, 0.3), large, RATE)
    assert (result.verdict, result.unlike, result.exit_code) == ("fits", (), 0)
    assert result.n_labelled == result.n_kept and result.n_wrong == int(0.3 * result.n_kept)
    assert "they rule out 60 % wrong" in str(result) and result.enough is None


def test_labels_that_contradict(large, new):
    result = tracecal.check(with_verdicts(new, large, 0.6), large, RATE)
    assert (result.verdict, result.exit_code) == ("contradicted", 3)
    assert "more than 40 % of the kept are wrong (97.5 % confidence)" in str(result)


def test_too_few_labels_and_how_many_would_do(large, new):
    rows = with_verdicts(new, large, 0.4)
    few = rows.with_columns(correct=pl.when(pl.int_range(pl.len()) < 20).then("correct"))
    result = tracecal.check(few, large, RATE)
    assert (result.verdict, result.exit_code) == ("too few", 4)
    assert result.n_labelled < result.enough < 200
    assert f"about {result.enough} labelled kept answers may be enough" in str(result)
    assert tracecal.check(rows, large, RATE).verdict != "too few"


def test_answers_unlike_the_calibrations(large, new):
    rows = longer(with_verdicts(new, large, 0.2))
    result = tracecal.check(rows, large, RATE)
    assert result.exit_code == 3 and "length" in result.unlike
    assert "ALARM: unlike the calibration's answers in" in str(result)


def test_unsure_counts_as_wrong(large, new):
    rows = with_verdicts(new, large, 0.0).with_columns(
        unsure=pl.int_range(pl.len()) % 2 == 0, correct=pl.int_range(pl.len()) % 2 == 1
    )
    result = tracecal.check(rows, large, RATE)
    assert result.n_unsure == result.n_wrong > 20
    assert f"{result.n_unsure} unsure among them" in str(result)


def in_fives(frame):
    """Questions of five answers, which are alike and right or wrong together."""
    first = pl.int_range(pl.len()) // 5 * 5
    alike = frame.select(pl.all().gather(first))
    return alike.with_columns(frame["example_id"], group_id=pl.format("q{}", first))


def test_one_kept_answer_of_each_question_counts(new):
    large = calibrated(in_fives(answers(2000)))
    rows = in_fives(with_verdicts(new, large, 0.3).head(100))
    result = tracecal.check(rows.with_columns(correct=False).head(10), large, RATE)
    assert result.n_wrong == result.n_kept == 5 * result.n_counted > 0
    assert result.verdict == "too few"  # the answers by themselves would contradict
    assert binomtest(result.n_wrong, result.n_kept, RATE, "greater").pvalue < 0.025
    assert f"One of each question counts: {result.n_counted}." in str(result)
    assert tracecal.check(rows.with_columns(correct=False), large, RATE).exit_code == 3


def test_each_kept_answer_counts_where_the_guarantee_is_about_answers(new):
    large = tracecal.calibrate(in_fives(answers(2000)), "t", unit="answers", error_rates=[RATE])
    rows = in_fives(with_verdicts(new, large, 0.3).head(100))
    result = tracecal.check(rows.with_columns(correct=False).head(10), large, RATE)
    assert result.n_counted == result.n_labelled == result.n_kept > 0
    assert result.verdict == "contradicted"


def test_the_same_answer_is_kept_in_a_file_in_half_of_it_in_a_stream_and_by_a_check(new):
    """Some rows lack entropies."""
    large = calibrated(answers(2000))
    rows = new.head(60).with_columns(
        entropy=pl.when(pl.int_range(pl.len()) % 3 > 0).then("entropy")
    )
    keep = large.score(rows, error_rate=RATE)["keep"]
    halves = [large.score(half, error_rate=RATE)["keep"] for half in (rows[:30], rows[30:])]
    assert pl.concat(halves).to_list() == keep.to_list()
    stream = [
        large.score_trace(surprisal, entropy, error_rate=RATE).keep
        for surprisal, entropy in rows.select("surprisal", "entropy").iter_rows()
    ]
    assert stream == keep.to_list()
    judged = rows.with_columns(correct=True)
    assert tracecal.check(judged, large, RATE).n_kept == keep.sum() > 0


def test_known_answers_are_not_tested(large):
    result = tracecal.check(answers(800), large, RATE)
    assert result.n_undecided > 700 and result.n_kept <= 800 - result.n_undecided
    assert f"{result.n_undecided} have no decision" in str(result)


def test_the_order_of_answers_says_nothing(large, new):
    rows = with_verdicts(new, large, 0.3)
    by_length = rows.sort(pl.col("surprisal").list.len())
    assert tracecal.check(by_length, large, RATE).unlike == ()


def test_files_of_the_result(large, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = tracecal.check(longer(with_verdicts(new, large, 0.7)), large, RATE)
    result.save("check.xml")
    (suite,) = ElementTree.parse("check.xml").getroot()
    assert suite.attrib == {
        "name": "tracecal check",
        "tests": "2",
        "failures": "2",
        "errors": "0",
    }
    failures = {case.get("name"): case[0].get("message") for case in suite.iter("testcase")}
    assert list(failures.values()) == str(result).splitlines()[1:]
    result.save("check.json")
    written = json.loads((tmp_path / "check.json").read_text(encoding="utf-8"))
    assert written["exit_code"] == 3 and written["n_wrong"] == result.n_wrong
    with pytest.raises(tracecal.InputError, match="ends in .xml or .json"):
        result.save("check.txt")


def test_errors_say_what_to_do(large, new):
    rows = with_verdicts(new, large, 0.3)
    for options, message in (
        ({"error_rate": 0.3}, "was not tested for an error rate of 0.3"),
        ({"error_rate": 0.01}, "there is no guarantee to check at 0.01: "),
        ({"error_rate": RATE, "confidence": 1.0}, "confidence=1: expected a number"),
    ):
        with pytest.raises(tracecal.InputError, match=message):
            tracecal.check(rows, large, **options)
    with pytest.raises(tracecal.InputError, match="no answer has a label: name a file"):
        tracecal.check(rows.with_columns(correct=None), large, RATE)


@pytest.mark.parametrize(("wrong_share", "expected"), [(0.3, 0), (0.7, 3)])
def test_the_command_ends_with_the_status(large, new, tmp_path, capsys, wrong_share, expected):
    large.save(tmp_path / "C.json")
    with_verdicts(new, large, wrong_share).write_ndjson(tmp_path / "new.jsonl")
    given = [f"--answers={tmp_path / 'new.jsonl'}", f"--calibrator={tmp_path / 'C.json'}"]
    command = ["check", *given, "--error-rate", str(RATE)]
    if expected:
        with pytest.raises(SystemExit) as status:
            main(command)
        assert status.value.code == expected
    else:
        assert main(command) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main([*command[:-1], "0.33"]) == 1
