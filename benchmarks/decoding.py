"""Decoding with capture, beside plain `generate` without any, and beside other ways to capture."""

import copy
from collections.abc import Iterator
from functools import partial

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen2Config

from benchmarks.timing import Row, paired
from trace_workflow.models.decoding import decode
from tracecal.capture.context import padded_context
from tracecal.capture.packed_linear import pack
from tracecal.capture.stop_strings import StopStrings

PROMPT = 24
NEW = 16
# (vocabulary, width, layers, rows): a real vocabulary, and the size of the embedded models
SIZES = ((151_936, 256, 4, 32), (151_936, 256, 4, 1), (1_500, 96, 2, 32))
# Of the embedded size: an answer ends at each token with a probability of about a twelfth.
ENDING, LONGEST, ANSWERS = 125, 40, 256


def model_of(vocabulary: int, width: int, layers: int) -> PreTrainedModel:
    """Random weights; logits spread enough for greedy answers that do not repeat one token."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 32,
        initializer_range=0.3,
        eos_token_id=None,
        bos_token_id=None,
        pad_token_id=0,
    )
    return AutoModelForCausalLM.from_config(config).eval()


def rows() -> Iterator[Row]:
    torch.set_num_threads(1)
    for vocabulary, width, layers, count in SIZES:
        yield from _of_equal_lengths(model_of(vocabulary, width, layers), vocabulary, count)
    model = model_of(1_500, 96, 2)
    ends = list(range(1, ENDING + 1))
    model.generation_config.eos_token_id = ends
    lengths = torch.randint(8, 40, (ANSWERS,), generator=torch.Generator().manual_seed(1))
    prompts = [tokens(int(length), 1_500, length) for length in lengths]
    # As the workflow hands them over: the longest first.
    ordered = sorted(prompts, key=len, reverse=True)
    fast = pack(copy.deepcopy(model))

    def ours(size: int) -> object:
        return decode(fast, ordered, ends, StopStrings(None, ()), LONGEST, slots=size)

    def in_turn(size: int) -> None:
        for place in range(0, ANSWERS, size):
            _generate(model, prompts[place : place + size], LONGEST)

    for size in (1, 8, 32, 256):
        yield paired(
            f"answers of 1 to {LONGEST} tokens, {size} at once",
            partial(ours, size),
            partial(in_turn, size),
            "plain generate",
            items=ANSWERS,
            unit="answers",
            repeats=3,
        )


def _of_equal_lengths(model: PreTrainedModel, vocabulary: int, count: int) -> Iterator[Row]:
    prompts = [tokens(PROMPT, vocabulary, row) for row in range(count)]
    fast = pack(copy.deepcopy(model))
    for against, alternative in (
        ("plain generate", _generate),
        ("generate, output_logits", _recipe),
    ):
        yield paired(
            f"{count} x {NEW} tokens of {vocabulary:,}",
            lambda: decode(fast, prompts, [], StopStrings(None, ()), NEW),
            partial(alternative, model, prompts, NEW),
            against,
            floor=lambda: _passes(fast, prompts),
            items=count * NEW,
            unit="tokens",
            repeats=3,
        )


def tokens(length: int, vocabulary: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(int(seed))
    return torch.randint(200, vocabulary, (length,), generator=generator).tolist()


def _generate(model: PreTrainedModel, prompts: list[list[int]], most: int, **wanted: object):
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    return model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=most, **wanted)


def _recipe(model: PreTrainedModel, prompts: list[list[int]], most: int) -> torch.Tensor:
    """Every step's logits kept, then their entropies."""
    kept = _generate(model, prompts, most, return_dict_in_generate=True, output_logits=True).logits
    log_probs = torch.stack(kept).log_softmax(-1)
    return torch.special.entr(log_probs.exp()).sum(-1)


@torch.inference_mode()
def _passes(model: PreTrainedModel, prompts: list[list[int]]) -> None:
    """The forward passes alone."""
    context, ids = padded_context(model, prompts)
    context.read(ids)
    for _ in range(NEW - 1):
        context.read(ids[:, :1])
