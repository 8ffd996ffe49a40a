"""The quality of confidence: proper scores, calibration error, ranking; and a model's accuracy."""

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

METRICS = {
    "model": pl.String,
    "task": pl.String,
    "estimator": pl.String,
    "split": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
}
# Answers processed together, in sets of equal size, so that they stay in the processor's cache.
BLOCK = 2**16

NAMES = ("aurc", "auroc", "auroc_calibrated", "brier", "ece", "ece_debiased", "nll", "prr")


def brier(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean squared error of the probability (Brier 1950)."""
    return ((probability - correct) ** 2).mean(axis=1)


def weighted_brier(probability: np.ndarray, correct: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`brier` of one set of answers, [n], under each row of `weights` [B, n]."""
    return ratio(weights @ (probability - correct) ** 2, weights.sum(axis=1))


def nll(probability: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Mean negative log-likelihood in nats; probabilities are clipped one epsilon off 0 and 1."""
    epsilon = np.finfo(probability.dtype).eps
    likelihood = np.where(correct, probability, 1 - probability)
    return -np.log(likelihood.clip(epsilon, 1 - epsilon)).mean(axis=1)


def ece(probability: np.ndarray, correct: np.ndarray, bins: int) -> np.ndarray:
    """Expected calibration error over `bins` equal-width bins (Naeini et al. 2015)."""
    sets, n = probability.shape
    index = bin_index(probability, bins) + bins * np.arange(sets)[:, None]
    gaps = np.bincount(
        index.ravel(), weights=(correct - probability).ravel(), minlength=sets * bins
    )
    return np.abs(gaps.reshape(sets, bins)).sum(axis=1) / n


def ece_debiased(probability: np.ndarray, correct: np.ndarray, bins: int) -> np.ndarray:
    """`ece` less what exact probabilities would have on average on the same answers.

    Few answers in a bin are off by chance, which makes ECE too large; this is 0 on average where
    the probabilities are exact, and too small by at most that chance where they are not. A bin of m
    answers counts as binomial with its mean probability p, whose mean absolute deviation is
    2 k (1 - p) P(Bin(m, p) = k) with k = floor(m p) + 1 (de Moivre; Diaconis and Zabell 1991).
    """
    from scipy.special import betaln, xlog1py, xlogy  # most users of this module need none of it

    sets, n = probability.shape
    index = (bin_index(probability, bins) + bins * np.arange(sets)[:, None]).ravel()
    size = np.bincount(index, minlength=sets * bins)
    total = np.bincount(index, weights=probability.ravel(), minlength=sets * bins)
    p = np.clip(total / np.maximum(size, 1), 0.0, 1.0)
    k = np.minimum(np.floor(size * p) + 1, size)
    others = size - k
    choices = -np.log(size + 1) - betaln(others + 1, k + 1)
    deviation = 2 * k * (1 - p) * np.exp(choices + xlogy(k, p) + xlog1py(others, -p))
    return ece(probability, correct, bins) - deviation.reshape(sets, bins).sum(axis=1) / n


def bin_index(probability: np.ndarray, bins: int) -> np.ndarray:
    """The equal-width bin of each probability: k holds [k/bins, (k+1)/bins), the last also 1."""
    return np.minimum((probability * bins).astype(int), bins - 1)


def wrong_by_rank(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Probability that the k-th most confident answer is wrong, k = 1..n, over the orders of ties:
    0 or 1, or the share of wrong answers among those with equal scores. Input of ranking metrics.
    """
    order = np.argsort(-score, axis=1)
    wrong = np.take_along_axis(~correct, order, axis=1).astype(float)
    ranked = np.take_along_axis(score, order, axis=1)
    first = np.ones(score.shape, dtype=bool)  # of the answers with equal scores
    np.not_equal(ranked[:, 1:], ranked[:, :-1], out=first[:, 1:])
    if not first.all():
        starts = np.flatnonzero(first)
        tied = np.diff(starts, append=first.size)
        wrong = np.repeat(np.add.reduceat(wrong.ravel(), starts) / tied, tied).reshape(wrong.shape)
    return wrong


def auroc(wrong: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of `wrong_by_rank`, correct = positive; NaN with one class.

    Share of (correct, incorrect) pairs ranked correctly; ties count one half.
    """
    return ratio(*_pairs(1 - wrong, wrong))


def weighted_auroc(score: np.ndarray, correct: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`auroc` of one set of answers, [n], under each row of `weights` [B, n]."""
    return ratio(*_weighted_pairs(score, correct, weights))


def auroc_within(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """`weighted_auroc` over the pairs of answers of one `fold`, [n].

    The probabilities of several fits have no common scale: where a fit's base rate is high that of
    the answers that it left out is low, which ranks near-equal scores the wrong way round.
    """
    own = [fold == one for one in np.unique(fold)]
    pairs = [_weighted_pairs(score[one], correct[one], weights[:, one]) for one in own]
    ahead, every = np.sum(pairs, axis=0)
    return ratio(ahead, every)


def _weighted_pairs(
    score: np.ndarray, correct: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`_pairs` of one set of answers, [n], under each row of `weights` [B, n]."""
    right, wrong = np.flatnonzero(correct), np.flatnonzero(~correct)
    right = right[np.argsort(-score[right])]
    ranked, others = -score[right], -score[wrong]
    # How many right answers, by weight, are among the first k, k = 0..n.
    first = np.zeros((len(weights), len(right) + 1))
    np.cumsum(weights[:, right], axis=1, out=first[:, 1:])
    ends = (np.searchsorted(ranked, others, side) for side in ("left", "right"))
    above = sum(first[:, end] for end in ends) / 2  # a tie counts one half
    wrong = weights[:, wrong]
    return (wrong * above).sum(axis=1), first[:, -1] * wrong.sum(axis=1)


def _pairs(right: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In how many (right, wrong) pairs the right answer stands first, and how many there are, [B].

    Both are [B, k], how many there are at each of k places; pairs at one place count one half.
    """
    above = np.cumsum(right, axis=1) - right / 2
    return (wrong * above).sum(axis=1), right.sum(axis=1) * wrong.sum(axis=1)


def risks(wrong: np.ndarray) -> np.ndarray:
    """The expected error rate among the k most confident answers [B, n], k = 1..n."""
    return np.cumsum(wrong, axis=1) / np.arange(1, wrong.shape[1] + 1)


def aurc(wrong: np.ndarray) -> np.ndarray:
    """Area under the risk-coverage curve of `wrong_by_rank`: the mean over k of the error rate
    among the k most confident answers (Geifman et al. 2019), ties in expectation.
    """
    return risks(wrong).mean(axis=1)


def prr(wrong: np.ndarray) -> np.ndarray:
    """Prediction-rejection ratio of `wrong_by_rank`, correctness = quality; NaN with one class.

    The area between the accuracies among the k most confident answers and those of a random
    order, as a share of the area that a perfect order (all correct answers first) reaches: 1 is
    perfect, 0 random (Malinin and Gales 2021; lm-polygraph's `PredictionRejectionArea`, its
    default of rejecting down to one answer, normalised; Vashurin et al. 2025). The random order and
    ties count in expectation, where lm-polygraph draws orders.
    """
    n = wrong.shape[1]
    missed = _missed(wrong)
    rank = np.arange(1, n + 1)
    # A perfect order has wrong answers only after all correct ones.
    perfect = (np.maximum(rank - (n - missed)[:, None], 0) / rank).mean(axis=1)
    return ratio(missed / n - aurc(wrong), missed / n - perfect)


def _missed(wrong: np.ndarray) -> np.ndarray:
    """The number of wrong answers in each set."""
    return np.rint(wrong.sum(axis=1))


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """The quotient; NaN where the denominator is 0."""
    undefined = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


def single_auroc(score: np.ndarray, correct: np.ndarray) -> float | None:
    """`auroc` of one set of answers, [n]; None where a class is missing."""
    if correct.all() or not correct.any():
        return None
    return float(auroc(wrong_by_rank(score[None], correct[None]))[0])


def expected_errors(score: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """The number of errors among the k most confident answers [n], k = 1..n.

    Answers with equal scores count in expectation over their orders.
    """
    return np.cumsum(wrong_by_rank(score[None], correct[None])[0])


def all_metrics(
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    *,
    model: str,
    task: str,
    estimators: Sequence[str],
    splits: Sequence[int],
    ece_bins: int,
) -> pl.DataFrame:
    """One row per estimator, split and metric, over the split's evaluation part.

    `answers` holds `example_id` and `correct`. The ranking metrics 'auroc', 'aurc' and 'prr' use
    the estimator's column of `scores` where there is one, else the probability, which
    'auroc_calibrated' ranks for every estimator. `n` counts the answers with a prediction; where
    there are none, every value is null. Sorted by estimator, split and metric.
    """
    names, numbers = sorted(estimators), sorted(splits)
    answers = answers.join(scores, on="example_id", how="left", validate="1:1").sort("example_id")
    sets, example, probability = _indexed(predictions, answers["example_id"], names, numbers)
    correct = answers["correct"].to_numpy()[example]
    ranking = probability.copy()
    for place, name in enumerate(names):
        if name in scores.columns:
            rows_of_estimator = slice(
                *np.searchsorted(sets, [place * len(numbers), (place + 1) * len(numbers)])
            )
            ranking[rows_of_estimator] = (
                answers[name].cast(pl.Float64).to_numpy()[example[rows_of_estimator]]
            )
    counts = np.bincount(sets, minlength=len(names) * len(numbers))
    starts = np.cumsum(counts) - counts
    values = np.full((len(counts), len(NAMES)), np.nan)
    for n in np.unique(counts[counts > 0]):
        same = np.flatnonzero(counts == n)
        for block in np.array_split(same, math.ceil(len(same) * n / BLOCK)):
            rows = starts[block, None] + np.arange(n)
            metrics = _metrics_of(probability[rows], ranking[rows], correct[rows], ece_bins)
            values[block] = np.column_stack([metrics[name] for name in NAMES])
    keys = list(product([model], [task], names, numbers, NAMES))
    schema = {name: METRICS[name] for name in ("model", "task", "estimator", "split", "metric")}
    return pl.DataFrame(keys, schema=schema, orient="row").with_columns(
        value=pl.Series(values.ravel(), nan_to_null=True),
        n=pl.Series(np.repeat(counts, len(NAMES))).cast(pl.Int64),
    )


def metrics_by(
    column: str,
    parts: Iterable[str],
    divided: pl.DataFrame,
    predictions: pl.DataFrame,
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    **settings: Any,
) -> pl.DataFrame:
    """`all_metrics` with its `settings`, for each of `parts`, values of `column` in `divided`.

    `divided` has `example_id` and `column`, as the result has. Only the evaluation is divided; the
    probabilities are the same.
    """
    frames = [pl.DataFrame(schema={column: pl.String, **METRICS})]
    for part in parts:
        own = predictions.join(divided.filter(pl.col(column) == part), on="example_id", how="semi")
        metrics = all_metrics(own, answers, scores, **settings)
        frames.append(metrics.select(pl.lit(part).alias(column), *METRICS))
    return pl.concat(frames)


def metrics_by_language(
    predictions: pl.DataFrame, answers: pl.DataFrame, scores: pl.DataFrame, **settings: Any
) -> pl.DataFrame:
    """`metrics_by` for each `language` of `answers`; no row where there is only one language."""
    languages = answers["language"].unique().sort()
    parts = languages if len(languages) > 1 else []
    labelled = answers.drop("language")
    return metrics_by("language", parts, answers, predictions, labelled, scores, **settings)


def _indexed(
    predictions: pl.DataFrame, ids: pl.Series, names: Sequence[str], numbers: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of its set (splits within estimators), the index of its example in `ids` and the
    probability of each prediction for estimators `names` and splits `numbers`; sorted.
    """
    wanted = pl.col("estimator").is_in(names) & pl.col("split").is_in(numbers)
    coded = predictions.filter(wanted).select(
        pl.col("estimator").cast(pl.Enum(names)).to_physical(),
        pl.col("split").cast(pl.Int64),
        pl.col("example_id").cast(pl.Enum(ids)).to_physical().alias("example"),
        "probability",
    )
    estimator, split, example, probability = (column.to_numpy() for column in coded)
    sets = estimator.astype(np.int64) * len(numbers) + np.searchsorted(numbers, split)
    place = sets * len(ids) + example
    order = np.argsort(place) if (np.diff(place) < 0).any() else slice(None)
    return sets[order], example[order], probability[order]


def _metrics_of(
    probability: np.ndarray, ranking: np.ndarray, correct: np.ndarray, ece_bins: int
) -> dict[str, np.ndarray]:
    """Each metric [B] of the sets in the rows of [B, n] arrays."""
    by_rank = wrong_by_rank(ranking, correct)
    return {
        "aurc": aurc(by_rank),
        "auroc": auroc(by_rank),
        "auroc_calibrated": auroc(wrong_by_rank(probability, correct)),
        "brier": brier(probability, correct),
        "ece": ece(probability, correct, ece_bins),
        "ece_debiased": ece_debiased(probability, correct, ece_bins),
        "nll": nll(probability, correct),
        "prr": prr(by_rank),
    }


# A model's accuracy on a task.


ACCURACY = {
    "model": pl.String,
    "task": pl.String,
    "n": pl.Int64,
    "correct": pl.Int64,
    "accuracy": pl.Float64,
    "unanswered": pl.Int64,
    "without_entropy": pl.Int64,
}


def accuracy_row(
    labelled: pl.DataFrame, questions: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """One row of counts over evaluation answers with a Boolean column `correct`.

    `questions` are the task's rows: those that answers from a file leave out, and parts that
    answers lack, have the role 'unanswered'; of these `counts_as_wrong` are among the `n`. `lacks`
    says why an answer has no entropies.
    """
    n, correct = labelled.height, int(labelled["correct"].sum())
    without = questions.filter(role="unanswered")
    unanswered = without.height
    n += int(without["counts_as_wrong"].sum()) if "counts_as_wrong" in questions.columns else 0
    lacking = questions.filter(role="evaluation")["lacks"].count() if "lacks" in questions else 0
    row = (model, task, n, correct, correct / n, unanswered, lacking)
    return pl.DataFrame([row], schema=ACCURACY, orient="row")


def accuracy_by_language(
    labelled: pl.DataFrame, languages: pl.DataFrame, model: str, task: str
) -> pl.DataFrame:
    """`accuracy_row` for each `language`; no row where there is only one language.

    `languages` are the task's rows with `example_id`, `role` and `language`.
    """
    with_language = labelled.join(
        languages.select("example_id", "language"), on="example_id", validate="1:1"
    )
    parts = with_language.partition_by("language", as_dict=True)
    rows = [
        accuracy_row(
            parts[language,], languages.filter(language=language), model, task
        ).with_columns(language=pl.lit(language))
        for (language,) in sorted(parts)
        if len(parts) > 1
    ]
    return pl.concat([pl.DataFrame(schema=ACCURACY | {"language": pl.String}), *rows])
