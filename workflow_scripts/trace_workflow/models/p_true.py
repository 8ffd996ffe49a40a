"""P(True): the probability that a model gives its own answer of being true (Kadavath et al. 2022).

The prompt shows question and answer, without worked examples or other samples, and asks for (A)
true or (B) false. Only the next token counts.
"""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trace_workflow.config.prompting import filled
from trace_workflow.models.prompts import tokenised_prompts
from tracecal.capture.batches import Keep, NotFiniteError, Prompt, forget, in_batches
from tracecal.capture.context import padded_context, shared_prefix
from tracecal.errors import InputError
from tracecal.io.journal import Row

P_TRUE = pa.schema({"example_id": pa.string(), "p_a": pa.float64(), "p_b": pa.float64()})

# The space before a word as byte-level (GPT) and SentencePiece tokenizers write it
SPACES = ("", " ", "Ġ", "▁")


def judging_prompts(
    tokenizer: PreTrainedTokenizerBase,
    answers: pl.DataFrame,
    template: str,
    start: str,
    chat: bool | None,
) -> list[Prompt]:
    """A prompt per row of `answers` that lets the model judge the answer in one token."""
    conversations = []
    for row in answers.iter_rows(named=True):
        text = filled(template, row["question"], row["context"], row["answer"])
        conversations.append((row["example_id"], [{"role": "user", "content": text}]))
    return tokenised_prompts(tokenizer, conversations, 1, chat, start)


def option_tokens(tokenizer: PreTrainedTokenizerBase, letter: str) -> list[int]:
    """Ids of the tokens that write `letter` alone, with or without a space before it.

    Tokens that write more, such as "A)", do not count. Raises `InputError` where there is none.
    """
    vocabulary = tokenizer.get_vocab()
    ids = sorted({vocabulary[s + letter] for s in SPACES if s + letter in vocabulary})
    if not ids:
        raise InputError(
            f"the vocabulary of {tokenizer.name_or_path} has no token {letter!r}, which P(True) "
            "needs; leave the estimator 'p_true' out."
        )
    return ids


def judge_answers(
    model: PreTrainedModel,
    prompts: list[Prompt],
    tokenizer: PreTrainedTokenizerBase,
    batch_size: int,
    keep: Keep = forget,
) -> list[Row]:
    """One row per prompt with the probabilities `p_a` and `p_b`; finished rows go to `keep`.

    Each is the sum over the tokens that write the option. Raises `InputError` where the model
    yields NaN or infinite logits.
    """
    options = [option_tokens(tokenizer, letter) for letter in "AB"]

    def work(batch: list[Prompt]) -> list[Row]:
        probabilities = next_probabilities(model, [prompt["prompt_token_ids"] for prompt in batch])
        p_a, p_b = (probabilities[:, tokens].sum(-1).tolist() for tokens in options)
        return [
            {"example_id": prompt["example_id"], "p_a": a, "p_b": b}
            for prompt, a, b in zip(batch, p_a, p_b, strict=True)
        ]

    return in_batches(prompts, batch_size, "answers", work, keep)


@torch.inference_mode()
def next_probabilities(model: PreTrainedModel, prompts: Sequence[list[int]]) -> torch.Tensor:
    """The raw distribution of the token after each prompt, float64 [batch, vocabulary]."""
    context, ids = padded_context(model, prompts, shared_prefix(model, prompts))
    probabilities = context.read(ids).double().softmax(-1)
    if not (finite := probabilities.isfinite().all(-1)).all():
        raise NotFiniteError(finite.tolist().index(False), "judging its answer")
    return probabilities
