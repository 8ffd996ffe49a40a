"""LARS: probability bins, what the encoder reads, what the scorer learns and writes."""

import math

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import RobertaConfig, RobertaForSequenceClassification

from support.supervised_frames import FITTING, UNICODE, answers
from trace_workflow.models.lars import (
    TokenLayout,
    adopted_encoder,
    bin_numbers,
    encoded,
    few_hot,
    lars_probabilities,
    loaded,
    logits,
    quantile_edges,
    small_encoder,
    train_lars,
    with_bin_tokens,
)
from tracecal.errors import InputError

SCRATCH = {"layers": 1, "width": 32}
LAYOUT = TokenLayout(start=0, end=2, first_bin=100, room=14, edges=(0.25, 0.5, 0.75, 1.0))


def test_bins_of_a_worked_case():
    edges = quantile_edges([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 4)
    assert edges == pytest.approx([0.3, 0.5, 0.7, 1.0])
    assert bin_numbers([0.0, 0.29, 0.31, 0.55, 0.71, 1.0], edges) == [0, 0, 1, 2, 3, 3]
    assert bin_numbers([0.5], [0.25, 0.5, 0.75, 1.0]) == [2], "an edge belongs to the bin above"


def test_few_hot_vectors_of_a_worked_case():
    assert few_hot(2, 4, norm=2.0).numpy() == pytest.approx(
        np.array([[math.sqrt(2), math.sqrt(2), 0, 0], [0, 0, math.sqrt(2), math.sqrt(2)]])
    )


@given(bins=st.integers(2, 12), width=st.integers(12, 70), norm=st.floats(0.1, 9))
def test_few_hot_vectors_are_orthogonal_and_as_long_as_asked(bins, width, norm):
    vectors = few_hot(bins, width, norm).double().numpy()
    assert vectors @ vectors.T == pytest.approx(np.eye(bins) * norm**2, rel=1e-5, abs=1e-5)
    assert (vectors != 0).sum(0).tolist() == [1] * width


@given(probabilities=st.lists(st.floats(0, 1), min_size=1, max_size=50), bins=st.integers(2, 9))
def test_every_probability_has_a_bin(probabilities, bins):
    edges = quantile_edges(probabilities, bins)
    assert edges == sorted(edges)
    numbers = bin_numbers(probabilities, edges)
    assert min(numbers) >= 0
    assert max(numbers) <= bins - 1
    order = np.argsort(probabilities, kind="stable")
    assert (np.diff(np.array(numbers)[order]) >= 0).all()


def test_each_answer_token_is_followed_by_its_bin():
    ids = with_bin_tokens([11, 12], [[21], [22, 23], []], [3, 0, 1], LAYOUT)
    assert ids == [0, 11, 12, 2, 2, 21, 103, 22, 23, 100, 101, 2]


def test_what_is_too_long_loses_the_questions_beginning_then_the_answers_end():
    question = list(range(10, 30))
    ids = with_bin_tokens(question, [[50], [51]], [0, 1], LAYOUT)
    assert ids == [0, *question[-6:], 2, 2, 50, 100, 51, 101, 2]
    assert len(ids) == LAYOUT.room
    ids = with_bin_tokens(question, [[50 + index] for index in range(9)], [0] * 9, LAYOUT)
    assert ids == [0, 2, 2, 50, 100, 51, 100, 52, 100, 53, 100, 54, 100, 2]


def test_a_single_token_and_every_script_are_read_in_both_ways(tokenizer):
    model = small_encoder(len(tokenizer), 1, 32, LAYOUT.edges)
    layout = TokenLayout.of(model.config)
    assert layout.first_bin == 3 + len(tokenizer)
    rows = answers(tokenizer, 20)
    own = encoded(rows, tokenizer, model.config)
    model.config.own_tokens = None
    foreign = encoded(rows, tokenizer, model.config)
    for ids, texts, row in zip(own, foreign, rows.iter_rows(named=True), strict=True):
        numbers = bin_numbers(np.exp(-np.array(row["surprisal"])), layout.edges)
        question = [3 + token for token in tokenizer(row["question"])["input_ids"]]
        answer = [
            token
            for own_id, number in zip(row["token_ids"], numbers, strict=True)
            for token in (3 + own_id, layout.first_bin + number)
        ]
        assert ids == [0, *question, 2, 2, *answer, 2]
        # Every token keeps its bin, though its text may be written otherwise, or be empty.
        assert [i - layout.first_bin for i in texts if i >= layout.first_bin] == numbers
    with torch.inference_mode():
        assert logits(model.eval(), own).isfinite().all()


def test_batches_change_no_score(tokenizer):
    torch.manual_seed(0)
    model = small_encoder(len(tokenizer), 2, 32, LAYOUT.edges).eval()
    rows = encoded(answers(tokenizer, 12), tokenizer, model.config)
    with torch.inference_mode():
        together = logits(model, rows)
        alone = torch.cat([logits(model, [row]) for row in rows])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.fixture(scope="module")
def language_model(make_model, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("language_model")
    make_model().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(language_model, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lars") / "toy"
    train_lars(answers(tokenizer), tokenizer, language_model, SCRATCH, 8, FITTING, folder)
    return folder


def test_it_learns_that_sure_answers_are_right(trained, tokenizer):
    unseen = answers(tokenizer, seed=1)
    scores = lars_probabilities(trained, unseen, tokenizer, batch_size=7)
    assert scores["example_id"].to_list() == unseen["example_id"].to_list()
    right = unseen["correct"].to_numpy()
    probabilities = scores["probability"].to_numpy()
    assert probabilities[right].min() > probabilities[~right].max()
    whole = lars_probabilities(trained, unseen, tokenizer, batch_size=60)["probability"]
    np.testing.assert_allclose(probabilities, whole, atol=1e-5)


def test_the_same_seed_gives_the_same_bytes(trained, language_model, tokenizer, tmp_path):
    again = tmp_path / "again"
    train_lars(answers(tokenizer), tokenizer, language_model, SCRATCH, 8, FITTING, again)
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "config.json",
        "model.safetensors",
        "settings.json",
        ".settings.json.sha256",
    }
    for name in names:
        assert (trained / name).read_bytes() == (again / name).read_bytes()


def test_the_edges_come_from_the_training_answers(trained, tokenizer):
    p = np.exp(-np.concatenate(answers(tokenizer)["surprisal"].to_list()).astype(float))
    expected = [*np.quantile(p, np.arange(1, 8) / 8), 1.0]
    assert loaded(trained).config.edges == pytest.approx(expected)


def test_one_class_gives_a_constant(language_model, tokenizer, tmp_path):
    rows = answers(tokenizer, 8).with_columns(correct=pl.lit(False))
    folder = tmp_path / "constant"
    train_lars(rows, tokenizer, language_model, SCRATCH, 8, FITTING, folder)
    scores = lars_probabilities(folder, rows, tokenizer, 4)["probability"]
    assert scores.to_list() == pytest.approx([1 / 10] * 8)


@pytest.fixture(scope="module")
def roberta(tokenizer, tmp_path_factory):
    """A stand-in for roberta-base: another vocabulary size, RoBERTa's special ids."""
    folder = tmp_path_factory.mktemp("roberta")
    torch.manual_seed(1)
    config = RobertaConfig(
        vocab_size=len(tokenizer) + 5,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=66,
        type_vocab_size=1,
        num_labels=2,
    )
    RobertaForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_a_given_roberta_gets_bins_and_is_trained_on_texts(
    roberta, language_model, tokenizer, tmp_path
):
    model = adopted_encoder(roberta, LAYOUT.edges)
    assert model.config.vocab_size == len(tokenizer) + 9
    assert TokenLayout.of(model.config).room == 64
    vectors = model.get_input_embeddings().weight[-4:].detach()
    norm = model.get_input_embeddings().weight[:-4].norm(dim=-1).mean().item()
    torch.testing.assert_close(vectors, few_hot(4, 32, norm))
    rows = answers(tokenizer)
    train_lars(rows, tokenizer, language_model, roberta, 8, FITTING, tmp_path / "given")
    unseen = answers(tokenizer, seed=1)
    scores = lars_probabilities(tmp_path / "given", unseen, tokenizer, 16)["probability"].to_numpy()
    right = unseen["correct"].to_numpy()
    assert scores[right].mean() > scores[~right].mean() + 0.3


def test_a_published_scorer_is_used_as_it_is(roberta, tokenizer, tmp_path):
    model = adopted_encoder(roberta, LAYOUT.edges)
    model.config.number_of_bins = 4
    model.save_pretrained(tmp_path)
    scores = lars_probabilities(tmp_path, answers(tokenizer, 8), tokenizer, 3)
    assert scores["probability"].is_between(0, 1).all()


def test_what_is_no_scorer_is_said(roberta, language_model, tokenizer):
    with pytest.raises(InputError, match="is not a trained LARS.*lars.encoder.trained"):
        lars_probabilities(roberta, answers(tokenizer, 2), tokenizer, 3)
    with pytest.raises(InputError, match="holds a llama; expected one of roberta"):
        loaded(language_model)
    with pytest.raises(InputError, match=r"absent is not a loadable Transformers model"):
        loaded(language_model / "absent")


def test_the_toy_answers_are_in_many_scripts(tokenizer):
    assert set(answers(tokenizer, 8)["question"]) == set(UNICODE)
