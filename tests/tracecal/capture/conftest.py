"""The tiny tokenizer and models."""

from support.tiny_models import make_model, prompts, tokenizer

__all__ = ["make_model", "prompts", "tokenizer"]
