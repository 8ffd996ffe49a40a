"""The tiny tokenizer and models of the tests of decoding; one thread, as in the rules."""

import pytest
import torch

from support.tiny_models import make_model, prompts, tokenizer

__all__ = ["make_model", "prompts", "tokenizer"]


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)
