"""Places of JSON values, against PyYAML, whose nodes know where they stand."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tracecal.answers.parts.json_document import find_documents, nodes_at, parse_path
from tracecal.answers.parts.parts import Parts
from tracecal.answers.parts.spans import find_spans
from tracecal.io.settings import parse

# What YAML 1.1 reads as JSON does: no control or unusual line characters outside of escapes.
TEXT = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"])
)
KEYS = st.text("abcxyz_", min_size=1, max_size=4)
LEAVES = TEXT | st.integers(-(10**9), 10**9) | st.booleans() | st.none() | st.floats(-1e6, 1e6)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=5)


def leaves(node, path=""):
    """Paths and places of a YAML node's leaves; a text's quotes count only where it is empty."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from leaves(value, f"{path}.{key.value}" if path else key.value)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from leaves(value, f"{path}[{index}]")
    else:
        quoted = node.style == '"' and node.end_mark.index - node.start_mark.index > 2
        yield path, node.start_mark.index + quoted, node.end_mark.index - quoted


def value_at(value, path):
    for step in parse_path(path):
        value = value[step]
    return value


@given(
    DOCUMENTS, st.booleans(), st.sampled_from([None, 2]), st.sampled_from(["", "Here: ", "[x] "])
)
def test_every_leaf_stands_where_a_second_parser_sees_it(value, ascii, indent, before):
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    [document] = find_documents(before + text + "\n```")
    expected = list(leaves(yaml.compose(text)))
    for path, start, end in expected:
        [(name, node)] = nodes_at(document, parse_path(path))
        assert name == path
        assert (node.start, node.end) == (start + len(before), end + len(before))
        leaf = value_at(value, path)
        assert node.text == leaf if isinstance(leaf, str) else json.loads(node.text) == leaf


@given(DOCUMENTS)
def test_a_list_or_object_is_a_value_too(value):
    text = json.dumps(value)
    [document] = find_documents(text)
    for key, member in value.items():
        [(_, node)] = nodes_at(document, (key,))
        if isinstance(member, list | dict):
            assert json.loads(text[node.start : node.end]) == member


def test_the_first_document_that_holds_a_part_is_read():
    text = 'As in [1] and {"note": "a"}: ```json\n{"capital": "Lima"}\n``` not {"capital": "Cusco"}'
    [span] = find_spans(text, Parts(json=["capital"]))
    assert (span.value, text[span.start : span.end]) == ("Lima", "Lima")


def test_every_element_of_a_list_is_a_part():
    text = '{"items": [{"price": 3}, {"name": "b"}, {"price": "4 €"}]}'
    named = [
        (span.part, span.name, span.value)
        for span in find_spans(text, Parts(json=["items[].price"]))
    ]
    assert named == [
        ("items[].price", "items[0].price", "3"),
        ("items[].price", "items[2].price", "4 €"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Lima",
            '{"capital": "Lima"',
            '{"capital": Lima}',
            '{"capital": 01}',
            "{'capital': 1}",
        ),
        *('{"capital": "Lima",}', '{"capital" "Lima"}', '{"capital": 1.}', '{"other": 1}'),
        "[" * 5000 + "]" * 5000,
    ],
)
def test_what_is_no_json_or_lacks_the_parts_has_none(text):
    assert find_spans(text, Parts(json=["capital"])) is None


@given(DOCUMENTS, st.booleans(), st.data())
def test_a_document_that_one_change_broke_is_read_where_the_standard_library_reads_it(
    value, ascii, data
):
    text = json.dumps(value, ensure_ascii=ascii)
    # Mostly behind a mark or an escape, where a change matters most
    marks = [at + 1 for at, one in enumerate(text) if one in ':,[\\"']
    at = data.draw(st.sampled_from(marks) | st.integers(1, len(text) - 1))
    put = data.draw(
        st.sampled_from(["\\", "\\u12", "0", "-", ".", "1e", "٣", "true", "\x0b", ",", "\n"])
    )
    changed = text[:at] + put + text[at + data.draw(st.integers(0, 2)) :]
    try:
        _, end = json.JSONDecoder(parse_constant=int).raw_decode(changed)
    except ValueError:
        end = None
    assert next((node.end for node in find_documents(changed) if node.start == 0), None) == end


def test_hostile_texts_take_time_in_proportion():
    for text in ("[" * 200_000, '{"' * 100_000, '{"a":' * 50_000):
        assert find_spans(text, Parts(json=["capital"])) is None


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "a.[0]", "a]"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="is not a path"):
        parse_path(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one of 'json', 'lines', 'final', 'sentences'"),
        ({"json": ["a"], "lines": ["b"]}, "exactly one"),
        ({"json": ["a", "a"]}, "twice"),
        ({"json": ["a"], "reasoning": "alone"}, "'reasoning' .* belongs to 'final'"),
        ({"json": ["a..b"]}, "json.*'a..b' is not a path"),
        ({"lines": ["a"], "pattern": "("}, "pattern: .*not a regular expression"),
        ({"lines": ["a"], "pattern": "(?P<name>.)"}, "pattern: .*groups"),
        ({"jsn": ["a"]}, "did you mean 'json'"),
    ],
)
def test_a_wrong_specification_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        parse(Parts, given, "parts")
