"""How well estimators rank parts of answers: by the part's own score, and by the whole answer's."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses.study_files import Pairs, Paths
from tracecal.calibration.predictions import mean_probabilities
from tracecal.calibration.ranking import ratio, weighted_auroc
from tracecal.calibration.resampling import Bootstrap, draw_counts, interval
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet

BOUNDS = {
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "resamples": pl.Int64,
}


def labelled_parts(questions: str, labels: str) -> pl.DataFrame:
    """`example_id`, `parent_id`, `group_id`, `part` and `correct` of the parts that a model's
    answers have, from the files of a pair; sorted by `example_id`.
    """
    correct = read_parquet(labels, ["example_id", "correct"])
    return evaluated(correct, questions, ["parent_id", "group_id", "part"])


def bounded(values: np.ndarray, level: float) -> tuple:
    """The columns BOUNDS of a metric's values [1 + resamples], the sample's first."""
    low, high, defined = interval(values[1:], level)
    return None if np.isnan(values[0]) else float(values[0]), low, high, level, defined


def with_sample(groups: Sequence[str], bootstrap: Bootstrap) -> np.ndarray:
    """How often each row counts, [1 + resamples, n]: once in the sample, then as drawn."""
    drawn = draw_counts(groups, bootstrap.seed, bootstrap.resamples)
    return np.vstack([np.ones((1, len(groups))), drawn])


REVIEWED = (5, 10, 20, 30)  # per cent of the parts
METRICS = (
    "auroc",
    "auroc_same_name",
    "auroc_same_answer",
    "lowest_wrong",
    *(f"found_{share}" for share in REVIEWED),
    *(f"wrong_{share}" for share in REVIEWED),
)
PART, WHOLE = "part", "whole"
PART_SCORES = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "scored": pl.String,
    "metric": pl.String,
    **BOUNDS,
    "n": pl.Int64,
}


def analysis(
    labels: Paths,
    questions: Paths,
    scores: Paths,
    predictions: Paths,
    whole_scores: Paths,
    pairs: Pairs,
    scored: Sequence[str],
    learned: Sequence[str],
    bootstrap: Sequence[float],
) -> pl.DataFrame:
    """One row per pair, estimator, kind of score (PART or WHOLE) and metric; columns PART_SCORES.

    `scored` are estimators with a raw score, by which they rank; those `learned` rank by their mean
    probability over the splits that evaluate a part, and have no score of the whole answer here, as
    they are fitted on labels of parts. `n` are the parts with a score.
    """
    rows = []
    for (model, task), *paths in zip(
        pairs, labels, questions, scores, predictions, whole_scores, strict=True
    ):
        label, question, own, predicted, whole = paths
        parts = labelled_parts(question, label)
        counts = with_sample(parts["group_id"].to_list(), Bootstrap(*bootstrap))
        for estimator, kind, values in _scores(parts, own, predicted, whole, scored, learned):
            for metric, *bounds in measured(parts, values, counts, bootstrap[2]):
                rows.append((model, task, estimator, kind, metric, *bounds))
    return pl.DataFrame(rows, schema=PART_SCORES, orient="row")


def _scores(
    parts: pl.DataFrame,
    own: str,
    predicted: str,
    whole: str,
    scored: Sequence[str],
    learned: Sequence[str],
) -> Iterator[tuple[str, str, pl.Series]]:
    """Estimators, kinds of score and the parts' scores [parts], null where there is none."""
    raw, of_answers = (
        read_parquet(own, needed=["example_id"]),
        read_parquet(whole, needed=["example_id"]),
    )
    of_parts = parts.join(raw, on="example_id", how="left", maintain_order="left")
    inherited = parts.select("parent_id").join(
        of_answers, left_on="parent_id", right_on="example_id", how="left", maintain_order="left"
    )
    for estimator in scored:
        yield estimator, PART, of_parts[estimator]
        if estimator in inherited.columns:
            yield estimator, WHOLE, inherited[estimator]
    fitted = read_parquet(predicted, ["estimator", "split", "example_id", "probability"])
    means = mean_probabilities(fitted, "estimator", "example_id")
    for estimator in learned:
        mean = means.filter(estimator=estimator).select("example_id", "probability")
        joined = parts.join(mean, on="example_id", how="left", maintain_order="left")
        yield estimator, PART, joined["probability"]


def measured(
    parts: pl.DataFrame, scores: pl.Series, counts: np.ndarray, level: float
) -> Iterator[tuple]:
    """METRICS of the parts' scores [parts]: the metric's name, the columns BOUNDS, and `n`.

    `parts` has `parent_id`, `part` and `correct`; `counts` [1 + resamples, parts] says how often
    each part counts, the same within an answer.
    """
    known = scores.is_not_null().to_numpy()
    rows, weights = parts.filter(known), counts[:, known]
    score, correct = scores.drop_nulls().to_numpy().astype(float), rows["correct"].to_numpy()
    codes = {
        name: np.unique(rows[name].to_numpy(), return_inverse=True)[1]
        for name in ("parent_id", "part")
    }
    reviews = {share: reviewed(score, correct, weights, share / 100) for share in REVIEWED}
    values = {
        "auroc": weighted_auroc(score, correct, weights) if len(score) else _none(weights),
        "auroc_same_name": auroc_within(score, correct, weights, codes["part"]),
        "auroc_same_answer": auroc_in_answers(score, correct, weights, codes["parent_id"]),
        "lowest_wrong": lowest_wrong(score, correct, weights, codes["parent_id"]),
        **{f"found_{share}": found for share, (found, _) in reviews.items()},
        **{f"wrong_{share}": wrong for share, (_, wrong) in reviews.items()},
    }
    for metric in METRICS:
        yield metric, *bounded(values[metric], level), len(score)


def auroc_within(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, strata: np.ndarray
) -> np.ndarray:
    """The share of (right, wrong) pairs of the same stratum that are ranked rightly, [resamples].

    All arrays are [n], `weights` [resamples, n].
    """
    ranked, pairs = np.zeros(len(weights)), np.zeros(len(weights))
    for stratum in np.unique(strata):
        own = strata == stratum
        drawn = weights[:, own]
        number = (drawn * correct[own]).sum(1) * (drawn * ~correct[own]).sum(1)
        area = weighted_auroc(score[own], correct[own], drawn)
        ranked += np.where(number > 0, number * np.nan_to_num(area), 0)
        pairs += number
    return ratio(ranked, pairs)


def auroc_in_answers(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """As `auroc_within`, of the same answer: one that is drawn twice is two answers, whose parts
    are no pairs.
    """
    rows = pl.DataFrame({"answer": answers, "score": score, "correct": correct})
    right, wrong = rows.filter("correct"), rows.filter(~pl.col("correct"))
    above, equal = pl.col("score") > pl.col("score_wrong"), pl.col("score") == pl.col("score_wrong")
    pairs = right.join(wrong, on="answer", suffix="_wrong").group_by("answer")
    sums = pairs.agg(ranked=(above + equal * 0.5).sum(), number=pl.len()).sort("answer")
    drawn = weights[:, np.unique(answers, return_index=True)[1]][:, sums["answer"].to_numpy()]
    return ratio(drawn @ sums["ranked"].to_numpy(), drawn @ sums["number"].to_numpy().astype(float))


def lowest_wrong(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """The share of answers with right and wrong parts whose lowest score is a wrong part's."""
    rows = pl.DataFrame({"answer": answers, "score": score, "correct": correct})
    both = pl.col("correct").any() & ~pl.col("correct").all()
    mixed = rows.filter(both.over("answer"))
    lowest = mixed.filter(pl.col("score") == pl.col("score").min().over("answer"))
    hits = lowest.group_by("answer").agg(hit=(~pl.col("correct")).mean()).sort("answer")
    drawn = weights[:, np.unique(answers, return_index=True)[1]][:, hits["answer"].to_numpy()]
    return ratio(drawn @ hits["hit"].to_numpy(), drawn.sum(1))


def reviewed(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """The wrong parts among the `share` of all with the lowest scores, [resamples]: of all wrong
    parts, and of those that are reviewed.
    """
    if not len(score):
        return _none(weights), _none(weights)
    order = np.argsort(score, kind="stable")
    tied = np.flatnonzero(np.diff(score[order], prepend=np.nan) != 0)
    drawn = weights[:, order]
    size = np.add.reduceat(drawn, tied, axis=1)
    wrong = np.add.reduceat(drawn * ~correct[order], tied, axis=1)
    allowed = share * size.sum(1, keepdims=True)
    taken = np.clip(allowed - (np.cumsum(size, axis=1) - size), 0, size)
    found = (wrong * np.divide(taken, size, out=np.zeros_like(taken), where=size > 0)).sum(1)
    return ratio(found, wrong.sum(1)), ratio(found, taken.sum(1))


def _none(weights: np.ndarray) -> np.ndarray:
    return np.full(len(weights), np.nan)
