"""The embedded sentence encoder: determinism, what is saved, and that it has learned."""

import pytest
import torch

from trace_workflow.demo.encoder import EncoderSettings
from trace_workflow.demo.similarity import BATCH, contrast, shuffled_batches, train_similarity
from trace_workflow.demo.training import save_tokenizer
from trace_workflow.models.text_encoders import is_cross_encoder, load_encoder
from trace_workflow.models.token_sar_weights import similarities
from tracecal.io.digests import digest as sha256

SETTINGS = EncoderSettings(layers=1, width=32, learning_rate=2e-3, examples=1600, seed=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def tokenizer_folder(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "tokenizer"
    save_tokenizer(world.corpus, 600, folder)
    return folder


@pytest.fixture(scope="module")
def folder(world, tokenizer_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders") / "similarity"
    train_similarity(world.corpus, tokenizer_folder, SETTINGS, folder)
    return folder


def test_one_seed_trains_one_encoder_and_another_seed_another(
    world, tokenizer_folder, folder, tmp_path
):
    other = EncoderSettings(**{**vars(SETTINGS), "seed": 2})
    train_similarity(world.corpus, tokenizer_folder, SETTINGS, tmp_path / "again")
    train_similarity(world.corpus, tokenizer_folder, other, tmp_path / "other")
    weights = [
        sha256(path / "model.safetensors")
        for path in (folder, tmp_path / "again", tmp_path / "other")
    ]
    assert weights[0] == weights[1] != weights[2]


def test_it_loads_as_an_embedding_model_with_a_finite_window(folder):
    encoder = load_encoder(folder)
    assert not is_cross_encoder(encoder)
    assert encoder.window == 512
    assert encoder.tokenizer.padding_side == "right"


def test_questions_lie_closer_to_their_answers_than_to_others(world, folder):
    told = world.corpus.filter(family="extractive").tail(64)
    questions, answers = told["prompt"].to_list(), told["answer"].to_list()
    pairs = [(question, answer) for question in questions for answer in answers]
    alike = similarities(load_encoder(folder), pairs, 64)
    own = sum(alike[pair] for pair in zip(questions, answers, strict=True)) / 64
    everyone = sum(alike[pair] for pair in pairs) / len(pairs)
    assert own > everyone + 0.2


def test_batches_are_full_and_hold_each_example_once():
    rows = [(str(index), "x") for index in range(3 * BATCH + 5)]
    batches = shuffled_batches(rows, 1)
    assert [len(batch) for batch in batches] == [BATCH] * 3
    assert len({row for batch in batches for row in batch}) == 3 * BATCH
    assert len(shuffled_batches(rows[:5], 1)) == 1


def test_an_answer_given_twice_is_not_held_against_itself():
    vectors = torch.eye(3)[[0, 0, 1]]
    lenient = contrast(vectors, vectors, ["same", "same", "other"])
    strict = contrast(vectors, vectors, ["one", "two", "other"])
    assert lenient < 1e-6 < strict
