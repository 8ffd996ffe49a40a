"""Which part of a decoded answer is judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_workflow.correctness.label import extract
from trace_workflow.correctness.rules import first_line
from tracecal.errors import InputError


@pytest.mark.parametrize(
    ("answer", "stop", "pattern", "part"),
    [
        (" Paris \n", (), None, "Paris"),
        ("Paris\nQ: next", ("\n",), None, "Paris"),
        ("Paris. Q: a\nb", ("\n", "Q:"), None, "Paris."),
        ("\nParis", ("\n",), None, ""),
        ("", ("\n",), r"is (\w+)", ""),
        (" \t\n ", (), None, ""),
        ("it is 5, no, it is 7 now", (), r"is (\d+)", "7"),
        ("no figure at all", (), r"is (\d+)", "no figure at all"),
        ("it is 5\nit is 6", ("\n",), r"is (\d+)", "5"),
        ("= 8", (), r"=( \d)?", "8"),
        ("=", (), r"=( \d)?", ""),
    ],
)
def test_extract(answer, stop, pattern, part):
    assert extract(answer, stop, pattern) == part


def test_a_pattern_that_takes_too_long_is_named_with_the_answer():
    with pytest.raises(InputError, match=r"takes over 1 s .* begins 'it is xxx"):
        extract("it is " + "x" * 60, pattern=r"(x|x)*[yz]")


@given(st.text(), st.lists(st.text(min_size=1, max_size=2)))
def test_no_stop_string_survives(answer, stop):
    part = extract(answer, stop)
    assert not any(text in part for text in stop)
    assert part in answer


def test_only_a_line_feed_ends_the_first_line():
    assert first_line("\n  \n a\u2028b \n c") == "a\u2028b"
    assert first_line(" \n") == ""
