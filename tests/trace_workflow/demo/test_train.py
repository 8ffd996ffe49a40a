"""Training a model: determinism, what is saved, what AutoModel loads."""

import logging
import random

import polars as pl
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from trace_workflow.demo.training import (
    Settings,
    answer_loss,
    collate,
    encode,
    new_model,
    save_tokenizer,
    schedule,
    step_plan,
    train_model,
)
from tracecal.errors import InputError
from tracecal.io.digests import digest as sha256

SETTINGS = Settings(layers=1, width=32, learning_rate=6e-3, epochs=0.5, tokens_per_step=384, seed=1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def corpus(world):
    return world.corpus.head(400)


@pytest.fixture(scope="module")
def tokenizer_folder(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "tokenizer"
    save_tokenizer(corpus, 600, folder)
    return folder


@pytest.fixture(scope="module")
def folder(corpus, tokenizer_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    train_model(corpus, tokenizer_folder, SETTINGS, folder)
    return folder


def test_one_seed_trains_one_model_and_another_seed_another(
    corpus, tokenizer_folder, folder, tmp_path
):
    train_model(corpus, tokenizer_folder, SETTINGS, tmp_path / "again")
    other = Settings(**{**vars(SETTINGS), "seed": 2})
    train_model(corpus, tokenizer_folder, other, tmp_path / "other")
    weights = [
        sha256(path / "model.safetensors")
        for path in (folder, tmp_path / "again", tmp_path / "other")
    ]
    assert weights[0] == weights[1] != weights[2]


def test_a_model_learns_the_families_that_it_is_given(corpus, tokenizer_folder, tmp_path):
    some = Settings(**{**vars(SETTINGS), "families": ["closed_book", "misconceptions"]})
    train_model(corpus, tokenizer_folder, some, tmp_path / "some")
    asked = corpus.filter(pl.col("family").is_in(some.families))
    assert 0 < asked.height < corpus.height
    train_model(asked, tokenizer_folder, SETTINGS, tmp_path / "asked")
    assert len({(tmp_path / n / "model.safetensors").read_bytes() for n in ("some", "asked")}) == 1


def test_the_folder_is_a_hub_model_with_two_end_tokens(folder, tokenizer_folder):
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.dtype == torch.float32
    assert model.config.max_position_embeddings >= 256
    ends = tokenizer.convert_tokens_to_ids(["<|end|>", "<|endoftext|>"])
    assert model.generation_config.eos_token_id == ends
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id
    assert tokenizer.pad_token_id not in ends
    original = AutoTokenizer.from_pretrained(tokenizer_folder)
    for text in ("Where does Eva wait?", "谁买一本红色的书？", "43-17"):
        chat = [{"role": "user", "content": text}]
        assert tokenizer.apply_chat_template(chat) == original.apply_chat_template(chat)
    assert {path.name for path in folder.parent.iterdir()} == {"tiny", ".tiny.sha256"}


def test_the_loaded_model_generates(folder):
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "Where does Eva wait?"}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")
    ids = model.generate(**prompt, max_new_tokens=5)
    assert prompt["input_ids"].shape[1] < ids.shape[1] <= prompt["input_ids"].shape[1] + 5


def test_the_loss_falls_and_is_logged(corpus, tokenizer_folder, tmp_path, caplog):
    logger = logging.getLogger("tracecal")
    logger.propagate = True
    settings = Settings(**{**vars(SETTINGS), "epochs": 2})
    with caplog.at_level(logging.INFO, "tracecal"):
        train_model(corpus, tokenizer_folder, settings, tmp_path / "model", "tiny")
    last = caplog.messages[-1]
    assert last.startswith("tiny: 100%")
    assert float(last.split("loss ")[1].rstrip("]")) < 4.5


def test_the_loss_is_on_the_answers_alone_and_padding_does_not_change_it(corpus, tokenizer_folder):
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    torch.manual_seed(0)
    model = new_model(tokenizer, SETTINGS)
    short, long = sorted(encode(corpus, tokenizer), key=lambda example: len(example.ids))[::399]
    together = answer_loss(model, *collate([short, long], tokenizer.pad_token_id))
    total = tokens = 0.0
    for example in (short, long):
        answered = len(example.ids) - example.start
        loss = answer_loss(model, *collate([example], tokenizer.pad_token_id))
        total, tokens = total + answered * loss, tokens + answered
        assert example.ids[-1] == tokenizer.eos_token_id
    assert together.item() == pytest.approx((total / tokens).item(), rel=1e-5)


def test_training_sees_what_generation_will(corpus, tokenizer_folder):
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    example = encode(corpus.head(1), tokenizer)[0]
    chat = [{"role": "user", "content": corpus["prompt"][0]}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert example.ids[: example.start] == prompt
    assert tokenizer.decode(example.ids[example.start : -1]) == corpus["answer"][0]


def test_an_epoch_sees_every_row_once_within_the_tokens_of_a_step():
    rng = random.Random(0)
    lengths = [rng.randint(5, 60) for _ in range(500)]
    plan = step_plan(lengths, SETTINGS_OF_TWO_EPOCHS)
    seen = sorted(row for rows in plan for row in rows)
    assert seen == sorted([*range(500), *range(500)])
    assert all(len(rows) * max(lengths[row] for row in rows) <= 384 for rows in plan)


SETTINGS_OF_TWO_EPOCHS = Settings(**{**vars(SETTINGS), "epochs": 2.0})


def test_a_fraction_of_an_epoch_is_that_share_of_its_steps():
    lengths = [32] * 1200
    counts = [
        len(step_plan(lengths, Settings(**{**vars(SETTINGS), "epochs": epochs})))
        for epochs in (0.001, 0.25, 1.0, 1.5)
    ]
    assert counts == [1, 25, 100, 150]


def test_the_learning_rate_rises_and_falls():
    assert schedule(0.025) == pytest.approx(0.5)
    assert schedule(0.05) == pytest.approx(1.0)
    assert 0 < schedule(1.0) < 0.01


def test_a_width_that_heads_cannot_share_is_refused(tokenizer_folder):
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    with pytest.raises(InputError, match="multiple of 16"):
        new_model(tokenizer, Settings(**{**vars(SETTINGS), "width": 40}))


def test_a_failed_training_leaves_the_old_model(folder, tokenizer_folder, corpus):
    before = sha256(folder / "model.safetensors")
    with pytest.raises(InputError):
        train_model(corpus, tokenizer_folder, Settings(**{**vars(SETTINGS), "width": 40}), folder)
    assert sha256(folder / "model.safetensors") == before
