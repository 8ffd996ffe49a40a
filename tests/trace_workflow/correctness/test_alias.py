"""TriviaQA's normalised alias match."""

import json
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.correctness.normalisation import normalise_trivia
from trace_workflow.correctness.rules import alias
from trace_workflow.correctness.verdict import Example

TWAIN = Example("e", "Who wrote Huckleberry Finn?", ["Mark Twain", "Samuel Clemens", "?!", "The"])


def stated(text: str) -> str:
    """The official rule, restated: words between punctuation and spaces, articles left out."""
    breaks = re.escape(string.punctuation + "‘’´`")
    spaced = re.sub(f"[{breaks}]", " ", text.lower())
    return " ".join(re.sub(r"\b(?:the|an|a)\b", " ", spaced).split())


@given(st.text(alphabet=st.sampled_from("aAnthe _-.'’´`éß1\u2028 \tThe"), max_size=40))
def test_normalisation_is_the_official_one(text):
    assert normalise_trivia(text) == stated(text)


@pytest.mark.parametrize(
    "answer",
    [
        "Mark Twain",
        "mark twain.",
        "  **Mark Twain** ",
        "The Mark_Twain",
        "Samuel Clemens!",
        "It was Mark Twain.",
        "The answer is Mark Twain",
        "Answer: Mark Twain",
        "He was Mark Twain",
        "It's Mark Twain.",
        "\nMark Twain\n\nHe also wrote Tom Sawyer.",
    ],
)
def test_right(answer):
    assert alias(answer, TWAIN).correct


@pytest.mark.parametrize(
    "answer",
    [
        "not Mark Twain",
        "It was not Mark Twain",
        "It wasn't Mark Twain",
        "Twain",
        "Mark Twain or Poe",
        "Edgar Allan Poe, not Mark Twain",
        "Mark Twains",
        "",
        " ",
        "?!",
        "the",
        "It was",
        "answer",
        "Poe\nMark Twain",
        "Mark Twain " * 20000,
    ],
)
def test_wrong(answer):
    assert not alias(answer, TWAIN).correct


def test_a_name_that_normalises_to_nothing_is_right_as_it_stands():
    band = Example("e", "Which band?", ["The The"])
    assert alias("The The", band).correct
    assert not alias("The", band).correct


def test_the_first_line_is_the_prediction():
    assert alias("Mark Twain\n\nmore", TWAIN).prediction == "Mark Twain"


def test_real_triviaqa(shared_data):
    lines = (shared_data / "triviaqa" / "validation_3000_nocontext.jsonl").read_bytes().split(b"\n")
    rows = [json.loads(line) for line in lines if line]
    wrong = 0
    for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
        aliases = [row["answer"]["value"], *row["answer"]["aliases"]]
        example = Example(row["question_id"], row["question"], aliases)
        for name in aliases[:4]:
            if stated(name):
                assert alias(name, example).correct, name
                assert not alias(f"not {name}", example).correct, name
        official = {stated(name) for name in row["answer"]["normalized_aliases"]}
        assert {normalise_trivia(name) for name in row["answer"]["aliases"]} - {""} == official - {
            ""
        }
        coincide = stated(other["answer"]["value"]) in official
        assert alias(other["answer"]["value"], example).correct == coincide
        wrong += not coincide
    assert wrong > 2900
