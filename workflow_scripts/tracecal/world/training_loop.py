"""The training loop of all the world's models."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from tracecal.jobs.progress import progress_bar
from tracecal.storage.files import atomic_folder
from tracecal.world.tokenizer import require_same_tokenizer

WARM_UP = 0.05
# About 1 / sqrt(width). With the usual 0.02, models this narrow learn several times more slowly
INITIAL_SPREAD = 0.08
Batch = TypeVar("Batch")


def train(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    loss: Callable[[Batch], torch.Tensor],
    learning_rate: float,
    name: str,
) -> None:
    """Train `model` in place, one step of AdamW on the `loss` of each batch.

    The same batches, weights and number of threads give the same weights on the same machine.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.05, fused=True
    )
    average = 0.0
    model.train()
    with progress_bar(len(batches), name, "step") as bar:
        for step, batch in enumerate(batches):
            value = loss(batch)
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * schedule((step + 1) / len(batches))
            optimizer.step()
            optimizer.zero_grad()
            average += (value.item() - average) / min(step + 1, 50)
            bar.set_postfix_str(f"loss {average:.3f}", refresh=False)
            bar.update()


def schedule(progress: float) -> float:
    """The learning rate's factor: linear warm-up over WARM_UP of the training, linear decay."""
    return min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP) + 1e-3)


def length_batches(lengths: Sequence[int], tokens: int, rng: random.Random) -> list[list[int]]:
    """Every row once, in batches of similar length and at most `tokens` tokens with padding."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row] + rng.random())
    steps: list[list[int]] = [[]]
    for row in order:
        if steps[-1] and (len(steps[-1]) + 1) * lengths[row] > tokens:
            steps.append([])
        steps[-1].append(row)
    rng.shuffle(steps)
    return steps


def pad_right(rows: Sequence[Sequence[int]], filler: int) -> torch.Tensor:
    """The rows padded on the right with `filler`, int64 [rows, longest]."""
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=filler)


def save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    folder: str | Path,
    messages: Sequence[str],
) -> None:
    """Write `folder` atomically, once its tokenizer is seen to encode `messages` alike."""
    with atomic_folder(folder) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        require_same_tokenizer(tokenizer, part, messages)
