"""The training of a supervised estimator: its labelled rows, its held-out groups and the loop.

1. `all_rows` reads the answers of both roles, and `labelled` keeps the training rows with labels.
2. `held_out` picks groups for early stopping, and `fit` trains a model.
"""

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import torch
from torch import nn
from torch.nn import functional

from tracecal.errors import InputError
from tracecal.io.files import read_parquet
from tracecal.io.log import LOGGER
from tracecal.io.randomness import rank

TASK_COLUMNS = ["example_id", "group_id", "role", "question", "context"]
# What makes two rows the same example. An id is unique within its task only. A group other than the
# example's id was declared, and may span tasks, as translations do.
SAME_EXAMPLE = {
    "id": ["task", "example_id"],
    "group": ["task", "group_id"],
    "declared group": ["declared"],
    "question and context": ["content"],
}


def training_rows(tasks: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """`task`, `example_id`, `group_id` and `correct` of every row of role 'training'.

    `tasks` and `labels` hold the rows of all of one model's tasks, with their `task`. Labels of
    other roles are dropped here. Raises `InputError` where an evaluated example of any task is
    among the rows, where a row has no label, and where there are no rows.
    """
    rows = _marked(tasks)
    training = rows.filter(role="training")
    refuse_leaks(training, rows.filter(role="evaluation"))
    if training.is_empty():
        names = ", ".join(tasks["task"].unique().sort())
        raise InputError(
            f"no task of {names} has rows of role 'training'; give one 'training_split' and "
            "'training_limit', or leave supervised estimators out."
        )
    labelled = training.join(labels, on=["task", "example_id"], how="left", validate="1:1")
    if (unlabelled := labelled.filter(pl.col("correct").is_null())).height:
        raise InputError(
            f"training example {unlabelled['example_id'][0]!r} of {unlabelled['task'][0]} has no "
            "label: labels and tasks do not match. Recreate them with snakemake --force."
        )
    return labelled.select("task", "example_id", "group_id", "correct").sort("task", "example_id")


def refuse_leaks(training: pl.DataFrame, evaluation: pl.DataFrame) -> None:
    """Raise `InputError` where a training row is an evaluated example or a variant of one."""
    for what, columns in SAME_EXAMPLE.items():
        evaluated = evaluation.select(columns).drop_nulls()
        if (leaked := training.join(evaluated, on=columns, how="semi")).height:
            raise InputError(
                f"{leaked.height} training row(s), such as {leaked['example_id'][0]!r} of "
                f"{leaked['task'][0]}, share {what} with an evaluated example: a supervised "
                "estimator would be measured on what it was trained on. Remove them from the "
                "task's training split."
            )


def _marked(rows: pl.DataFrame) -> pl.DataFrame:
    """Task rows with what identifies an example: its `content` and `declared` group."""
    text = pl.concat_str("question", pl.lit("\n"), pl.col("context").fill_null(""))
    return rows.select(
        *("task", "example_id", "group_id", "role"),
        content=text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars(),
        declared=pl.when(pl.col("group_id") != pl.col("example_id")).then("group_id"),
    )


Read = Callable[[str], pl.DataFrame]


def all_rows(tasks: Sequence[str], artefacts: Sequence[str], reader: Read) -> pl.DataFrame:
    """`task`, `question` and the columns that `reader` returns, for every answer of both roles.

    `tasks` and `artefacts` hold one file per task, named `<task>.<kind>`.
    """
    columns = ["example_id", "question"]
    questions = _read_all(tasks, lambda path: read_parquet(path, columns))
    rows = _read_all(artefacts, reader)
    joined = questions.join(rows, on=["task", "example_id"], how="inner", validate="1:1")
    return joined.sort("task", "example_id")


def labelled(rows: pl.DataFrame, tasks: Sequence[str], labels: Sequence[str]) -> pl.DataFrame:
    """The rows of role 'training', with `group_id` and `correct`.

    Raises `InputError` where one of them is missing, or as `training_rows` does.
    """
    training = training_rows(
        _read_all(tasks, lambda path: read_parquet(path, TASK_COLUMNS)),
        _read_all(labels, lambda path: read_parquet(path, ["example_id", "correct"])),
    )
    joined = training.join(rows, on=["task", "example_id"], how="inner", validate="1:1")
    if joined.height < training.height:
        raise InputError(
            f"{training.height - joined.height} of {training.height} training examples of "
            f"{', '.join(tasks)} were not answered. Recreate the traces with snakemake --force."
        )
    return joined.sort("task", "example_id")


def _read_all(paths: Sequence[str], reader: Read) -> pl.DataFrame:
    """The rows of all files, with the slug of their `task`."""
    return pl.concat(reader(path).with_columns(task=pl.lit(Path(path).stem)) for path in paths)


Logits = Callable[[list[int]], torch.Tensor]


@dataclass(frozen=True)
class TrainingSettings:
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
    fitting: TrainingSettings,
) -> list[float]:
    """Train `model`; it ends in evaluation mode with the weights of its best epoch.

    `logits` returns the model's outputs, float [rows], for a list of row numbers. A step takes rows
    of similar `lengths`. Returns the held-out loss (mean binary cross-entropy in nats) of each
    epoch. Without held-out rows the list is empty, and the model keeps its last weights.
    """
    targets = torch.tensor(correct, dtype=torch.float32, device=next(model.parameters()).device)
    fitted_rows = [row for row, out in enumerate(kept_out) if not out]
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
        for rows in batches(fitted_rows, lengths, fitting.batch_size, rng):
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
    ranked = sorted(set(groups), key=lambda group: rank(seed, group))
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
