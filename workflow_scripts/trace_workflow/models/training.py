"""Training a supervised estimator: the loop with early stopping, and its held-out groups."""

import copy
import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from tracecal.io.log import LOGGER

Logits = Callable[[list[int]], torch.Tensor]


@dataclass(frozen=True)
class Training:
    """How to train: AdamW on binary cross-entropy, at most `epochs` passes.

    Training stops after `patience` epochs without a lower held-out loss.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    epochs: int
    patience: int
    held_out: float
    seed: int


def fit(
    model: nn.Module,
    logits: Logits,
    correct: Sequence[bool],
    kept_out: Sequence[bool],
    lengths: Sequence[int],
    fitting: Training,
) -> list[float]:
    """Train `model`; it ends in evaluation mode with the weights of its best epoch.

    `logits` returns the model's outputs, float [rows], for a list of row numbers. A step takes rows
    of similar `lengths`. Returns the held-out loss (mean binary cross-entropy in nats) of each
    epoch. Without held-out rows the list is empty, and the model keeps its last weights.
    """
    targets = torch.tensor(correct, dtype=torch.float32, device=next(model.parameters()).device)
    training_rows = [row for row, out in enumerate(kept_out) if not out]
    held_out_rows = [row for row, out in enumerate(kept_out) if out]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=fitting.learning_rate, weight_decay=fitting.weight_decay
    )
    torch.manual_seed(fitting.seed)
    rng = random.Random(fitting.seed)
    losses: list[float] = []
    best = None
    for _ in range(fitting.epochs):
        model.train()
        for rows in batches(training_rows, lengths, fitting.batch_size, rng):
            optimizer.zero_grad()
            loss = functional.binary_cross_entropy_with_logits(logits(rows), targets[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        if not held_out_rows:
            continue
        losses.append(_loss(logits, targets, held_out_rows, fitting.batch_size))
        LOGGER.info("epoch %d: held-out loss %.4f", len(losses), losses[-1])
        since_best = len(losses) - 1 - losses.index(min(losses))
        if since_best == 0:
            best = copy.deepcopy(model.state_dict())
        if since_best >= fitting.patience:
            break
    if best is not None:
        model.load_state_dict(best)
    LOGGER.info("trained on %d rows, %d held out", len(correct), len(held_out_rows))
    return losses


def device() -> str:
    """Where to train and apply models: the GPU, where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def batches(
    rows: Sequence[int], lengths: Sequence[int], size: int, rng: random.Random
) -> list[list[int]]:
    """`rows` in random batches of similar lengths, in random order."""
    ordered = sorted(rows, key=lambda row: lengths[row] + rng.random())
    steps = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    rng.shuffle(steps)
    return steps


@torch.inference_mode()
def _loss(logits: Logits, targets: torch.Tensor, rows: list[int], size: int) -> float:
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    total = sum(
        functional.binary_cross_entropy_with_logits(logits(part), targets[part], reduction="sum")
        for part in parts
    )
    return float(total) / len(rows)


def held_out(groups: Sequence[str], share: float, seed: int) -> list[bool]:
    """Which rows are held out for early stopping: whole groups, about `share` of them.

    Groups are ranked by a hash of their name, so the rows' order does not matter. At least one
    group is held out and one is not; a single group is never held out.
    """
    ranked = sorted(
        set(groups), key=lambda group: hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()
    )
    count = min(max(1, round(share * len(ranked))), len(ranked) - 1)
    chosen = set(ranked[:count])
    return [group in chosen for group in groups]


def constant_rate(correct: Sequence[bool]) -> float | None:
    """Laplace's rule, (correct + 1) / (n + 2), where all training rows have one class."""
    if len(set(correct)) > 1:
        return None
    rate = (sum(correct) + 1) / (len(correct) + 2)
    LOGGER.warning(
        "all %d training answers are %s: the estimator is the constant %.4f",
        len(correct),
        "correct" if correct[0] else "incorrect",
        rate,
    )
    return rate
