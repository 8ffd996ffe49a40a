"""Fixtures: a tiny tokenizer, tiny models, prompts."""

from collections.abc import Callable

import pytest
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from support.tiny import TEXT, initialise_model, train_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_tokenizer()


@pytest.fixture(scope="session")
def make_model(tokenizer: PreTrainedTokenizerFast) -> Callable[..., PreTrainedModel]:
    """Make a float32 model of an architecture."""

    def make(architecture: str = "llama", seed: int = 0) -> PreTrainedModel:
        return initialise_model(len(tokenizer), architecture, seed)

    return make


@pytest.fixture(scope="session")
def prompts(tokenizer: PreTrainedTokenizerFast) -> list[list[int]]:
    """Prompts of very different lengths."""
    texts = [
        *TEXT,
        "a",
        "2",
        "The capital of France is Paris and the capital of China is 北京. So?",
    ]
    return [tokenizer(text)["input_ids"] for text in texts]
