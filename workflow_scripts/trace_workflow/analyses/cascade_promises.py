"""The thresholds from which a cascade keeps a small model's answers, with what each guarantees.

For each task that a small and a large model have answered, `find_cascade_guarantee` tests
thresholds on TRACE+ of the small model, by the fit of the first split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import polars as pl

from trace_workflow.analyses.labelled_answers import read_labelled_answers
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.calibration.bets import significance_level
from tracecal.calibration.cascade_guarantee import find_cascade_guarantee
from tracecal.calibration.fits import Method, probabilities
from tracecal.calibration.predictions import calibrate_all
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
    files: StudyFiles,
    *,
    inputs: Sequence[str],
    method: Method,
    small: str,
    large: str,
    guarantees: Sequence[tuple[str, float]],
    confidence: float,
    largest_group: int | None,
) -> pl.DataFrame:
    """A row per guarantee and task that both models have answered (`CASCADE_PROMISES`).

    `inputs` are TRACE+'s columns.
    """
    kinds = ("labels", "scores", "features", "splits", "questions")
    by_pair = {(model, task): paths for model, task, paths in files.by_pair(*kinds)}
    level = significance_level(confidence)
    rows = []
    for model, task in by_pair:
        if model != small or (large, task) not in by_pair:
            continue
        rated = _rate_answers(by_pair[small, task], inputs, method)
        parts = split_paired_answers(_add_large(rated, by_pair[large, task]["labels"]))
        keys = {"small": small, "large": large, "task": task, "confidence": confidence}
        for bound, target in guarantees:
            guarantee = find_cascade_guarantee(*parts, bound, target, level, largest_group)
            rows.append(keys | asdict(guarantee))
    return pl.DataFrame(rows, schema=CASCADE_PROMISES)


def _add_large(rated: pl.DataFrame, labels: str) -> pl.DataFrame:
    """Add `large`: whether the large model's answer is correct, by its `labels`."""
    large = read_parquet(labels, ["example_id", "correct"]).select("example_id", large="correct")
    return rated.join(large, on="example_id", validate="1:1")


def _rate_answers(files: Mapping[str, str], inputs: Sequence[str], method: Method) -> pl.DataFrame:
    """A model's answers to a task in the first split.

    Columns `example_id`, `rank`, `part`, `small` (whether it is correct) and `probability` (missing
    where TRACE+ is undefined).
    """
    answers = read_labelled_answers(
        files["labels"], files["questions"], files["scores"], files["features"]
    )
    splits = read_parquet(files["splits"], ["example_id", "split", "rank", "part"])
    first = splits.filter(pl.col("split") == splits["split"].min())
    _, calibrators = calibrate_all(answers, first, {"trace_plus": inputs}, method)
    fits = calibrators["trace_plus"].splits.values()
    (probability,) = probabilities(answers.select(inputs), fits)
    rated = answers.select(
        "example_id", small="correct", probability=pl.Series(probability).fill_nan(None)
    )
    return rated.join(first.drop("split"), on="example_id", validate="1:1")
