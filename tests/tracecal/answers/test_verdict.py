"""Verdicts in the words and numbers of files and people."""

import time
from decimal import Decimal

import pytest

from tracecal.answers.reading import Reading
from tracecal.answers.verdict import agreed_verdict, is_unsure, parse_verdict
from tracecal.errors import WrongRow

PAIRS = "true/false yes/no right/wrong correct/incorrect pass/fail passed/failed C/I 1/0 1.0/0.0"


@pytest.mark.parametrize("pair", PAIRS.split())
def test_words_in_any_case_are_verdicts(pair):
    right, wrong = pair.split("/")
    for change in (str, str.upper, str.title, lambda word: f" {word} "):
        assert (parse_verdict(change(right)), parse_verdict(change(wrong))) == (True, False)


@pytest.mark.parametrize("value, verdict", [(True, True), (0, False), (1.0, True), (0.0, False)])
def test_truth_values_and_numbers_are_verdicts(value, verdict):
    assert parse_verdict(value) is verdict


@pytest.mark.parametrize("value", [None, "", " ", float("nan"), "NaN", "null", "n/a"])
def test_empty_values_are_none(value):
    assert parse_verdict(value) is None and not is_unsure(value)


@pytest.mark.parametrize("value", ["unsure", "Unknown", "?", "skip"])
def test_unsure_counts_as_wrong(value):
    assert parse_verdict(value) is False and is_unsure(value)
    assert agreed_verdict(a=value, b="wrong") is False


@pytest.mark.parametrize("value", ["maybe", [1], {"a": 1}, "inf"])
def test_other_values_are_refused(value):
    with pytest.raises(WrongRow, match="neither right"):
        parse_verdict(value)


def test_numbers_between_need_a_threshold():
    with pytest.raises(WrongRow, match="--right-from 0.5"):
        parse_verdict("0.7")
    scores = [0, 0.4, "0.5", 4]
    assert [parse_verdict(score, Reading(right_from=0.5)) for score in scores] == [
        False,
        False,
        True,
        True,
    ]
    assert parse_verdict("yes", Reading(right_from=0.5)) is True


def test_verdicts_that_contradict_each_other_are_refused():
    with pytest.raises(WrongRow, match=r"a: 'yes' beside b: 0"):
        agreed_verdict(a="yes", b=0, c=None)


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("👍🏽", "👎🏿"),
        ("✅", "❌"),
        ("✔️", "✖️"),
        ("☑️ Correct", "Incorrect ❌"),
        ("✅ Correct", "❌ wrong"),
        ("accept", "reject"),
        ("Supported", "Hallucinated"),
        ("100 %", "0%"),
        ("1.00", "0,00"),
        (Decimal("1.00"), Decimal("0.000")),
        ("1 - correct", "0: incorrect"),
    ],
)
def test_marks_and_words_of_tools_are_verdicts(right, wrong):
    assert (parse_verdict(right), parse_verdict(wrong)) == (True, False)
    assert parse_verdict("🤷🏻‍♀️") is False and is_unsure("🤷🏻‍♀️")


@pytest.mark.parametrize(
    "value", ["✅ ❌", "✅ the capital, ❌ the currency", "✅ wrong", "not right"]
)
def test_marks_beside_other_words_are_refused(value):
    with pytest.raises(WrongRow, match="--right fine,great --wrong poor"):
        parse_verdict(value)


def test_own_words_are_named():
    reading = Reading(right=["fine,Sehr gut"], wrong=["poor", "2"])
    values = ["Fine", "✅ sehr gut", "POOR", 2.0, "yes"]
    verdicts = [parse_verdict(value, reading) for value in values]
    assert verdicts == [True, True, False, False, True]


@pytest.mark.parametrize("value", ["5 - fully correct", "(4) mostly", "5: yes", "4/5", "4 of 5", 5])
def test_scales_have_a_threshold(value):
    assert parse_verdict(value, Reading(right_from=4)) is True
    assert parse_verdict(value, Reading(right_from=5.5)) is False
    with pytest.raises(WrongRow, match="give a threshold"):
        parse_verdict(value)


def test_per_cent_are_shares_unless_the_threshold_is_above_one():
    readings = [Reading(right_from=threshold) for threshold in (0.8, 80, 0.9)]
    assert [parse_verdict("85 %", reading) for reading in readings] == [True, True, False]


@pytest.mark.parametrize("part", ["a", " ", ".", "5", "a5", "a: ", " - ", "(a", "a-", "1e", "✅"])
def test_a_long_text_is_refused_in_time_in_proportion(part):
    """Judges write explanations, and a wrong path may lead to one."""
    start = time.process_time()
    with pytest.raises(WrongRow, match="its verdict"):
        parse_verdict("x" + part * 200_000 + "y")
    assert time.process_time() - start < 3
