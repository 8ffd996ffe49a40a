"""The recommended estimator: the default, unless another one is measurably better.

`choose_default` takes the default by the kind of the log and the number of labels, `recommend`
compares the others with it, and `describe_labels` says where labels cannot tell estimators apart.
`measure_quality` says how well each predicts, with intervals.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy

from tracecal.calibrator.catalogue import LABELS, LOG_RIDGE, MEAN_OF_THREE, SURPRISAL_RIDGE
from tracecal.calibrator.training_set import MIN_CHOOSING, TrainingFits, TrainingSet
from tracecal.estimators.features import ENTROPY_INPUTS
from tracecal.estimators.registry import LOG_RIDGE_ALSO
from tracecal.fits.fit_settings import FitSettings
from tracecal.fits.fits import EstimatorFits
from tracecal.statistics.percentages import percent
from tracecal.statistics.probability_metrics import bin_index, weighted_brier
from tracecal.statistics.ranking_metrics import auroc_within
from tracecal.statistics.resampling import draw_counts, interval

# Fewest labelled answers with entropies for the mean of three as the default.
MIN_LABELS_OF_MEAN = 50
# Fewest labels for a comparison with the default.
MIN_COMPARED = MIN_CHOOSING
# With fewer answers of one class, none is compared.
MIN_CLASS = 5
# A fit is a constant with fewer different probabilities, or with this share of answers at one.
MIN_VALUES, CONSTANT_SHARE = 5, 0.9
DIGITS = 6  # decimal places in comparisons of probabilities
# Intervals come from fewer resamples where they would draw more answers than this.
MAX_DRAWN, MIN_RESAMPLES = 4_000_000, 200
QUALITY = {
    "estimator": pl.String,
    "n": pl.Int64,
    **{
        f"{metric}{end}": pl.Float64
        for metric in ("brier", "auroc", "gap")
        for end in ("", "_low", "_high")
    },
    "ece": pl.Float64,
    "distinct": pl.Int64,
}


class Recommendation(NamedTuple):
    """The `estimator`, its `gain` over the default and the `ranking`, as a file holds them."""

    ranking: tuple[str, ...]
    estimator: str
    gain: tuple[float, float, float] | None = None


def choose_default(training: TrainingSet) -> str:
    """Return the default estimator; the verdicts have no influence on it."""
    names = [LOG_RIDGE_ALSO.id]
    if training.lists_alternatives:
        names += [MEAN_OF_THREE] if training.n_entropies >= MIN_LABELS_OF_MEAN else []
        names += [LOG_RIDGE]
    names += [SURPRISAL_RIDGE, *training.estimators]
    return next(name for name in names if name in training.estimators)


def recommend(training: TrainingSet, fits: TrainingFits, settings: FitSettings) -> Recommendation:
    """Recommend the default, unless another's Brier score is lower by more than its interval.

    The scores are of cross-fits among the labels of side 'fit', so that the choice sees none of the
    answers that thresholds are tested on and the report counts; with few of these the default is
    taken. The interval holds for all estimators at once (Bonferroni). Custom and uncalibrated
    estimators are not considered, nor are those whose probabilities hardly vary.
    """
    default = choose_default(training)
    if fits.side_predictions.is_empty():
        return Recommendation((), default)
    considered = {
        name: columns
        for name, columns in training.estimators.items()
        if name in LABELS and training.own_fits.get(name) != "identity"
    }
    labels = training.frame.select("example_id", "correct", "rank")
    predicted = fits.side_predictions.filter(pl.col("estimator").is_in([*considered]))
    squared = (pl.col("probability") - pl.col("correct")) ** 2
    errors = predicted.join(labels, on="example_id").with_columns(squared=squared)
    rows = training.frame.filter(side="fit")
    varied = {
        name for name, columns in considered.items() if varies(rows, columns, fits.estimators[name])
    }
    ranking = tuple(sorted(_by_brier_score(errors), key=lambda name: name not in varied))
    best = ranking[0] if ranking else default
    paired = errors.filter(estimator=default).join(
        errors.filter(estimator=best), on="example_id", suffix="_best"
    )
    if (
        best == default
        or best not in varied
        or paired.height < MIN_COMPARED
        or count_smaller_class(training.frame) < MIN_CLASS
    ):
        return Recommendation(ranking, default)
    level = 1 - (1 - settings.bootstrap.level) / max(len(varied - {default}), 1)
    difference = (paired["squared"] - paired["squared_best"]).to_numpy()
    gain = mean_interval(difference, paired["rank"].to_numpy(), level)
    if not gain[1] > 0:
        return Recommendation(ranking, default)
    return Recommendation(ranking, best, gain)


def describe_labels(training: TrainingSet, fits: Mapping[str, EstimatorFits]) -> str | None:
    """Say why no estimator is recommended; None if one is."""
    n, n_right = training.frame.height, int(training.frame["correct"].sum())
    if n_right in (0, n):
        return (
            f"All {n} labelled answers are {'right' if n_right else 'wrong'}, so nothing tells "
            "estimators apart: none is recommended, and the probability of each answer is "
            f"{percent((n_right + 1) / (n + 2), 1)}."
        )
    if (count := count_smaller_class(training.frame)) < MIN_CLASS:
        verb = "is" if count == 1 else "are"
        return (
            f"Only {count} of {n} labelled answers {verb} "
            f"{'wrong' if n_right > n / 2 else 'right'}, too few to compare estimators: none is "
            "recommended, and probabilities are the default fit's."
        )
    default = choose_default(training)
    if not varies(training.frame, training.estimators[default], fits[default]):
        return (
            "The traces hardly tell these answers apart, as most get one probability: no estimator "
            "is recommended, and probabilities are the default fit's."
        )
    return None


def describe_log(training: TrainingSet) -> list[str]:
    """Describe the labelled answers without a trace or entropies, a sentence each."""
    n, n_traces, n_entropies = training.frame.height, training.n_traces, training.n_entropies
    default = choose_default(training)
    sentences = []
    if n_traces < n:
        sentences.append(
            f"{n - n_traces:,} of {n:,} labelled answers have no log-probabilities, and so enter "
            "no fit and no test: 'tracecal reading' says why."
        )
    if 0 < n_entropies < n_traces:
        needed = not ENTROPY_INPUTS.isdisjoint(training.estimators[default])
        why = "which gives these no probability" if needed else "which needs none"
        sentences.append(
            f"{n_traces - n_entropies:,} of {n_traces:,} answers list no alternatives and have no "
            f"entropies: the default fit is {LABELS[default]}, {why}."
        )
    return sentences


def count_smaller_class(labelled: pl.DataFrame) -> int:
    """Count the right or the wrong answers, whichever are fewer."""
    n_right = int(labelled["correct"].sum())
    return min(n_right, labelled.height - n_right)


def _by_brier_score(errors: pl.DataFrame) -> list[str]:
    """Rank the estimators that predict the most answers by their mean of `squared`."""
    scores = errors.group_by("estimator").agg(brier=pl.mean("squared"), n=pl.len())
    complete = scores.filter(pl.col("n") == pl.col("n").max())
    return complete.sort(pl.col("brier").round(12), "estimator")["estimator"].to_list()


def varies(rows: pl.DataFrame, columns: Sequence[str], fits: EstimatorFits) -> bool:
    """Return whether the fit on all labels gives the `rows` at least five probabilities.

    A probability that nine rows in ten share counts as a constant fit.
    """
    x = rows.select(columns).drop_nulls().cast(pl.Float64).to_numpy()
    proba = fits.final.predict(x).round(DIGITS)
    counts = np.unique(proba, return_counts=True)[1]
    return len(counts) >= MIN_VALUES and counts.max() < CONSTANT_SHARE * len(x)


def mean_interval(
    values: np.ndarray, groups: np.ndarray, level: float
) -> tuple[float, float, float]:
    """Compute the mean of `values` [n] and its interval, by the variance between `groups` [n].

    Student's t with one degree of freedom fewer than groups; a single group has no interval.
    """
    mean = float(values.mean())
    _, member_of = np.unique(groups, return_inverse=True)
    totals = np.bincount(member_of, weights=values - mean)
    n_groups = len(totals)
    if n_groups < 2:
        return mean, -np.inf, np.inf
    error = np.sqrt(n_groups / (n_groups - 1) * (totals**2).sum()) / len(values)
    reach = float(scipy.special.stdtrit(n_groups - 1, (1 + level) / 2) * error)
    return mean, mean - reach, mean + reach


def measure_quality(
    training: TrainingSet, predictions: pl.DataFrame, settings: FitSettings
) -> pl.DataFrame:
    """Measure each estimator by `predictions` (`TrainingSet.cross_fitted`); columns of `QUALITY`.

    The smallest Brier score comes first. Only answers that no estimator is chosen by are counted
    (`TrainingSet.compared`). Intervals resample groups. `gap` is the
    mean probability minus the share correct; `distinct` counts the different probabilities. AUROC
    ranks the score itself where a fit is of one, and else the probability, among answers of one
    fold.
    """
    labels = training.frame.join(training.compared, on="example_id", how="semi")
    max_resamples = max(MIN_RESAMPLES, MAX_DRAWN // max(1, labels.height))
    resamples = min(settings.bootstrap.resamples, max_resamples)
    resampled = draw_counts(labels["rank"].to_list(), settings.seed, resamples)
    counts = np.vstack([np.ones(labels.height), resampled])
    labels = labels.with_row_index("place")
    rows = []
    for (name,), predicted in predictions.group_by("estimator"):
        first, *more = training.estimators[name]
        ranks_score = first.startswith("scores.") and not more
        columns = labels.select("example_id", "place", "correct", score=first)
        answers = predicted.join(columns, on="example_id", validate="1:1").sort("place")
        ranking = {"fold": pl.lit(0)} if ranks_score else {"score": "probability"}
        rows.append(_row(name, answers.with_columns(**ranking), counts, settings))
    return pl.DataFrame(rows, schema=QUALITY).sort(pl.col("brier").round(12), "estimator")


def _row(
    name: str, answers: pl.DataFrame, counts: np.ndarray, settings: FitSettings
) -> dict[str, Any]:
    proba, correct = answers["probability"].to_numpy(), answers["correct"].to_numpy()
    counts, fold = counts[:, answers["place"].to_numpy()], answers["fold"].to_numpy()
    bins = settings.calibration.ece_bins
    index = bin_index(proba, bins)
    # For each bin the weighted sum of correct minus probability, [resamples, bins].
    gaps = counts @ (np.eye(bins)[index] * (correct - proba)[:, None])
    totals = counts.sum(axis=1)
    values = {
        "brier": weighted_brier(proba, correct, counts),
        "auroc": auroc_within(answers["score"].to_numpy(), correct, counts, fold),
        "gap": -gaps.sum(axis=1) / np.maximum(totals, 1),
    }
    # Without an interval: that of resamples does not contain it, as each adds to the error.
    ece = float(np.abs(gaps[0]).sum() / max(totals[0], 1))
    row: dict[str, Any] = {"estimator": name, "n": answers.height, "ece": ece}
    for metric, (observed, *resampled) in values.items():
        low, high, _ = interval(resampled, settings.bootstrap.level)
        if metric == "auroc" and low is not None and 0 < observed < 1:
            low, high = _normal_interval(observed, resampled, settings.bootstrap.level)
        value = None if math.isnan(observed) else float(observed)
        row |= {metric: value, f"{metric}_low": low, f"{metric}_high": high}
    return row | {"distinct": answers["probability"].n_unique()}


def _normal_interval(
    observed: float, resampled: Sequence[float], level: float
) -> tuple[float, float]:
    """Normal on the scale of log odds, by the spread of the resamples.

    With few wrong answers the percentiles of an AUROC are too narrow near 1.
    """
    spread = np.nanstd(resampled) / (observed * (1 - observed))
    reach = scipy.special.ndtri((1 + level) / 2) * spread
    ends = scipy.special.expit(scipy.special.logit(observed) + np.array([-reach, reach]))
    return float(ends[0]), float(ends[1])
