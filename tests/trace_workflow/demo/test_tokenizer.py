"""The tokenizer as AutoTokenizer loads it."""

import pytest
from jinja2 import TemplateError
from transformers import AutoTokenizer

from trace_workflow.demo.training import rendered_prompt, save_tokenizer, train_tokenizer

PROMPTS = [
    "Anna has 26 plums.\nHow many?",
    "¿Dónde espera Eva?",
    "安娜在哪里等待？",
    "हिन्दी ☂",
    "  a ",
]


@pytest.fixture(scope="module")
def trained(world):
    return train_tokenizer([*world.corpus["prompt"], *world.corpus["answer"]], 800)


@pytest.fixture(scope="module")
def loaded(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer") / "tokenizer"
    save_tokenizer(world.corpus, 800, folder)
    return AutoTokenizer.from_pretrained(folder)


def test_ids_and_texts_survive_saving_and_loading(trained, loaded):
    assert len(loaded) == len(trained) == 800
    for text in [*PROMPTS, *(rendered_prompt(trained, prompt) for prompt in PROMPTS)]:
        ids = loaded(text)["input_ids"]
        assert ids == trained(text)["input_ids"]
        assert loaded.decode(ids) == text


def test_digits_are_tokens_of_their_own(loaded):
    assert loaded.convert_ids_to_tokens(loaded("26+17")["input_ids"]) == list("26+17")


def test_the_chat_template_writes_each_special_token_once(loaded):
    chat = [{"role": "user", "content": "Who?"}]
    text = loaded.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert text == "<|user|>Who?<|end|><|assistant|>"
    encoded = loaded.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert loaded(text)["input_ids"] == encoded
    specials = [token for token in encoded if token in loaded.all_special_ids]
    assert loaded.convert_ids_to_tokens(specials) == ["<|user|>", "<|end|>", "<|assistant|>"]


def test_turns_follow_one_another(loaded):
    chat = [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "Eva"},
        {"role": "user", "content": "When?"},
    ]
    assert loaded.apply_chat_template(chat, tokenize=False) == (
        "<|user|>Who?<|end|><|assistant|>Eva<|end|><|user|>When?<|end|>"
    )


def test_a_system_message_is_refused(loaded):
    with pytest.raises(TemplateError, match="not system"):
        loaded.apply_chat_template([{"role": "system", "content": "x"}], tokenize=False)


def test_padding_is_no_end_token_and_on_the_left(loaded):
    assert loaded.pad_token_id not in (
        loaded.eos_token_id,
        loaded.convert_tokens_to_ids("<|endoftext|>"),
    )
    assert loaded.bos_token is None
    assert loaded.padding_side == "left"
    assert loaded.model_max_length == 1024


def test_training_twice_gives_the_same_tokenizer(world, trained, loaded):
    assert loaded.get_vocab() == trained.get_vocab()


def test_answers_have_one_to_about_25_tokens_and_lengths_vary_in_every_family(world, trained):
    lengths: dict[str, set[int]] = {}
    for family, answer in world.corpus.select("family", "answer").iter_rows():
        lengths.setdefault(family, set()).add(len(trained(answer)["input_ids"]))
    for family, found in lengths.items():
        assert len(found) > 2, family
        assert min(found) >= 1
        assert max(found) <= 32  # of a vocabulary half the default's
