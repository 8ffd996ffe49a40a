"""Answers that come as sentences: what is said, what is denied, what is guessed, what is echoed."""

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.correctness.containment import contains
from trace_workflow.correctness.verdict import Example

ITALY = Example("e", "What is the capital of Italy?", ["Rome", "Roma"], ["Milan"])
JUDGED = Path(__file__).parent / "judged_answers.json"


@pytest.mark.parametrize(
    "answer",
    [
        "Rome",
        "The capital of Italy is Rome.",
        "The capital is **Rome**, and it is old.",
        "Rome, Italy.",
        "Rome, Lazio, Italy",
        "No, Rome.",
        "Not Milan but Rome",
        "Rome, not Milan",
        "Rome, which is not the largest city",
        "Capital: Rome",
        "It is Rome and lies in Lazio",
    ],
)
def test_an_answer_that_says_a_reference_is_right(answer):
    assert contains(answer, ITALY).correct


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Romeo",
        "It is Milan.",
        "It is not Rome",
        "Rome is not the capital",
        "Rome isn't the capital",
        "Milan, not Rome",
        "Milan. Rome",
        "Rome or Turin",
        "Either Rome or Naples",
        "Rome and Turin",
        "Rome, Turin, Naples",
        "Rome, Naples, and Turin",
        "Turin, Naples and Rome",
        "I think it is Rome, Naples or Bari",
    ],
)
def test_denials_guesses_and_other_things_are_wrong(answer):
    assert not contains(answer, ITALY).correct


def test_what_the_question_holds_is_no_answer():
    albany = Example("e", "What is the capital of New York?", ["Albany", "New York"], ["New York"])
    assert not contains("The capital of New York is New York.", albany).correct
    assert contains("The capital of New York is Albany.", albany).correct


def test_the_longer_of_overlapping_finds_counts():
    city = Example("e", "Capital?", ["Guinea-Bissau"], ["Guinea"])
    assert contains("It is Guinea-Bissau.", city).correct
    assert not contains("It is Guinea.", city).correct


@pytest.mark.parametrize(
    ("answer", "language", "reference", "right"),
    [
        ("Peru hat 32 Millionen Einwohner.", "de", "32 Millionen", True),
        ("Peru hat 132 Millionen Einwohner.", "de", "32 Millionen", False),
        ("Es ist nicht Brasilien.", "de", "Brasilien", False),
        ("No es Brasil, es Chile.", "es", "Brasil", False),
        ("El prefijo es +51.", "es", "+51", True),
        ("答案是巴西。", "zh", "巴西", True),
    ],
)
def test_other_languages(answer, language, reference, right):
    assert contains(answer, Example("e", "?", [reference], language=language)).correct is right


@given(st.text(max_size=60), st.sampled_from(["en", "de", "zh"]))
def test_any_text_is_judged_and_a_bare_reference_is_right(text, language):
    example = Example("e", "Which?", ["Lima"], language=language)
    verdict = contains(text, example)
    assert verdict.prediction == text
    assert not verdict.correct or "lima" in text.casefold()
    assert contains("Lima", example).correct


def test_the_rule_agrees_with_a_person_on_real_answers():
    """200 answers of SmolLM2-135M-Instruct, judged by hand without the rule's verdict."""
    judged = json.loads(JUDGED.read_text(encoding="utf-8"))
    assert len(judged) == 200 == len({(row["question"], row["answer"]) for row in judged})
    wrong = [
        row
        for row in judged
        if contains(
            row["answer"],
            Example("e", row["question"], row["references"], row["distractors"], row["language"]),
        ).correct
        != row["right"]
    ]
    assert len(wrong) <= 0.02 * len(judged), wrong
    assert 50 < sum(row["right"] for row in judged) < 150


@pytest.mark.parametrize("answer", ["Rome " * 8000, "Rome Milan " * 8000], ids=["one", "two"])
def test_a_long_answer_takes_time_in_proportion(answer):
    begun = process_time()
    contains(answer, ITALY)
    assert process_time() - begun < 3
