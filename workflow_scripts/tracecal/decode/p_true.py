"""P(True): how probable a model finds it that its own answer is true (Kadavath et al. 2022).

The question and the answer are shown and judged as (A) true or (B) false, without worked
examples and without other samples. What counts is the next token alone.
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Keep, NotFiniteError, Prompt, forget, in_batches
from tracecal.decode.context import shared_prefix, started
from tracecal.decode.prompt import put
from tracecal.errors import InputError
from tracecal.storage.journal import Row
from tracecal.templates import filled

P_TRUE = pa.schema({"example_id": pa.string(), "p_a": pa.float64(), "p_b": pa.float64()})

# A word's beginning as byte-level (GPT) and SentencePiece tokenizers write a space
SPACES = ("", " ", "Ġ", "▁")


def judging_prompts(
    tokenizer: PreTrainedTokenizerBase,
    answered: pl.DataFrame,
    template: str,
    start: str,
    chat: bool | None,
) -> list[Prompt]:
    """A prompt per row of `answered` that lets the model judge the answer in one token."""
    texts = (
        (row["example_id"], filled(template, row["question"], row["context"], row["answer"]))
        for row in answered.iter_rows(named=True)
    )
    turns = ((example, [{"role": "user", "content": text}]) for example, text in texts)
    return put(tokenizer, turns, 1, chat, start)


def option_tokens(tokenizer: PreTrainedTokenizerBase, letter: str) -> list[int]:
    """Every token that writes `letter` alone, with or without a space before it.

    Tokens that write more ("A)") are not counted. Raises `InputError` where there is none.
    """
    vocabulary = tokenizer.get_vocab()
    found = sorted({vocabulary[s + letter] for s in SPACES if s + letter in vocabulary})
    if not found:
        raise InputError(
            f"the vocabulary of {tokenizer.name_or_path} has no token {letter!r}, which P(True) "
            "needs; leave the estimator 'p_true' out."
        )
    return found


def judge_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: list[Prompt],
    batch_size: int,
    keep: Keep = forget,
) -> list[Row]:
    """`p_a` and `p_b` of every prompt: one forward pass per batch; a row each, also to `keep`.

    Each is the sum over the tokens that write the option. Raises `InputError` where the model
    yields NaN or infinite logits.
    """
    options = [option_tokens(tokenizer, letter) for letter in "AB"]

    def work(batch: list[Prompt]) -> list[Row]:
        probabilities = next_probabilities(model, [one["prompt_token_ids"] for one in batch])
        p_a, p_b = (probabilities[:, tokens].sum(-1).tolist() for tokens in options)
        ids = (prompt["example_id"] for prompt in batch)
        return [
            {"example_id": example, "p_a": a, "p_b": b}
            for example, a, b in zip(ids, p_a, p_b, strict=True)
        ]

    return in_batches(prompts, batch_size, "answers", work, keep)


@torch.inference_mode()
def next_probabilities(model: PreTrainedModel, prompts: Sequence[list[int]]) -> torch.Tensor:
    """The raw distribution of the token after each prompt, float64 [batch, vocabulary]."""
    context, ids = started(model, prompts, shared_prefix(model, prompts))
    probabilities = context.read(ids).double().softmax(-1)
    if not (finite := probabilities.isfinite().all(-1)).all():
        raise NotFiniteError(finite.tolist().index(False), "judging its answer")
    return probabilities
