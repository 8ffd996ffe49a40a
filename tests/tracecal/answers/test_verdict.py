"""Verdicts in the words and numbers of files and people."""

import pytest

from tracecal.answers.facts import agreed_verdict, is_unsure, parse_verdict
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
    assert [parse_verdict(score, 0.5) for score in scores] == [False, False, True, True]
    assert parse_verdict("yes", 0.5) is True


def test_verdicts_that_contradict_each_other_are_refused():
    with pytest.raises(WrongRow, match=r"a: 'yes' beside b: 0"):
        agreed_verdict(a="yes", b=0, c=None)
