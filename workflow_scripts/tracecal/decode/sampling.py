"""Ancestral sampling whose draws depend on nothing but what is sampled."""

import hashlib
from collections.abc import Callable, Sequence

import pyarrow as pa
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tracecal.decode.batching import Prompt, forget, in_waves
from tracecal.decode.greedy import Answer, decode
from tracecal.decode.model import end_tokens
from tracecal.decode.stopping import StopStrings
from tracecal.tasks.asking import Asking

SAMPLES = pa.schema(
    {
        "example_id": pa.string(),
        "sample": pa.int32(),
        "token_ids": pa.list_(pa.int32()),
        "surprisal": pa.list_(pa.float32()),
        "text": pa.string(),
    }
)


def sample_task(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: list[Prompt],
    asking: Asking,
    batch_size: int,
    answers: int,
    temperature: float,
    seed: int,
    keep: Callable[[list[dict[str, object]]], None] = forget,
) -> list[dict[str, object]]:
    """`answers` sampled answers of every prompt; one row of the samples file each.

    All of a prompt's rows go to `keep` together.

    `batch_size` counts answers, as it does in greedy decoding. Surprisals are the model's own,
    whatever the temperature at which the tokens were drawn.
    """
    ends, stops = end_tokens(model, tokenizer), StopStrings(tokenizer, asking.stop)

    def work(batch: list[Prompt], size: int) -> list[dict[str, object]]:
        examples = [prompt["example_id"] for prompt in batch]
        keys = [f"{seed}\x1f{example}\x1f{k}" for example in examples for k in range(answers)]
        drawn = decode(
            model,
            [prompt["prompt_token_ids"] for prompt in batch],
            ends,
            stops,
            asking.max_new_tokens,
            Draws(keys, temperature),
            copies=answers,
            slots=size * answers,
        )
        return [
            _row(example, k, drawn[index * answers + k], stops)
            for index, example in enumerate(examples)
            for k in range(answers)
        ]

    return in_waves(prompts, max(1, batch_size // answers), "prompts", work, keep)


def _row(example: str, sample: int, answer: Answer, stops: StopStrings) -> dict[str, object]:
    return {
        "example_id": example,
        "sample": sample,
        "token_ids": answer.token_ids,
        "surprisal": answer.surprisal,
        "text": stops.decode(answer.token_ids),
    }


class Draws:
    """Chooses each answer's next token by inverting the distribution function at a uniform.

    The uniform is a hash of the answer's key and the step: what is drawn depends neither on the
    batch nor on any generator's state.
    """

    def __init__(self, keys: Sequence[str], temperature: float) -> None:
        self.keys = keys
        self.temperature = temperature

    def __call__(self, logits: torch.Tensor, rows: list[int], lengths: list[int]) -> torch.Tensor:
        uniforms = [
            uniform(f"{self.keys[row]}\x1f{length}")
            for row, length in zip(rows, lengths, strict=True)
        ]
        return inverse_cdf(logits / self.temperature, uniforms)


def uniform(key: str) -> float:
    """A number in [0, 1) that is a hash of `key`, 53 bits of it."""
    digest = hashlib.sha256(key.encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def inverse_cdf(logits: torch.Tensor, uniforms: Sequence[float]) -> torch.Tensor:
    """The tokens [n] at which the distribution functions of `logits` [n, V] pass `uniforms`.

    Summed in float64; a token of probability 0 is never chosen.
    """
    cumulative = logits.double().softmax(-1).cumsum(-1)
    reached = torch.tensor(uniforms, dtype=torch.float64, device=logits.device)[:, None]
    tokens = torch.searchsorted(cumulative, reached * cumulative[:, -1:], right=True).squeeze(-1)
    return tokens.clamp(max=logits.shape[-1] - 1)  # NaN logits pass everything; `decode` says so
