"""Made-up answers of one model with traces that tell something of their correctness."""

import numpy as np
import polars as pl

from trace_workflow.analyses.operator_variants import permuted_scores, varied_scores
from tracecal.statistics.splits import make_splits

MODEL = "m"
SPLITS = 4


def traces(task, n=40, seed=0):
    """Traces with `correct`; a wrong answer is likelier where entropy is high at first."""
    random = np.random.default_rng([seed, *task.encode()])
    rows = []
    for i in range(n):
        length = int(random.integers(1, 12))
        entropy = random.exponential(1, length)
        surprisal = random.exponential(0.5, length)
        right = bool(random.random() < np.exp(-0.6 * entropy[0]))
        rows.append((f"{task}{i:03d}", surprisal, entropy, right))
    schema = {
        "example_id": pl.String,
        "surprisal": pl.List(pl.Float32),
        "entropy": pl.List(pl.Float32),
        "correct": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def study(tasks=("t", "u"), draws=3):
    """The operators, answers and splits of each task, as the analyses read them."""
    frames = {"operators": [], "answers": [], "splits": []}
    for task in tasks:
        answers = traces(task)
        alone = answers.select("example_id", group_id="example_id")
        found = {
            "operators": pl.concat(
                [varied_scores(answers), permuted_scores(answers, task, 0, draws)]
            ),
            "answers": answers.select("example_id", "correct"),
            "splits": make_splits(alone, task, 0, SPLITS, 0.35),
        }
        for name, rows in found.items():
            frames[name].append(rows.with_columns(model=pl.lit(MODEL), task=pl.lit(task)))
    return {name: pl.concat(rows) for name, rows in frames.items()}
