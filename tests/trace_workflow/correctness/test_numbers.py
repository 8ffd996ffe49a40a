"""Numeric answers are compared as numbers, and the answer is the number that is meant."""

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.correctness.numbers import answer_number, only_number
from trace_workflow.correctness.rules import numeric
from trace_workflow.correctness.verdict import Example
from tracecal.errors import InputError


def value(text: str) -> Fraction | None:
    number = answer_number(text)
    return None if number is None else number.value


@pytest.mark.parametrize(
    "text",
    [
        "51",
        "51.0",
        "51.",
        "51 apples",
        "$51",
        "51 %",
        "**51**",
        "...51",
        "x=51",
        "102/2",
        "fifty? No, 51",
        "٥١",
        "There were 60 apples. 9 were eaten, so 60 - 9 = 51.",
        "60-9=51",
        "The answer is 51. That is 60 less 9.",
        "The answer is 60 - 9 = 51 apples in 2 bags.",
        "The answer is 51 apples in 2 bags.",
        "Answer: 51\nThis took 3 steps.",
        "I say 7. No: 60 - 9. #### 51",
        "So \\boxed{51} of 60.",
        "The answer is 50? No. The answer is 51, not 50.",
        "Die Antwort ist 51, nicht 9.",
        "答案是51，不是9",
    ],
)
def test_fifty_one(text):
    assert value(text) == 51


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234),
        ("1,234,567.50 dollars", Fraction(2469135, 2)),
        ("1\u202f234", 1234),
        ("-5", -5),
        ("−5", -5),
        ("(-5)", -5),
        ("-$5", -5),
        ("minus 5", -5),
        ("10-3", 3),
        ("10 – 3", 3),
        ("1/2", Fraction(1, 2)),
        ("\\frac{1}{2}", Fraction(1, 2)),
        ("1 1/2", Fraction(3, 2)),
        ("6½", Fraction(13, 2)),
        (".5", Fraction(1, 2)),
        ("1e3", 1000),
        ("twelve", 12),
        ("Twenty apples", 20),
        ("The answer is three.", 3),
        ("3,5", None),
        ("1.234,5", None),
        ("12,34", None),
        ("1/0", None),
        ("no one", None),
        ("none", None),
        ("R2D2", None),
        ("", None),
        (" \n", None),
        ("1e999999999", None),
        ("9" * 5000, None),
        ("12/25/2020", None),
    ],
)
def test_forms(text, number):
    assert value(text) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1e9, max_value=1e9))
def test_any_number_reads_back(number: Decimal):
    for form in (f"{number:f}", f"{number:,f}", f"The answer is {number:,f} apples, not 1."):
        assert value(form) == Fraction(number)


@given(st.text(max_size=200))
def test_any_text_is_read(text):
    answer_number(text)


def test_numbers_are_exact():
    example = Example("e", "?", ["0.1"])
    assert numeric("1/10", example).correct
    assert not numeric("0.1000000000000000055511151231257827", example).correct


def test_the_number_is_the_prediction():
    example = Example("e", "?", ["8.0"])
    assert numeric("5 + 3 = 8 apples", example).prediction == "8"
    assert numeric("no idea", example).prediction == "no idea"
    assert not numeric("", example).correct
    assert not numeric("8 " * 20000 + "9", example).correct


def test_gsm8k_rationale_as_reference():
    assert numeric("72", Example("e", "?", ["48/2 = 24 clips in May. 48+24 = 72\n#### 72"])).correct


def test_a_reference_without_number_is_told():
    with pytest.raises(InputError, match=r"'e'.*'yes'"):
        numeric("5", Example("e", "?", ["yes"]))


@pytest.mark.parametrize(
    ("text", "numeric_"),
    [
        ("308", True),
        ("$3.5 million", True),
        ("1,234", True),
        ("seven", True),
        ("October 7, 1849", False),
        ("Super Bowl 50", False),
        ("one of the two", False),
        ("", False),
    ],
)
def test_texts_that_are_only_a_number(text, numeric_):
    assert (only_number(text) is not None) == numeric_


def test_real_svamp(shared_data):
    lines = (shared_data / "svamp" / "train.jsonl").read_bytes().split(b"\n")
    rows = [json.loads(line) for line in lines if line]
    for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
        example = Example(row["ID"], row["question_concat"], [row["Answer"]])
        gold = int(float(row["Answer"]))
        for form in (
            f"{gold}",
            f"{gold:,} things",
            row["Answer"],
            f"{row['Equation']} = {gold:,}.",
        ):
            assert numeric(form, example).correct, form
        coincide = float(other["Answer"]) == float(row["Answer"])
        assert numeric(other["Answer"], example).correct == coincide
        assert not numeric(f"{gold + 1}", example).correct
        assert not numeric(f"{gold}5", example).correct
