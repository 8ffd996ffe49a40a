"""How many answers a guaranteed recall drops on real answers: docs/background/real_answers.md.

    PYTHONPATH=workflow_scripts python -m benchmarks.recall FILE...

Each FILE is Parquet as changed_words.py reads it, a set for each value of `pair`, or of `model` and
`task`. Of each set with 500 answers and more, 200 are labelled, DRAWS times; their mean log-probability
ranks, and the threshold guarantees that 90 % of the right answers are kept. Prints for each file the mean
share dropped, its range over sets, and in how many draws fewer right answers were kept.
"""

import sys
from pathlib import Path

import numpy as np
import polars as pl

from tracecal.guarantees.recall import recall_threshold

LABELS, DRAWS, RECALL, LEVEL, FEWEST = 200, 20, 0.9, 0.1, 500


def measure_set(score: np.ndarray, correct: np.ndarray) -> tuple[float, float]:
    """The mean share of the other answers that is dropped, and in how many draws too many right ones."""
    rng, dropped, broken = np.random.default_rng(0), [], []
    for _ in range(DRAWS):
        labelled, others = np.split(rng.permutation(len(score)), [LABELS])
        threshold = recall_threshold(score[labelled], correct[labelled], RECALL, LEVEL)
        is_kept = score[others] >= (-np.inf if threshold is None else threshold)
        dropped.append(1 - is_kept.mean())
        broken.append(is_kept[correct[others]].mean() < RECALL)
    return float(np.mean(dropped)), float(np.mean(broken))


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        answers = pl.read_parquet(path)
        keys = ["pair"] if "pair" in answers.columns else ["model", "task"]
        logprob = pl.col("tokens").list.eval(pl.element().struct.field("logprob")).list.mean()
        sets = answers.with_columns(score=logprob).partition_by(keys, maintain_order=True)
        results = np.array(
            [
                measure_set(rows["score"].to_numpy(), rows["correct"].to_numpy())
                for rows in sets
                if rows.height >= FEWEST
            ]
        )
        dropped, broken = results.T
        print(
            f"{path.name}: {len(results)} sets, {dropped.mean():.3f} dropped "
            f"({dropped.min():.3f} to {dropped.max():.3f}), too many right ones in {broken.mean():.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
