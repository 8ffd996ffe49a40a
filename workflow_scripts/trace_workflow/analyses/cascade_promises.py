"""From which probability to keep a small model's answer, so that a guarantee holds.

For each task that a small and a large model have answered: the thresholds of
`tracecal.calibration.cascade_guarantee` on TRACE+ of the small model, by the first split's fit,
which is the first in its calibrators' file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import polars as pl

from trace_workflow.analyses.study_files import Pairs, Paths, by_pair
from tracecal.calibration.bets import significance_level
from tracecal.calibration.cascade_guarantee import find_cascade_guarantee
from tracecal.calibration.fits import Method
from tracecal.calibration.predictions import calibrate_all, probabilities, read_answers
from tracecal.calibration.rated_answers import split_paired_answers
from tracecal.io.files import read_parquet

CASCADE_PROMISES = {
    **dict.fromkeys(("small", "large", "task", "promise"), pl.String),
    **dict.fromkeys(("promised", "confidence", "threshold"), pl.Float64),
    **dict.fromkeys(("n", "groups", "largest_group"), pl.Int64),
    **dict.fromkeys(("escalated", "accuracy", "small_accuracy", "large_accuracy"), pl.Float64),
    "reason": pl.String,
}


def analysis(
    labels: Paths,
    scores: Paths,
    features: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    *,
    inputs: Sequence[str],
    method: Method,
    small: str,
    large: str,
    promises: Sequence[tuple[str, float]],
    confidence: float,
    largest: int | None,
) -> pl.DataFrame:
    """Columns of CASCADE_PROMISES, a row per guarantee and task that both models have answered.

    `inputs` are TRACE+'s columns.
    """
    files = by_pair(
        pairs, labels=labels, scores=scores, features=features, splits=splits, task=questions
    )
    rows = []
    for model, task in files:
        if model != small or (large, task) not in files:
            continue
        rated = _rated(files[small, task], inputs, method)
        parts = split_paired_answers(_both(rated, files[large, task]["labels"]))
        named = {"small": small, "large": large, "task": task, "confidence": confidence}
        level = significance_level(confidence)
        for promise in promises:
            rows.append(named | asdict(find_cascade_guarantee(*parts, *promise, level, largest)))
    return pl.DataFrame(rows, schema=CASCADE_PROMISES)


def _both(small: pl.DataFrame, large: str) -> pl.DataFrame:
    """The answers of `_rated`, with `large`: whether the other model's is correct."""
    own = read_parquet(large, ["example_id", "correct"]).select("example_id", large="correct")
    return small.join(own, on="example_id", validate="1:1")


def _rated(own: Mapping[str, str], inputs: Sequence[str], method: Method) -> pl.DataFrame:
    """A model's answers to a task in the first split: `example_id`, `rank`, `part`, `small`,
    whether it is correct, and `probability`, null where TRACE+ is undefined.
    """
    answers = read_answers(own["labels"], own["task"], own["scores"], own["features"])
    splits = read_parquet(own["splits"], ["example_id", "split", "rank", "part"])
    first = splits.filter(pl.col("split") == splits["split"].min())
    _, found = calibrate_all(answers, first, {"trace_plus": inputs}, method)
    fits = found["trace_plus"]["splits"].values()
    (probability,) = probabilities(answers.select(inputs), fits)
    rows = answers.select(
        "example_id", small="correct", probability=pl.Series(probability).fill_nan(None)
    )
    return rows.join(first.drop("split"), on="example_id", validate="1:1")
