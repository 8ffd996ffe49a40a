"""Small frames that the tests of supervised estimators share."""

import numpy as np
import polars as pl

from trace_workflow.models.training import TrainingSettings

FITTING = TrainingSettings(
    learning_rate=1e-2,
    weight_decay=0.01,
    batch_size=16,
    epochs=40,
    patience=4,
    held_out=0.2,
    seed=7,
)


def task(training=4, evaluation=3, prefix="a", **changes):
    """A task's frame; `changes` map an example id to columns that are replaced."""
    rows = []
    for role, count in (("training", training), ("evaluation", evaluation)):
        for index in range(count):
            name = f"{prefix}-{role[0]}{index}"
            row = {"example_id": name, "group_id": name, "role": role}
            row |= {"question": f"What is {name}?", "context": None}
            rows.append(row | changes.get(name.replace("-", "_"), {}))
    return pl.DataFrame(rows, schema_overrides={"context": pl.String})


def labels(frame, correct=lambda index: index % 2 == 0):
    ids = frame["example_id"]
    return pl.DataFrame(
        {"example_id": ids, "correct": [correct(index) for index in range(len(ids))]}
    )


def states(count=200, width=6, seed=0, margin=0.3):
    """Hidden states that a plane through the origin separates, with their labels and groups."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(3 * count, width))
    side = hidden @ np.arange(1, width + 1)
    kept = np.flatnonzero(np.abs(side) > margin)[:count]
    return pl.DataFrame(
        {
            "task": ["toy"] * count,
            "example_id": [f"{index:04}" for index in range(count)],
            "group_id": [f"{index // 2:04}" for index in range(count)],
            "correct": (side[kept] > 0).tolist(),
            "layer": [2] * count,
            "hidden": (hidden[kept] * 5 + 40).tolist(),
        },
        schema_overrides={"hidden": pl.List(pl.Float32), "layer": pl.Int32},
    )


UNICODE = ["ما عاصمة فرنسا؟", "भारत की राजधानी?", "中国的首都是哪里？", "Wo liegt Köln?"]


def answers(tokenizer, count=60, seed=0, end=1):
    """Traces whose answers are right where the model was sure of every token."""
    rng = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        question = UNICODE[index % len(UNICODE)]
        ids = tokenizer(question)["input_ids"][: 1 + index % 5]
        sure = bool(rng.integers(2))
        surprisal = rng.uniform(0.0, 0.1, len(ids) + 1) if sure else rng.uniform(1, 3, len(ids) + 1)
        rows.append(
            {
                "task": "toy",
                "example_id": f"{index:04}",
                "group_id": f"{index:04}",
                "question": question,
                "correct": sure,
                "token_ids": [*ids, end],
                "tokens": [*(tokenizer.decode(i) for i in ids), "<end>"],
                "surprisal": surprisal.tolist(),
                "finish_reason": "eos",
            }
        )
    return pl.DataFrame(rows, schema_overrides={"surprisal": pl.List(pl.Float32)})
