"""Made-up answers with traces, scores and probabilities."""

import numpy as np
import polars as pl

from tracecal.estimators.features import WINDOW
from tracecal.estimators.operators import window_start
from tracecal.explorer.explorer_contents import (
    ANSWER,
    HELD_OUT,
    OF_PARENT,
    PEAK,
    PLACE,
    PROBABILITY,
    SCORE,
)

ESTIMATORS = [
    {"id": "seq_logp", "label": "SeqLogP", "family": "likelihood", "role": "baseline"},
    {"id": "mars", "label": "MARS", "family": "semantic", "role": "baseline"},
    {"id": "trace", "label": "TRACE", "family": "trace", "role": "trace"},
    {"id": "trace_plus", "label": "TRACE+", "family": "trace", "role": "trace"},
]
MODELS = {"tiny-a": "Tiny A", "tiny-b": "Tiny B"}
TASKS = {"sums": "Sums", "towns": "Towns"}
WORDS = "the town of Havemol lies by a river that runs north past seven old mills".split()
KINDS = ("number", "entity", None)


def answers(n, estimators=ESTIMATORS, longest=20, seed=5):
    """`n` answers of each model and task, as `read_answers` gives them, some undefined."""
    pairs = [(model, task) for model in MODELS for task in TASKS]
    return pl.concat(
        _of_pair(model, task, n, estimators, longest, np.random.default_rng([seed, at]))
        for at, (model, task) in enumerate(pairs)
    )


def _of_pair(model, task, n, estimators, longest, random):
    lengths = random.integers(1, longest + 1, n)
    correct = random.random(n) < 0.5
    text = [" ".join(random.choice(WORDS, length)) for length in lengths]
    kinds = [None if right else KINDS[at % 3] for at, right in enumerate(correct)]
    probabilities = {PROBABILITY + one["id"]: random.random(n) for one in estimators}
    scores = {SCORE + one["id"]: random.normal(size=n) for one in estimators}
    # A third of the answers calibrates the split, and its probabilities are not the means.
    evaluated = np.arange(n) % 3 > 0
    held_out = {
        HELD_OUT + one["id"]: [
            p if kept else None for p, kept in zip(random.random(n), evaluated, strict=True)
        ]
        for one in estimators
    }
    frame = pl.DataFrame(
        {
            "model": [model] * n,
            "task": [task] * n,
            "example_id": [f"{task}-{at}" for at in range(n)],
            # Two wordings of each question.
            "group_id": [f"{task}-{at // 2}" for at in range(n)],
            "prompt": [f"<|user|>Question {at} of {task}?<|assistant|>" for at in range(n)],
            "tokens": [[f" {word}" for word in words.split()] for words in text],
            "surprisal": [random.exponential(0.4, length).tolist() for length in lengths],
            "entropy": [random.exponential(0.6, length).tolist() for length in lengths],
            "language": ["en" if at % 2 else "de" for at in range(n)],
            "context": [
                f"A passage with reference {at} in it." if at % 3 else None for at in range(n)
            ],
            "question": [f"Question {at} of {task}?" for at in range(n)],
            "references": [[f"reference {at}", f"other {at}"] for at in range(n)],
            "distractors": [[]] * n,
            "prediction": text,
            "correct": correct,
            "error_kind": kinds,
            **probabilities,
            **held_out,
            **scores,
        },
        schema_overrides={
            "surprisal": pl.List(pl.Float32),
            "entropy": pl.List(pl.Float32),
            "distractors": pl.List(pl.String),
            "error_kind": pl.String,
            **dict.fromkeys(held_out, pl.Float64),
        },
    )
    undefined = pl.when(pl.int_range(n) % 7 > 0).then
    return frame.with_columns(
        undefined(pl.col(PROBABILITY + "mars")).alias(PROBABILITY + "mars"),
        pl.lit(None, pl.Float64).alias(SCORE + "trace_plus"),
        window_start(pl.col("entropy"), WINDOW).cast(pl.Int32).alias("peak"),
    )


def in_parts(whole, task="sums", seed=7):
    """The answers with the columns of `PLACE`, with two parts each of a task's, and their parents.

    The parts are neighbours, which share a token in every third answer.
    """
    random = np.random.default_rng(seed)
    place = {name: pl.lit(None, dtype) for name, dtype in PLACE.items()}
    own = whole.with_columns(**place)
    rows = []
    for number, row in enumerate(own.filter(task=task).to_dicts()):
        length = len(row["tokens"])
        if length < 4:
            continue
        begin, middle, end = sorted(random.choice(length + 1, 3, replace=False).tolist())
        shared = int(number % 3 == 0)
        for part, start, stop in (("left", begin, middle), ("right", middle - shared, end)):
            cut = {name: row[name][start:stop] for name in ("tokens", "surprisal", "entropy")}
            told = {"task": "halves", "example_id": f"{row['example_id']}/{part}", "part": part}
            told |= {"parent_task": task, "parent_id": row["example_id"]}
            told |= {"start": start, "end": stop, "prediction": "".join(cut["tokens"]).strip()}
            told |= {"correct": bool(random.random() < 0.5), "error_kind": None}
            rows.append(row | cut | told | {PROBABILITY + "trace_plus": random.random()})
    parts = pl.DataFrame(rows, schema=own.schema).with_columns(peak=PEAK)
    parents = whole.filter(task=task).select(*ANSWER, *OF_PARENT, "peak")
    return pl.concat([own, parts]), parents
