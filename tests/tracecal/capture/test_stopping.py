"""Stop strings in the tail of an answer: what a search of all its text finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracecal.capture.stop_strings import StopStrings


def searched_whole(stops, token_ids):
    """Where the answer is cut, by decoding it anew at every token."""
    for end in range(1, len(token_ids) + 1):
        text = stops.decode(token_ids[:end])
        starts = [text.find(string) for string in stops.strings if string in text]
        if starts:
            through = text[: min(starts) + 1]
            counts = range(1, end + 1)
            return end, next(n for n in counts if stops.decode(token_ids[:n]).startswith(through))
    return None


def searched_at_the_end(stops, token_ids):
    for end in range(1, len(token_ids) + 1):
        if (count := stops.cut(token_ids[:end])) is not None:
            return end, count
    return None


@given(
    ids=st.lists(st.integers(0, 319), min_size=1, max_size=40),
    strings=st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3),
    cut=st.integers(0, 40),
    length=st.integers(1, 5),
)
def test_the_tail_says_what_the_whole_text_says(tokenizer, ids, strings, cut, length):
    text = StopStrings(tokenizer, ()).decode(ids)
    piece = text[cut : cut + length]  # one that is there, where it is long enough
    stops = StopStrings(tokenizer, [*strings, *([piece] if piece else [])])
    assert searched_at_the_end(stops, ids) == searched_whole(stops, ids)


@pytest.mark.parametrize("stop", ["\n", " ", "京", "So?"])
def test_a_long_answer_is_not_decoded_anew_at_each_token(tokenizer, monkeypatch, stop):
    stops = StopStrings(tokenizer, [stop])
    (letter,) = tokenizer("a")["input_ids"]
    lengths = []
    decode = stops.decode
    monkeypatch.setattr(stops, "decode", lambda ids: lengths.append(len(ids)) or decode(ids))
    ids = [letter] * 300
    assert searched_at_the_end(stops, ids) is None
    assert max(lengths, default=0) <= 8 + len(stop.encode())
