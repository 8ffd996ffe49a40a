"""Which tokens a part gets: all of its characters, and no other part's but where they share one."""

import json
import re
from itertools import pairwise
from time import process_time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.answers.parts.cutter import NO_REASONING, UNPARSED, UNSPELLED, cut_parts
from tracecal.answers.parts.parts import Parts
from tracecal.answers.parts.spans import find_spans, locate_spans
from tracecal.errors import InputError

FIELDS = ("capital", "currency", "continent")
VALUE = st.text("ab é€漢,.: -", min_size=1, max_size=8).map(str.strip).filter(bool)


def frame(*answers):
    """Traces of (answer, tokens); the t-th token has surprisal t and entropy -t."""
    rows = [
        {
            "example_id": f"a{number}",
            "answer": answer,
            "tokens": tokens,
            "surprisal": [float(t) for t in range(len(tokens or []))],
            "entropy": [-float(t) for t in range(len(tokens or []))],
            "prompt": "p",
        }
        for number, (answer, tokens) in enumerate(answers)
    ]
    return pl.DataFrame(rows, schema_overrides={"tokens": pl.List(pl.String)})


@st.composite
def cut_texts(draw, texts):
    """A text in tokens cut at random places, some without text, and a special token behind it."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=len(text))))
    locate_spans = [0, *cuts, len(text)]
    tokens = [text[a:b] for a, b in pairwise(locate_spans)]
    return text, [*tokens, *draw(st.sampled_from([[], ["<|im_end|>"], ["", ""]]))]


def in_lines(values):
    return "\n".join(f"{name.title()}: {value}" for name, value in values.items())


RECORDS = st.fixed_dictionaries(dict.fromkeys(FIELDS, VALUE))


@given(st.lists(cut_texts(RECORDS.map(json.dumps) | RECORDS.map(in_lines)), min_size=1, max_size=4))
def test_a_part_has_every_token_that_spells_one_of_its_characters_and_no_other(answers):
    traces = frame(*answers)
    for parts in (Parts(json=FIELDS), Parts(lines=FIELDS)):
        rows, without = cut_parts(traces, parts)
        named = rows.to_dicts()
        for row in named:
            _, tokens = answers[int(row["parent_id"][1:])]
            inside = tokens[row["start"] : row["end"]]
            before = len("".join(tokens[: row["start"]]))
            assert row["tokens"] == inside
            assert row["surprisal"] == list(map(float, range(row["start"], row["end"])))
            assert before <= row["first"] < row["last"] <= before + len("".join(inside))
            # Without its first or last token with text, the part is not covered.
            texts = [token for token in inside if token]
            assert before + len(texts[0]) > row["first"]
            assert before + len("".join(inside)) - len(texts[-1]) < row["last"]
            others = [
                other["start"] < row["end"] and other["end"] > row["start"]
                for other in named
                if other["parent_id"] == row["parent_id"] and other["part"] != row["part"]
            ]
            assert row["shared"] == any(others)
        assert {*rows["parent_id"]} | {*without["example_id"]} == {*traces["example_id"]}


def test_a_token_of_structure_and_value_belongs_to_the_value():
    tokens = ["{", '"capital', '":"Li', "ma", '","', "currency", '":"', 'Sol"}', "<eos>"]
    rows, _ = cut_parts(frame(("".join(tokens[:-1]), tokens)), Parts(json=["capital", "currency"]))
    assert rows["tokens"].to_list() == [['":"Li', "ma"], ['Sol"}']]
    assert rows["value"].to_list() == ["Lima", "Sol"]
    assert rows["shared"].to_list() == [False, False]


def test_a_token_of_two_values_is_shared():
    tokens = ['{"a": 1', ', "b": 2', "}"]
    rows, _ = cut_parts(
        frame(("".join(tokens), ['{"a": ', '1, "b": 2', "}"])), Parts(json=["a", "b"])
    )
    assert rows["tokens"].to_list() == [['1, "b": 2']] * 2
    assert rows["shared"].to_list() == [True, True]


def test_a_character_of_several_tokens_belongs_whole_to_its_value():
    # As byte-level tokenizers are decoded: a character's text stands with its last byte.
    tokens = ["Capital", ":", " ", "", "", "漢", "字", "\n", "x"]
    [row] = cut_parts(frame(("".join(tokens), tokens)), Parts(lines=["capital"]))[0].iter_rows(
        named=True
    )
    assert row["tokens"] == ["", "", "漢", "字"]


@pytest.mark.parametrize(
    ("answer", "tokens", "parts"),
    [
        ("Capital: Lima", [" Capital", ":", " Lima", " "], [" Lima"]),  # a server stripped spaces
        ("Capital: Lima", ["Capital", ":", "<pad>", " Lima", "<eos>"], [" Lima"]),
        ("Capital: Lima", ["Capital", ": Li", "ma\n", "Q: next"], [": Li", "ma\n"]),
    ],
)
def test_tokens_may_spell_more_than_the_answer(answer, tokens, parts):
    rows, without = cut_parts(frame((answer, tokens)), Parts(lines=["capital"]))
    assert rows["tokens"].to_list() == [parts]
    assert without.is_empty()


def test_answers_are_cut_in_batches(monkeypatch):
    answers = [("Capital: b", ["Capital: ", "b"]), ("no", ["no"]), ("Capital: c", [*"Capital: c"])]
    traces, parts = frame(*answers), Parts(lines=["capital"])
    at_once = cut_parts(traces, parts)
    monkeypatch.setattr("tracecal.answers.parts.cutter.BATCH", 1)
    assert [one.rows() for one in cut_parts(traces, parts)] == [one.rows() for one in at_once]
    assert all(one.is_empty() for one in cut_parts(traces.clear(), parts))


def test_answers_without_parts_are_told_with_the_reason():
    answers = [
        ("Capital: Lima", ["Capital", ": Cusco"]),
        ("no idea", ["no idea"]),
        ("Capital: b", None),
    ]
    rows, without = cut_parts(frame(*answers), Parts(lines=["capital"]))
    assert rows.is_empty() and "surprisal" in rows.columns
    assert without.rows() == [("a0", UNSPELLED), ("a1", UNPARSED), ("a2", UNSPELLED)]


@pytest.mark.parametrize(
    ("text", "pattern", "value"),
    [
        ("<think>5 or 7</think>\n\n7 .", "</think>", "7 ."),
        ("a #### 5 b\n#### 7\n", "####", "7"),
        (
            r"so \boxed{1} then \boxed{x^{2}}.",
            r"\\boxed\{(?P<value>(?:[^{}]|\{[^{}]*\})*)\}",
            "x^{2}",
        ),
        ("The answer is  Lima", "The answer is", "Lima"),
    ],
)
def test_the_conclusion_follows_the_last_match_or_is_its_group(text, pattern, value):
    [span] = find_spans(text, Parts(final=pattern))
    assert (span.name, span.value, text[span.start : span.end]) == ("final", value, value)


def test_a_conclusion_that_is_missing_or_empty_is_none():
    assert find_spans("still thinking", Parts(final="</think>")) is None
    assert find_spans("done </think> \n", Parts(final="</think>")) is None


def test_the_trace_of_a_conclusion_may_be_that_of_the_reasoning_before_it():
    tokens = ["5 or", " 7?", "\n####", " 7", " ."]
    answers = [("".join(tokens), tokens), ("7 #### 8", ["7 #### 8"]), ("#### 9", ["####", " 9"])]
    found = {
        kept: cut_parts(frame(*answers), Parts(final="####", reasoning=kept))
        for kept in ("apart", "alone", "within")
    }
    rows = {
        kept: dict(rows.select("parent_id", "tokens").rows()) for kept, (rows, _) in found.items()
    }
    assert rows["apart"] == {"a0": [" 7", " ."], "a1": ["7 #### 8"], "a2": [" 9"]}
    assert rows["alone"] == {"a0": tokens[:3], "a2": ["####"]}
    assert rows["within"] == {"a0": tokens, "a1": ["7 #### 8"], "a2": ["####", " 9"]}
    assert found["alone"][0]["value"].to_list() == ["7 .", "9"]
    assert found["alone"][1].rows() == [("a1", NO_REASONING)]


def test_lines_are_found_by_name_first_come_whatever_their_dress():
    text = "Facts:\n- **Capital**: Lima \r\n  currency : Sol: new\nCapital: Cusco\nContinent:\n"
    found = {span.name: span.value for span in find_spans(text, Parts(lines=FIELDS))}
    assert found == {"capital": "Lima", "currency": "Sol: new"}


def test_sentences_are_told_apart():
    text = "It is 3.5 m! Ok (yes.) Then\nNew line. 日本。そう。"
    found = find_spans(text, Parts(sentences=True))
    assert [span.value for span in found] == [
        "It is 3.5 m!",
        "Ok (yes.)",
        "Then",
        "New line.",
        "日本。",
        "そう。",
    ]
    assert all(text[span.start : span.end] == span.value for span in found)


# As one expression says it, which reads a row of marks again from each of them.
SENTENCE = re.compile(r"\S(?:[^\n]*?[.!?]+[\"')\]]*+(?=\s|$)|[^\n]*?[。！？]+|[^\n]*)")


@given(st.text("ab.!?\"') \n\t\r。！\x1c"))
def test_sentences_are_those_of_an_expression(text):
    found = find_spans(text, Parts(sentences=True)) or []
    expected = [(match.start(), match[0].rstrip()) for match in SENTENCE.finditer(text)]
    assert [(span.start, span.value) for span in found] == expected


@pytest.mark.parametrize(
    "text",
    ["!" * 40_000 + "a", "好。" * 40_000, "a.)" * 40_000, "! " * 40_000],
    ids=["marks", "Han", "brackets", "blanks"],
)
def test_sentences_take_time_in_proportion_to_the_text(text):
    begun = process_time()
    find_spans(text, Parts(sentences=True))
    assert process_time() - begun < 3


@pytest.mark.parametrize(
    "parts",
    [
        Parts(final=r"(?:x|x)*[yz]"),
        Parts(lines=["a"], pattern=r"(?P<name>a):(?P<value>(?:x|x)*)[yz]"),
    ],
)
def test_an_expression_that_takes_too_long_is_named_with_the_answer(parts):
    answers = pl.Series(["a: 3", "a:" + "x" * 60])
    begun = process_time()
    with pytest.raises(InputError, match=r"\(\?:x\|x\)\*.* takes over 1 s .* begins 'a:xxx"):
        locate_spans(answers, parts)
    assert process_time() - begun < 5


def test_many_lines_share_the_time_of_their_answer():
    slow = "a:" + "x" * 18  # some hundredths of a second each
    parts = Parts(lines=["a"], pattern=r"(?P<name>a):(?P<value>(?:x|x)*)[yz]")
    assert find_spans(slow, parts) is None
    with pytest.raises(InputError, match="takes over 1 s"):
        find_spans("\n".join([slow] * 2000), parts)
