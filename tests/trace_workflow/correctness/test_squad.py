"""MLQA's exact match and F1, with its normalisation per language."""

import json
import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.correctness.normalisation import normalise_mlqa
from trace_workflow.correctness.rules import f1, squad
from trace_workflow.correctness.verdict import Example

LANGUAGES = ("en", "es", "de", "vi", "ar", "hi", "zh")
GERMAN = "ein eine einen einem eines einer der die das den dem des"
ARTICLES = {
    "en": {"a", "an", "the"},
    "es": {"un", "una", "unos", "unas", "el", "la", "los", "las"},
    "de": set(GERMAN.split()),
    "vi": {"của", "là", "cái", "chiếc", "những"},
}


def stated(text: str, language: str) -> list[str]:
    """The official normalisation, restated as a list of words."""
    symbols = "$+<=>^`|~"
    kept = [c for c in text.lower() if unicodedata.category(c)[0] != "P" and c not in symbols]
    text = "".join(kept)
    if language == "ar":
        text = text.replace("ال", " ")
    if language == "zh":
        return re.findall(r"[一-\u9fa5]|[^\s一-\u9fa5]+", text)
    articles = ARTICLES.get(language, set())
    parts = re.split(r"(\W+)", text)
    return "".join(" " if part in articles else part for part in parts).split()


@given(
    st.lists(
        st.sampled_from(
            [
                "the",
                "The",
                "a",
                "der",
                "Die",
                "la",
                "của",
                "ال",
                "العالم",
                "中文",
                "ABC",
                "$5",
                "U.S.",
                "«x»",
                "-",
                "،",
                "。",
                "½",
                "x",
                "\u2028",
                "’s",
                "नमस्ते",
            ]
        )
    ).map(" ".join),
    st.sampled_from(LANGUAGES),
)
def test_normalisation_is_the_official_one(text, language):
    assert normalise_mlqa(text, language).split() == stated(text, language)


@pytest.mark.parametrize(
    ("language", "answer", "reference", "right"),
    [
        ("en", "The Panthers.", "Panthers", True),
        ("en", "the U.S.", "US", True),
        ("en", "der Hund", "Hund", False),
        ("de", "der Hund", "Hund", True),
        ("de-DE", "einem Hund", "Hund", True),
        ("es", "¡Los perros!", "perros", True),
        ("vi", "những con chó", "con chó", True),
        ("hi", "नमस्ते।", "नमस्ते", True),
        ("zh", "《北京 大学》", "北京大学", True),
        ("zh-CN", "北京", "北 京", True),
        ("zh", "NBA 联盟", "NBA联盟", True),
        ("ar", "الكتاب", "كتاب", True),
        ("fr", "le chien", "chien", False),
        ("en", "Carolina Panthers", "Panthers", False),
        ("en", "", "Panthers", False),
        ("en", "the", "a", False),
        ("en", "The The", "The The", True),
        ("en", "x " * 20000, "x", False),
    ],
)
def test_hard_cases(language, answer, reference, right):
    assert squad(answer, Example("e", "?", [reference], (), language)).correct == right


def test_the_official_arabic_rule_does_not_merge_words():
    assert normalise_mlqa("العالم", "ar") == "ع م"
    assert not squad("عم", Example("e", "?", ["العالم"], (), "ar")).correct


def test_f1():
    assert f1("the big red dog", ["a red dog", "cat"], "en") == pytest.approx(0.8)
    assert f1("北京人", ["北京"], "zh") == pytest.approx(0.8)
    assert f1("", ["x"], "en") == f1("y", ["x"], "en") == 0
    assert f1("x x", ["x"], "en") == pytest.approx(2 / 3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_real_xquad(shared_data, language):
    path = shared_data / "xquad" / f"xquad.{language}" / "validation.jsonl"
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    assert len(rows) == 240
    for row, other in pairwise(rows):
        golds, strange = row["answers"]["text"], other["answers"]["text"][0]
        example = Example(row["id"], row["question"], golds, (), language)
        assert all(squad(f" {gold}. ".strip(), example).correct for gold in golds)
        assert all(f1(gold, golds, language) == 1 for gold in golds)
        coincide = any(stated(strange, language) == stated(gold, language) for gold in golds)
        assert squad(strange, example).correct == coincide
        assert not squad(row["context"], example).correct
        assert normalise_mlqa(row["context"], language).split() == stated(row["context"], language)


def test_arabic_verdicts_do_not_hang_on_the_known_bug(shared_data):
    path = shared_data / "xquad" / "xquad.ar" / "validation.jsonl"
    golds = [
        json.loads(line)["answers"]["text"][0] for line in path.read_bytes().split(b"\n") if line
    ]

    def mended(text: str) -> str:
        return " ".join(re.sub(r"\bال", " ", normalise_mlqa(text, "none")).split())

    for gold in golds:
        for other in golds:
            assert (normalise_mlqa(gold, "ar") == normalise_mlqa(other, "ar")) == (
                mended(gold) == mended(other)
            )
