"""How well estimators rank parts of answers: by the score of the part, and of the whole answer."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses import part_metrics
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.fits.predictions import PREDICTIONS, mean_probabilities
from tracecal.io.files import read_parquet
from tracecal.statistics.resampling import Resampling

REVIEWED = (5, 10, 20, 30)  # per cent of the parts
METRICS = (
    "auroc",
    "auroc_same_name",
    "auroc_same_answer",
    "lowest_wrong",
    *(f"found_{percent}" for percent in REVIEWED),
)
PART, WHOLE = "part", "whole"
KEYS = ("model", "task", "estimator", "scored", "metric")
PART_SCORES = dict.fromkeys(KEYS, pl.String) | part_metrics.BOUNDS | {"n": pl.Int64}


def analysis(
    files: StudyFiles, scored: Sequence[str], learned: Sequence[str], bootstrap: Sequence[float]
) -> pl.DataFrame:
    """A row per pair, estimator, kind of score (PART or WHOLE) and metric; columns PART_SCORES.

    `scored` estimators rank by a raw score. `learned` ones rank by their mean probability over the
    splits that evaluate a part; fitted on labels of parts, they have no score of the whole answer.
    `n` counts the parts with a score.
    """
    rows = []
    kinds = ("labels", "questions", "scores", "predictions", "whole_scores")
    for model, task, paths in files.by_pair(*kinds):
        parts = part_metrics.read_parts(paths["questions"], paths["labels"])
        weights = part_metrics.sample_and_resamples(
            parts["group_id"].to_list(), Resampling(*bootstrap)
        )
        for estimator, kind, scores in _read_scores(parts, paths, scored, learned):
            for metric, *bounds in measure_ranking(parts, scores, weights, bootstrap[2]):
                rows.append((model, task, estimator, kind, metric, *bounds))
    return pl.DataFrame(rows, schema=PART_SCORES, orient="row")


def _read_scores(
    parts: pl.DataFrame, paths: dict[str, str], scored: Sequence[str], learned: Sequence[str]
) -> Iterator[tuple[str, str, pl.Series]]:
    """Estimators, kinds of score and the parts' scores [parts], None where there is none."""
    part_scores = read_parquet(paths["scores"], needed=["example_id"])
    whole_scores = read_parquet(paths["whole_scores"], needed=["example_id"])
    scores = parts.join(part_scores, on="example_id", how="left", maintain_order="left")
    inherited = parts.select("parent_id").join(
        whole_scores, left_on="parent_id", right_on="example_id", how="left", maintain_order="left"
    )
    for estimator in scored:
        yield estimator, PART, scores[estimator]
        if estimator in inherited.columns:
            yield estimator, WHOLE, inherited[estimator]
    predictions = read_parquet(paths["predictions"], list(PREDICTIONS))
    means = mean_probabilities(predictions, "estimator", "example_id")
    for estimator in learned:
        mean = means.filter(estimator=estimator).select("example_id", "probability")
        joined = parts.join(mean, on="example_id", how="left", maintain_order="left")
        yield estimator, PART, joined["probability"]


def measure_ranking(
    parts: pl.DataFrame, scores: pl.Series, weights: np.ndarray, level: float
) -> Iterator[tuple]:
    """METRICS of the parts' scores [parts]: the metric's name, the columns BOUNDS, and `n`.

    `parts` has `parent_id`, `part` and `correct`; `weights` [1 + resamples, parts] are the counts
    of each part, equal within an answer.
    """
    defined = scores.is_not_null().to_numpy()
    rows = parts.filter(defined)
    ranking = (
        scores.drop_nulls().to_numpy().astype(float),
        rows["correct"].to_numpy(),
        weights[:, defined],
    )
    names, answers = (
        np.unique(rows[column].to_numpy(), return_inverse=True)[1]
        for column in ("part", "parent_id")
    )
    values = {
        "auroc": part_metrics.auroc(*ranking),
        "auroc_same_name": part_metrics.auroc_within_strata(*ranking, names),
        "auroc_same_answer": part_metrics.auroc_within_answers(*ranking, answers),
        "lowest_wrong": part_metrics.lowest_wrong(*ranking, answers),
        **{f"found_{k}": part_metrics.found_in_review(*ranking, k / 100) for k in REVIEWED},
    }
    for metric in METRICS:
        yield metric, *part_metrics.bounds_of(values[metric], level), rows.height
