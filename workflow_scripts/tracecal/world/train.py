"""Training a small Llama from scratch on the corpus of the world of public facts."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from tracecal.errors import InputError
from tracecal.storage.checksum import require_sum
from tracecal.world.tokenizer import END_OF_TEXT, MAXIMUM_LENGTH, rendered_prompt
from tracecal.world.training_loop import INITIAL_SPREAD, length_batches, pad_right, save, train

HEAD_WIDTH = 16


@dataclass(frozen=True)
class Settings:
    """Size and training of one model; `epochs` may be a fraction, `families` null means all."""

    layers: int
    width: int
    learning_rate: float
    epochs: float
    tokens_per_step: int
    seed: int
    families: Sequence[str] | None = None


@dataclass(frozen=True)
class Encoded:
    """One example: token ids, and where the answer starts among them."""

    ids: list[int]
    start: int


def train_model(
    corpus: pl.DataFrame,
    tokenizer_folder: str | Path,
    settings: Settings,
    folder: str | Path,
    name: str = "training",
) -> None:
    """Train on `corpus` and write `folder` as AutoModelForCausalLM loads it.

    The same corpus, settings and number of threads give the same weights on the same machine.
    """
    require_sum(tokenizer_folder)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    if settings.families:
        corpus = corpus.filter(pl.col("family").is_in(settings.families))
    examples = encode(corpus, tokenizer)
    torch.manual_seed(settings.seed)
    model = new_model(tokenizer, settings)
    plan = step_plan([len(example.ids) for example in examples], settings)

    def loss(rows: list[int]) -> torch.Tensor:
        return answer_loss(model, *collate([examples[r] for r in rows], tokenizer.pad_token_id))

    train(model, plan, loss, settings.learning_rate, name)
    save(model, tokenizer, folder, corpus["prompt"].head(200).to_list())


def encode(corpus: pl.DataFrame, tokenizer: PreTrainedTokenizerFast) -> list[Encoded]:
    """Prompt and answer encoded separately, as in generation, then joined with an end token."""
    rendered = [rendered_prompt(tokenizer, prompt) for prompt in corpus["prompt"]]
    prompts = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    answers = tokenizer(corpus["answer"].to_list(), add_special_tokens=False)["input_ids"]
    return [
        Encoded([*prompt, *answer, tokenizer.eos_token_id], len(prompt))
        for prompt, answer in zip(prompts, answers, strict=True)
    ]


def new_model(tokenizer: PreTrainedTokenizerFast, settings: Settings) -> LlamaForCausalLM:
    """A Llama with random weights; its generation config ends on the turn's or the text's end."""
    if settings.width % HEAD_WIDTH:
        raise InputError(
            f"A model's width is {settings.width}; it must be a multiple of {HEAD_WIDTH}."
        )
    ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(END_OF_TEXT)]
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        intermediate_size=3 * settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.width // HEAD_WIDTH,
        max_position_embeddings=MAXIMUM_LENGTH,
        tie_word_embeddings=False,
        initializer_range=INITIAL_SPREAD,
        bos_token_id=None,
        eos_token_id=ends,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=ends, pad_token_id=tokenizer.pad_token_id, do_sample=False
    )
    return model


def step_plan(lengths: Sequence[int], settings: Settings) -> list[list[int]]:
    """The rows of each step: of similar length, with at most `tokens_per_step` tokens in all."""
    rng = random.Random(settings.seed)
    plan: list[list[int]] = []
    remaining = settings.epochs
    while remaining > 0:
        epoch = length_batches(lengths, settings.tokens_per_step, rng)
        plan += epoch[: max(1, round(min(1.0, remaining) * len(epoch)))]
        remaining -= 1
    return plan


def collate(examples: list[Encoded], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids padded on the right, and which of them are answer: both [rows, longest]."""
    ids = pad_right([example.ids for example in examples], pad)
    answer = torch.zeros(ids.shape, dtype=torch.bool)
    for row, example in enumerate(examples):
        answer[row, example.start : len(example.ids)] = True
    return ids, answer


def answer_loss(model: LlamaForCausalLM, ids: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy (nats) of the answers' tokens; logits are computed for these alone.

    Padding is on the right, where causal attention does not see it: no mask is needed.
    """
    hidden = model.model(ids[:, :-1], use_cache=False).last_hidden_state
    positions = answer[:, 1:]
    return functional.cross_entropy(model.lm_head(hidden[positions]), ids[:, 1:][positions])
