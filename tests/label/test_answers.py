"""Answers become labels, and wrong ones get their kind."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.errors import InputError
from tracecal.label.answers import LABELS, label_answer, label_answers
from tracecal.label.example import Example
from tracecal.label.kinds import abstains, is_incoherent
from tracecal.label.rules import RULES
from tracecal.tasks.judging import Judging

NAME = Example("e", "Who wrote it?", ["Mark Twain"])
COUNT = Example("e", "How many?", ["8", "8.0"])
CLAIM = Example("e", "What do seeds do?", ["Seeds pass through"], ["Seeds grow"])


def spec_for(rule: str, **rest) -> Judging:
    return Judging.model_validate({"correctness": rule} | rest)


def kind(rule: str, answer: str | None, example: Example) -> str | None:
    return label_answer(answer, example, spec_for(rule))[3]


@pytest.mark.parametrize(
    ("rule", "answer", "example", "expected"),
    [
        ("numeric", "8", COUNT, None),
        ("numeric", "9 apples", COUNT, "number"),
        ("numeric", "nine", COUNT, "number"),
        ("numeric", "I don't know, perhaps 9", COUNT, "number"),
        ("numeric", "many", COUNT, "global"),
        ("numeric", "I don't know", COUNT, "global"),
        ("numeric", "", COUNT, "global"),
        ("numeric", "5 + 3 = 5 + 3 = 5 + 3 = 5 + 3 = 5 + 3 = 5 + 3", COUNT, "global"),
        ("alias", "Poe", NAME, "entity"),
        ("alias", "1884", NAME, "entity"),
        ("alias", "9", COUNT, "number"),
        ("squad", "9", COUNT, "number"),
        ("squad", "nine or ten people", COUNT, "entity"),
        ("contains", "The author is Poe.", NAME, "entity"),
        ("contains", "There are 9 of them.", COUNT, "number"),
        ("contains", "There are some.", COUNT, "entity"),
        ("contains", "I don't know.", NAME, "global"),
        ("alias", "unknown", NAME, "global"),
        ("alias", "The Unknown Soldier", NAME, "entity"),
        ("alias", "...", NAME, "global"),
        ("alias", " ", NAME, "global"),
        ("alias", None, NAME, "global"),
        (
            "squad",
            "someone who "
            + "wrote this and that " * 3
            + "long "
            + "text " * 3
            + " ".join(f"w{n}" for n in range(40)),
            NAME,
            "global",
        ),
        ("truthful", "Seeds grow", CLAIM, "claim"),
        ("truthful", "Yes", CLAIM, "claim"),
        ("truthful", "Seeds Seeds Seeds Seeds Seeds Seeds", CLAIM, "global"),
        ("truthful", "Parliament meets twice every single winter", CLAIM, "global"),
        ("truthful", "I have no comment", CLAIM, "global"),
    ],
)
def test_kinds(rule, answer, example, expected):
    assert kind(rule, answer, example) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I don’t know who that is",
        "I do not know",
        "Sorry, but I cannot answer that",
        "I'm not sure",
        "unknown",
        "Unknown.",
        "N/A",
        "cannot be determined",
        "Not mentioned in the text",
        "There is no information on this",
        "As an AI, I can't say",
        "Ich weiß es nicht.",
        "Das weiß ich nicht",
        "keine Ahnung",
        "unbekannt",
        "nicht bekannt",
        "Ich kann diese Frage nicht beantworten",
        "No lo sé.",
        "No sé",
        "desconocido",
        "No puedo responder",
        "No hay información",
        "我不知道。",
        "不知道",
        "未知",
        "无法回答这个问题",
        "抱歉，我无法确定",
        "Tôi không biết",
        "لا أعرف",
        "मुझे नहीं पता",
    ],
)
def test_abstentions(text):
    assert abstains(text)


@pytest.mark.parametrize(
    "text",
    [
        "The Unknown",
        "No",
        "Nothing",
        "None but the Brave",
        "Notre Dame",
        "Iron",
        "Sorry Not Sorry",
        "Nicht ohne meine Tochter",
        "No Country for Old Men",
        "未来",
        "Clear",
        "I do",
        "Canada",
        "It is impossible to drive there",
    ],
)
def test_answers_that_are_no_abstentions(text):
    assert not abstains(text)


@pytest.mark.parametrize(
    "text",
    [
        "no no no no no",
        "a b a b a b a b",
        "haaaaaaaaaaaaaaaa",
        "好的好的好的好的",
        "well, " + "I see. " * 30,
    ],
)
def test_loops(text):
    assert is_incoherent(text, "zh" if "好" in text else "en")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "New York, New York",
        "1000000000000000",
        "ha ha ha",
        "the cat and the dog and the cow and the hen",
    ],
)
def test_no_loops(text):
    assert not is_incoherent(text)


@given(st.text(max_size=80), st.sampled_from(sorted(RULES)))
def test_every_answer_has_a_label(answer, rule):
    _, prediction, correct, found = label_answer(answer, COUNT, spec_for(rule))
    assert (found is None) == correct
    assert found in (None, "number", "entity", "claim", "global")
    assert isinstance(prediction, str)


def test_a_very_long_answer_is_judged_in_time():
    for rule in RULES:
        label_answer("It is said that 7 of them. " * 4000, COUNT, spec_for(rule))


def test_frame():
    task = pl.DataFrame(
        {
            "example_id": ["a", "b", "c"],
            "role": ["evaluation", "training", "evaluation"],
            "question": ["?"] * 3,
            "references": [["8"], ["9"], ["x"]],
            "distractors": [[], [], []],
            "language": ["en"] * 3,
        },
        schema_overrides={"distractors": pl.List(pl.String)},
    )
    traces = pl.DataFrame({"example_id": ["b", "a"], "answer": ["so 9\nQ", "so 9"]})
    labels = label_answers(
        traces, task, spec_for("numeric", stop=["\n"], answer_pattern=r"so (.*)")
    )
    assert labels.schema == LABELS
    assert labels.rows() == [("a", "9", False, "number"), ("b", "9", True, None)]
    with pytest.raises(InputError, match="'z'"):
        label_answers(
            pl.DataFrame({"example_id": ["z"], "answer": ["9"]}), task, spec_for("numeric")
        )


def test_a_given_verdict_stands():
    traces = pl.DataFrame(
        {"example_id": ["a", "b"], "answer": ["Paris", "Paris"], "correct": [False, None]}
    )
    task = pl.DataFrame(
        {
            "example_id": ["a", "b"],
            "question": "Where?",
            "references": [["Paris"]] * 2,
            "distractors": [[]] * 2,
            "language": "en",
        },
        schema_overrides={"distractors": pl.List(pl.String)},
    )
    labels = label_answers(traces, task, spec_for("alias"))
    assert labels["correct"].to_list() == [False, True]
    assert labels["error_kind"].is_null().to_list() == [False, True]
