"""TokenSAR's weights: tokens leave by position, the question alone is cut, nothing overflows."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.texts import ANSWERS
from trace_workflow.models.text_encoders import TextEncoder
from trace_workflow.models.token_sar_weights import (
    normalised_relevance,
    similarities,
    token_weights,
    without_each,
)
from tracecal.capture.tokens import token_texts
from tracecal.errors import InputError

END = 1


def row(tokens, example="a", question="Where?", ids=None):
    ids = ids or [*range(10, 9 + len(tokens)), END]
    return {"example_id": example, "question": question, "token_ids": ids, "tokens": tokens}


def weighed(encoder, *rows, batch_size=4):
    return [one["weight"] for one in token_weights(encoder, rows, frozenset({END}), batch_size)]


def test_a_token_is_removed_by_position_not_by_its_text():
    assert without_each(["no", " no", " yes"]) == ["no yes", "no yes", "no no"]
    assert without_each(["a", "a", "b"]) == ["ab", "ab", "aa"]


def test_the_bytes_of_a_character_take_the_character_away():
    assert without_each(["", "", "北", "京"]) == ["京", "京", "京", "北"]
    assert without_each(["x", "", "京 is"]) == ["京 is", "x is", "x"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_byte_level_answers_in_any_script(make_encoder, tokenizer, answer):
    ids = [*tokenizer(answer)["input_ids"], END]
    tokens = token_texts(tokenizer, ids)
    assert "".join(tokens[:-1]) == answer
    (weights,) = weighed(make_encoder("embedding"), row(tokens, ids=ids))
    assert len(weights) == len(ids)
    assert isclose(sum(weights), 1, abs_tol=1e-6)
    assert weights[-1] == 0, "the end token has no relevance"
    variants = without_each([*tokens[:-1], ""])
    changing = [variant != answer for variant in variants[:-1]]
    assert all(changing), "every token, whole character or not, takes something away"


@pytest.mark.parametrize("kind", ["embedding", "cross"])
def test_weights_agree_with_one_pair_at_a_time(make_encoder, kind):
    encoder = make_encoder(kind)
    assert encoder.is_cross_encoder is (kind == "cross")
    rows = [
        row(["Par", "is", " in", " France", "<end>"], "a"),
        row(["Rome", "<end>"], "b", "Which city is it that lies on the Tiber?"),
        row(["42", "42", "<end>"], "c", ""),
    ]
    together = weighed(encoder, *rows)
    for one, weights in zip(rows, together, strict=True):
        texts = one["tokens"][:-1]
        whole = f"{one['question']} {''.join(texts)}"
        raw = []
        for t in range(len(texts)):
            rest = f"{one['question']} {''.join(texts[:t] + texts[t + 1 :]).strip()}"
            raw.append(1 - similarities(encoder, [(whole, rest)], 1)[whole, rest])
        expected = [value / sum(raw) for value in raw]
        assert weights[:-1] == pytest.approx(expected, abs=1e-4)
        assert weighed(encoder, one, batch_size=1)[0] == pytest.approx(weights, abs=1e-4)


@pytest.mark.parametrize("kind", ["embedding", "cross"])
def test_a_question_longer_than_the_window_is_cut_and_the_answer_kept(make_encoder, kind):
    encoder = make_encoder(kind)
    long = "The river is long and wide and deep. " * 40 + "Where is Paris?"
    answer = "on the Seine"
    room = encoder.room(2 if kind == "cross" else 1)
    (question,) = encoder.truncated_questions([long], [answer], room)
    assert long.endswith(question) and len(question) < len(long)
    ids = encoder.tokenizer(f"{question} {answer}", add_special_tokens=False)["input_ids"]
    assert 0 < len(ids) <= room
    assert len(ids) > room - 12, "no more is cut than must be"
    (weights,) = weighed(encoder, row(["on", " the", " Seine", "<end>"], question=long))
    assert min(weights[:-1]) > 0, "every token of the answer is still seen"


def test_texts_that_fit_are_left_alone(make_encoder):
    encoder = make_encoder("cross")
    assert encoder.truncated_questions(["Where?"], ["Paris"], encoder.room(2)) == ["Where?"]


def test_nothing_is_read_twice_nor_one_by_one(make_encoder, monkeypatch):
    read = []
    original = TextEncoder.read_all
    monkeypatch.setattr(
        TextEncoder,
        "read_all",
        lambda encoder, texts, *rest: read.append(texts) or original(encoder, texts, *rest),
    )
    rows = [row(["no", "no", " Paris", "<end>"], str(index)) for index in range(5)]
    weighed(make_encoder("embedding"), *rows)
    (texts,) = read
    assert len(texts) == len(set(texts)) == 3


def test_a_classifier_is_no_similarity(make_encoder):
    with pytest.raises(InputError, match="has 3 outputs per pair; encoders.similarity"):
        weighed(make_encoder("nli"), row(["a", "b", "<end>"]))


def test_answers_that_nothing_changes_or_that_say_nothing(make_encoder):
    assert normalised_relevance([0, 0, 0], [True, True, False]) == [0.5, 0.5, 0.0]
    assert normalised_relevance([0], [False]) == [0.0]
    assert weighed(make_encoder("embedding"), row(["<end>"])) == [[0.0]]
    assert weighed(make_encoder("cross"), row([" ", "<end>"])) == [[1.0, 0.0]]


@given(st.lists(st.tuples(st.floats(-1e-6, 2), st.booleans()), min_size=1, max_size=20))
def test_weights_sum_to_one_over_what_is_seen(rows):
    values, seen = zip(*rows, strict=True)
    weights = normalised_relevance(values, seen)
    assert sum(weights) == pytest.approx(1 if any(seen) else 0)
    assert all(weight >= 0 for weight in weights)
    assert all(weight == 0 for weight, one in zip(weights, seen, strict=True) if not one)
