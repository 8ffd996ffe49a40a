"""MARS's phrases: every character and token has one, whatever the script and the cut."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from support.texts import ANSWERS
from trace_workflow.models.mars_weights import (
    Phrases,
    model_phrases,
    phrase_weights,
    phrases_of,
    softmax,
    token_phrases,
    word_phrases,
)
from tracecal.capture.tokens import token_texts
from tracecal.errors import InputError

END = 1


def own(texts, phrases, visible=None):
    return token_phrases(texts, visible or [True] * len(texts), phrases)


def test_by_hand():
    # "The| red house| stands": tokens cut across words.
    phrases = Phrases([0, 4, 14], [0.1, 0.9, 0.5])
    numbers, importance = own(
        ["The", " re", "d ho", "use", " stands", ""], phrases, [True] * 5 + [False]
    )
    assert numbers == [0, 1, 1, 1, 2, None]
    assert importance == [0.1, 0.9, 0.5]


def test_phrases_inside_one_token_are_merged():
    numbers, importance = own(["a b", " c"], Phrases([0, 2, 4], [0.2, 0.6, 1.0]))
    assert numbers == [0, 1]
    assert importance == [pytest.approx(0.4), 1.0]


def test_text_before_the_first_phrase_belongs_to_it():
    assert own(["a", " b"], Phrases([2], [0.7])) == ([0, 0], [0.7])


def test_an_answer_without_words_or_without_text():
    assert own([" ", "\n"], word_phrases(" \n")) == ([0, 0], [0.0])
    assert own([""], word_phrases(""), [False]) == ([None], [])


@given(
    st.lists(st.text(max_size=4), min_size=1, max_size=12),
    st.sets(st.integers(0, 40), max_size=8),
)
def test_every_token_has_a_phrase_and_phrases_follow_the_text(texts, starts):
    answer = "".join(texts)
    for phrases in (
        word_phrases(answer),
        Phrases(kept := sorted(s for s in starts if s < len(answer)), [0.5] * len(kept)),
    ):
        numbers, importance = own(texts, phrases)
        assert None not in numbers
        assert numbers == sorted(numbers), "phrases follow one another"
        assert sorted(set(numbers)) == list(range(len(importance))), "none is empty"
        cut = {}
        for text, number in zip(texts, numbers, strict=True):
            cut[number] = cut.get(number, "") + text
        assert "".join(cut.values()) == answer, "no character is lost"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The red house.", ["The", "red", "house."]),
        ("بيت أحمر كبير", ["بيت", "أحمر", "كبير"]),
        ("लाल घर में", ["लाल", "घर", "में"]),
        ("红色的 house", ["红", "色", "的", "house"]),
    ],
)
def test_words_of_the_fallback(text, words):
    assert [
        text[start:].startswith(word)
        for start, word in zip(word_phrases(text).starts, words, strict=True)
    ] == [True] * len(words)


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_model_s_phrases_hold_every_character(make_encoder, tokenizer, answer):
    encoder = make_encoder("importance")
    ids = tokenizer(answer)["input_ids"]
    texts = token_texts(tokenizer, ids)
    long = "A question far longer than the window of the encoder. " * 20
    (phrases,) = model_phrases(encoder, [(long, answer)], 4)
    assert phrases.starts == sorted(phrases.starts) and phrases.starts
    numbers, importance = own(texts, phrases)
    assert None not in numbers and len(importance) == numbers[-1] + 1


def test_phrases_begin_where_the_model_says_and_never_inside_a_word():
    # [CLS] question [SEP] w0 w0' w1 w2 [SEP]
    sequences = [None, 0, None, 1, 1, 1, 1, None]
    words = [None, 0, None, 0, 0, 1, 2, None]
    spans = [(0, 0), (0, 5), (0, 0), (0, 2), (2, 4), (5, 8), (9, 10), (0, 0)]
    logits = torch.zeros(8, 3)
    logits[:, 1] = 1.0  # goes on everywhere
    logits[[4, 6], 0] = 2.0  # but begins inside w0 (no) and at w2 (yes)
    logits[3, 2], logits[6, 2] = 1.0, -1.0
    found = phrases_of(logits, sequences, words, spans)
    assert found.starts == [0, 9]
    assert found.importance == pytest.approx(
        [torch.tensor(v).sigmoid().item() for v in (1.0, -1.0)]
    )


def answer_row(tokenizer, text, language):
    ids = [*tokenizer(text)["input_ids"], END]
    return {
        "example_id": language,
        "question": "Where?",
        "language": language,
        "token_ids": ids,
        "tokens": token_texts(tokenizer, ids),
    }


def test_languages_that_the_model_does_not_cover_have_words_of_equal_weight(
    make_encoder, tokenizer
):
    rows = [answer_row(tokenizer, "Paris now", "en-GB"), answer_row(tokenizer, "北京市", "zh")]
    english, chinese = phrase_weights(
        make_encoder("importance"), rows, frozenset({END}), ["en"], 0.1, 8
    )
    assert chinese["weight"] == pytest.approx([1 / 3] * 3)
    assert sum(english["weight"]) == pytest.approx(1)
    assert english["phrase"][-1] is chinese["phrase"][-1] is None
    without = phrase_weights(None, rows, frozenset({END}), ["en"], 0.1, 8)
    assert without[0]["weight"] == pytest.approx([0.5, 0.5])
    assert without[1] == chinese


def test_the_batch_changes_nothing(make_encoder):
    encoder = make_encoder("importance")
    pairs = [("Where is it?", answer) for answer in ANSWERS]
    together = model_phrases(encoder, pairs, 8)
    alone = [model_phrases(encoder, [pair], 1)[0] for pair in pairs]
    for one, two in zip(together, alone, strict=True):
        assert one.starts == two.starts
        assert one.importance == pytest.approx(two.importance, abs=1e-4)


def test_another_kind_of_classifier_is_refused(make_encoder):
    encoder = make_encoder("importance")
    encoder.model.config.num_labels = 9
    try:
        with pytest.raises(InputError, match="has 9 outputs per token; encoders.importance must"):
            model_phrases(encoder, [("a", "b")], 1)
    finally:
        encoder.model.config.num_labels = 3


def test_softmax():
    assert softmax([], 0.1) == []
    assert softmax([0.9, 0.9], 0.1) == [0.5, 0.5]
    assert softmax([1.0, 0.9], 0.1)[0] == pytest.approx(1 / (1 + 2.718281828**-1))
