"""The confidence that a reply states: one number in [0, 1], or null."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.models.verbalized import parse_confidence


@pytest.mark.parametrize(
    ("reply", "confidence"),
    [
        ("0.9", 0.9),
        (".9", 0.9),
        ("1", 1.0),
        ("0", 0.0),
        ("1.0", 1.0),
        ("90", 0.9),
        ("90 %", 0.9),
        ("90%", 0.9),
        ("100", 1.0),
        ("1%", 0.01),
        ("0.5 %", 0.005),
        ("2", 0.02),
        ("9/10", 0.9),
        ("9 / 10", 0.9),
        ("8 out of 10", 0.8),
        ("0/10", 0.0),
        ("Confidence: 0.85", 0.85),
        ("I am 80% sure", 0.8),
        ("I am 80 percent sure.", 0.8),
        ("**0.75**", 0.75),
        ("p=0.4", 0.4),
        ("0.9.", 0.9),
        ("~70%", 0.7),
        ("0,9", 0.9),
        ("82,5 %", 0.825),
        ("0.9 (90%)", 0.9),
        ("yes,90%", 0.9),
        ("0.123456", 0.123456),
        ("٩٠٪", 0.9),
        ("٠٫٩", 0.9),
        ("मुझे ९०% यकीन है", 0.9),
        ("我有90％的把握", 0.9),
        ("我有 90 % 的把握", 0.9),
    ],
)
def test_what_is_stated_is_read(reply, confidence):
    assert parse_confidence(reply) == pytest.approx(confidence)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "very sure",
        "½",
        "GPT4 knows",
        "-0.5",
        "−90%",
        "101",
        "150%",
        "1.5",
        "11/10",
        "5/0",
        "0.9 or 0.8",
        "80-90%",
        "0.8-0.9",
        "between 0.0 and 1.0",
        "1,000",
        "1.2.3",
        "0.9,0.8",
        "v0.9",
        "2023",
    ],
)
def test_none_out_of_range_or_several_is_null(reply):
    assert parse_confidence(reply) is None


@given(percent=st.integers(0, 100), text=st.sampled_from(["{}%", "{} %", "Sure: {} percent."]))
def test_every_percentage_is_read(percent, text):
    assert parse_confidence(text.format(percent)) == pytest.approx(percent / 100)


@given(value=st.floats(0, 1).map(lambda value: f"{value:.6f}"), before=st.sampled_from(["", "P: "]))
def test_every_probability_is_read_with_and_without_its_zero(value, before):
    assert parse_confidence(before + value) == pytest.approx(float(value))
    assert parse_confidence(before + value.lstrip("0")) == pytest.approx(float(value))


@given(of=st.integers(1, 1000), share=st.floats(0, 1))
def test_every_fraction_is_read(of, share):
    part = round(share * of)
    assert parse_confidence(f"{part}/{of}") == pytest.approx(part / of)


@given(st.integers(0, 100), st.integers(0, 100))
def test_two_percentages_count_only_if_they_agree(one, two):
    stated = parse_confidence(f"{one}%, no, {two}%")
    assert stated == (pytest.approx(one / 100) if one == two else None)


@given(st.text())
def test_whatever_is_replied_the_value_is_null_or_a_probability(reply):
    stated = parse_confidence(reply)
    assert stated is None or 0 <= stated <= 1


@given(st.text(st.characters(exclude_categories=["N"])))
def test_no_digit_no_confidence(reply):
    assert parse_confidence(reply) is None
