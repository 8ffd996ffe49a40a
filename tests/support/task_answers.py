"""Made-up answers of a task, as `read_answers` gives them, and their splits."""

import numpy as np
import polars as pl

from tracecal.statistics.splits import make_splits

ESTIMATORS = {"seq_logp": ["scores.seq_logp"], "trace_plus": ["features.a", "features.b"]}


def made_up(task, n=80, count=3, share=0.35, seed=0):
    """Answers, and splits at `share`, of a task whose score and features know something."""
    draw = np.random.default_rng([seed, *task.encode()])
    score, other = draw.normal(size=(2, n))
    correct = draw.random(n) < 1 / (1 + np.exp(0.4 - 1.2 * score - other))
    ids = [f"e{index:03}" for index in range(n)]
    answers = pl.DataFrame(
        {
            "example_id": ids,
            "correct": correct,
            "scores.seq_logp": score,
            "features.a": score + 0.3 * draw.normal(size=n),
            "features.b": other,
        }
    )
    alone = answers.select("example_id", group_id="example_id")
    return answers, make_splits(alone, task, seed, count, share)


def shuffled(frame, seed=5):
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def value(metrics, **where):
    """The one value that meets all conditions."""
    return metrics.filter(**where)["value"].item()
