"""What encoders learn from: phrases, the point of a reply, pairs of replies; and what they learn."""

import random

import polars as pl
import pytest
import torch

from trace_workflow.demo.corpus import FAMILIES
from trace_workflow.demo.encoder import EncoderSettings, encoder_tokenizer
from trace_workflow.demo.entailment import recurrences, split_discussions, train_entailment
from trace_workflow.demo.family import (
    RELATIONS,
    AnswerSpan,
    Sizes,
    discussion_frame,
    misheard,
    phrased,
    reply_pairs,
    word_by_word,
)
from trace_workflow.demo.importance import UNSEEN, token_targets, train_importance
from trace_workflow.demo.training import save_tokenizer
from trace_workflow.models.mars_weights import model_phrases
from trace_workflow.models.nli import compare_samples, relation_columns
from trace_workflow.models.text_encoders import load_encoder
from tracecal.io import log


@pytest.fixture(scope="module")
def tokenizer_folder(world, tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("world") / "tokenizer"
    save_tokenizer(world.corpus, 600, folder)
    return folder


def test_phrases_of_worked_cases():
    told = phrased("The river through {s} is the {v}.", "v", s="Ba", v="Voltar")
    assert told == ("The river through Ba is the Voltar.", (0, 18, 21, 28), 3)
    assert phrased("{p} kommt {v} an.", "p", p="Eva", v="am Montag").point == 0
    assert phrased("{v}", "v", v="zinc") == ("zinc", (0,), 0)
    assert word_by_word("1+2: 3, so 3") == ("1+2: 3, so 3", (0, 5, 8, 11), 3)


def test_every_reply_has_phrases_and_a_point(world):
    for text, starts, point in world.discussions.select("reply", "starts", "point").iter_rows():
        assert starts[0] == 0 and starts == sorted(set(starts)) and starts[-1] < len(text)
        assert all(not text[start].isspace() for start in starts)
        assert 0 <= point < len(starts)


def test_nothing_evaluated_is_discussed(world):
    discussed = set(world.discussions["question"])
    for name in ("closed_book", "misconceptions", "arithmetic"):
        evaluated = world.examples[name].filter(role="evaluation")["question"]
        assert not discussed & set(evaluated)


def test_token_targets_of_a_worked_case():
    # question, "It", " is", " zinc", "."
    spans = [(0, 3), (0, 2), (2, 5), (5, 10), (10, 11)]
    phases, importance = token_targets([0, 1, 1, 1, 1], spans, [0, 6], 1)
    assert phases == [UNSEEN, 0, 1, 0, 1]
    assert importance == [UNSEEN, 0, UNSEEN, 1, UNSEEN]


def test_pairs_are_what_they_are_said_to_be(world):
    meaning = {}
    for question, number, reply in world.discussions.select("question", "meaning", "reply").rows():
        meaning.setdefault((question, reply), set()).add(number)
    pairs = reply_pairs(world.discussions, 300, 1)
    assert reply_pairs(world.discussions, 300, 1) == pairs
    counts = {relation: sum(one.relation == relation for one in pairs) for relation in RELATIONS}
    assert min(counts.values()) > 70
    for one in pairs:
        sides = [meaning.get((one.question, text)) for text in (one.premise, one.hypothesis)]
        if one.relation == "neutral":
            assert None in sides
        elif one.relation == "entailment":
            assert sides[0] & sides[1]
        else:
            assert one.premise != one.hypothesis


def test_the_model_of_phrases_finds_the_point_of_unseen_replies(tokenizer_folder, tmp_path):
    discussed = Sizes(corpus=800, evaluation=40, training=20, discussions=250)
    families = [(name, make(2, discussed)) for name, make in FAMILIES.items()]
    rows = discussion_frame([(name, one) for name, made in families for one in made.discussions])
    rows = rows.with_columns(discussion=pl.col("discussion").hash(1) % 1000)
    shown = 900
    taught = rows.filter(rows["discussion"] < shown)
    unseen = rows.filter(rows["discussion"] >= shown)
    settings = EncoderSettings(2, 64, 3e-3, taught.height, 1)
    train_importance(taught, tokenizer_folder, settings, tmp_path / "importance")
    encoder = load_encoder(tmp_path / "importance", "token")
    found = model_phrases(encoder, unseen.select("question", "reply").rows(), 64)
    on_point = [
        one.importance[point] > max([*one.importance[:point], *one.importance[point + 1 :], 0])
        for one, starts, point in zip(found, unseen["starts"], unseen["point"], strict=True)
        if len(one.starts) == len(starts)
    ]
    assert len(on_point) > 0.5 * unseen.height
    assert sum(on_point) / len(on_point) > 0.8


def test_what_is_misheard_is_one_word_of_the_point():
    told = AnswerSpan("Eva buys a red hat.", 9, 18)
    words = ["a", "blue", "hat", "red"]
    heard = {misheard(random.Random(seed), told, words) for seed in range(99)}
    assert "Eva buys a blue hat." in heard and told.text not in heard
    for text in heard:
        changed = [
            one for one in zip(text.split(), told.text.split(), strict=True) if len({*one}) > 1
        ]
        assert len(changed) == 1 and text.startswith("Eva buys ")
    number = AnswerSpan("1+2: 3, so 13", 11, 13)
    assert misheard(random.Random(1), number, ["1", "3", "7"])[:11] == "1+2: 3, so "


def test_replies_of_one_meaning_come_to_one_result_in_three_ways(world):
    replies = world.discussions.filter(family="arithmetic")
    for _, own in replies.group_by("discussion", "meaning"):
        assert len({text.split()[-1] for text in own["reply"]}) == 1
        assert own["reply"].n_unique() == 3
    results = replies.group_by("discussion").agg(pl.col("reply").str.extract(r"(\d+)$").n_unique())
    assert results["reply"].to_list() == [3] * results.height


def test_recurrences_of_a_worked_case(tokenizer_folder):
    encoded = encoder_tokenizer(tokenizer_folder)(["12", "3"], ["312", "4"])
    with_text = {"input_ids": [[0, 7, 8, 1, 9, 7, 8, 1]], "token_type_ids": [[0] * 4 + [1] * 4]}
    assert recurrences(with_text, 0) == [
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 1, 1],
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 1, 1],
    ]
    ends = [recurrences(encoded, row)[-1][1] for row in (0, 1)]
    assert ends == [1.0, 0.0]


def test_no_question_is_both_learnt_and_checked(world):
    shown, held_out = split_discussions(world.discussions)
    assert shown.height + held_out.height == world.discussions.height
    assert held_out["question"].n_unique() > 0.05 * world.discussions["question"].n_unique()
    assert not set(shown["question"]) & set(held_out["question"])


def test_entailment_is_judged_on_unseen_questions(tokenizer_folder, tmp_path):
    made = FAMILIES["misconceptions"](
        2, Sizes(corpus=800, evaluation=40, training=80, discussions=300)
    )
    other = FAMILIES["closed_book"](
        2, Sizes(corpus=800, evaluation=40, training=80, discussions=30)
    )
    told = [("misconceptions", one) for one in made.discussions]
    told += [("closed_book", one) for one in other.discussions]
    settings = EncoderSettings(2, 64, 3e-3, 6000, seed=1)
    share = train_entailment(discussion_frame(told), tokenizer_folder, settings, tmp_path / "nli")
    assert share > 0.7  # by chance 1/3
    encoder = load_encoder(tmp_path / "nli", "sequence")
    assert relation_columns(encoder.model.config.id2label) == [0, 1, 2]
    samples = pl.DataFrame({"example_id": ["a", "a"], "sample": [0, 1], "text": ["x", "zinc"]})
    rows = compare_samples(encoder, samples, {"a": ("Which metal?", "zinc")}, 4)
    assert sum(rows[0][relation] for relation in RELATIONS) == pytest.approx(1, abs=1e-5)


def test_a_classifier_that_learnt_nothing_is_warned_of(
    world, tokenizer_folder, tmp_path, monkeypatch
):
    said = []
    monkeypatch.setattr(log.LOGGER, "warning", lambda *words: said.append(words[0]))
    settings = EncoderSettings(1, 32, 1e-3, 60, 1)
    assert train_entailment(world.discussions, tokenizer_folder, settings, tmp_path / "nli") < 0.8
    assert "do not rely on" in said[0]


def test_pairs_are_begun_parted_and_ended(tokenizer_folder):
    tokenizer = encoder_tokenizer(tokenizer_folder)
    encoded = tokenizer("a", "b")
    assert encoded["token_type_ids"] == [0, 0, 0, 1, 1]
    assert tokenizer.num_special_tokens_to_add(pair=True) == 3
