"""How well confidence separates errors of a kind from correct answers of similar length.

Paper, appendix E.3. Errors are matched with correct answers many times, as ties of length are
broken at random, and once in each resample of the answers' groups.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from trace_workflow.analyses.averages import mean, spread
from trace_workflow.analyses.study_files import KEYS, StudyFiles
from tracecal.fits.predictions import PREDICTIONS, mean_probabilities
from tracecal.io.randomness import seeded
from tracecal.statistics.resampling import Resampling, draw_counts, interval

LOCALIZED = ("number", "entity", "claim")
N_MATCHINGS = 20
GAIN, GAINER = "gain", "trace_plus"

ERRORS = {
    **dict.fromkeys(("estimator", "slice", "metric"), pl.String),
    **dict.fromkeys(("value", "sd", "low", "high", "n"), pl.Float64),
    "errors": pl.Int64,
    "length_gap": pl.Float64,
    "matchings": pl.Int64,
    "level": pl.Float64,
}
MAX_RATE = 0.10  # the false-positive rate at which the partial area ends
# A function of the false- and true-positive rates along a curve.
CurveMetric = Callable[[np.ndarray, np.ndarray], float]
# The measured parts, with their kinds of errors, of each slice that is matched together.
Slices = Mapping[str, Mapping[str, Sequence[str]]]
# By (estimator, slice, quantity): metrics, 'n' pairs, mean 'length_gap'; None where undefined.
SliceMetrics = dict[tuple[str, str, str], float | None]


def roc_curve(errors: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False- and true-positive rates as the threshold on the confidence rises.

    The arguments are confidences of wrong and of correct answers.

    >>> false_rates, true_rates = roc_curve(np.array([0.1, 0.4]), np.array([0.3, 0.9]))
    >>> false_rates.tolist(), true_rates.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    thresholds = np.unique(np.concatenate([errors, correct]))
    false_rates, true_rates = (
        np.append(0, np.searchsorted(np.sort(group), thresholds, side="right") / len(group))
        for group in (correct, errors)
    )
    return false_rates, true_rates


def area(false_rates: np.ndarray, true_rates: np.ndarray) -> float:
    """Area under the curve."""
    return float(np.trapezoid(true_rates, false_rates))


def partial_area(false_rates: np.ndarray, true_rates: np.ndarray) -> float:
    """Area at false-positive rates below 10 %, standardised so that chance is 0.5 (McClish 1989).

    As scikit-learn's `roc_auc_score(max_fpr=0.1)`, from an existing curve.
    """
    inside = false_rates <= MAX_RATE
    x = np.append(false_rates[inside], MAX_RATE)
    y = np.append(true_rates[inside], np.interp(MAX_RATE, false_rates, true_rates))
    chance = MAX_RATE**2 / 2
    return float(0.5 * (1 + (np.trapezoid(y, x) - chance) / (MAX_RATE - chance)))


def true_rate_at(rate: float) -> CurveMetric:
    """The metric: the largest true-positive rate at a false-positive rate of at most `rate`.

    It is not interpolated: some threshold on the confidence reaches it.
    """
    return lambda false_rates, true_rates: float(true_rates[false_rates <= rate].max())


AUROC: Mapping[str, CurveMetric] = {"auroc": area}
METRICS: Mapping[str, CurveMetric] = AUROC | {
    "tpr_at_5": true_rate_at(0.05),
    "tpr_at_10": true_rate_at(0.10),
    "tpr_at_20": true_rate_at(0.20),
    "pauc_at_10": partial_area,
}
TABLES: Mapping[str, tuple[Slices, Mapping[str, CurveMetric]]] = {
    "localized_global_errors": (
        {"localized": {"localized": LOCALIZED}, "global": {"global": ("global",)}},
        METRICS,
    ),
    "localized_error_subtypes": (
        {"localized": {kind: (kind,) for kind in LOCALIZED} | {"localized": LOCALIZED}},
        AUROC,
    ),
}


class AnswerArrays(NamedTuple):
    """Columns [n] of the answers; confidence [estimators, n] is NaN where undefined."""

    task: np.ndarray
    length: np.ndarray
    error_kind: np.ndarray  # "" where the answer is correct
    confidence: np.ndarray

    def rows(self, index: np.ndarray) -> "AnswerArrays":
        return AnswerArrays(*(column[..., index] for column in self))


def analysis(
    files: StudyFiles,
    *,
    scored: Sequence[str],
    learned: Sequence[str],
    named_baseline: str,
    bootstrap: Sequence[float],
    name: str,
) -> pl.DataFrame:
    """`localized_errors` of the pairs, with their scope, for the table `name`.

    `scored` estimators have a score, `learned` ones only probabilities.
    """
    labels = files.read("labels", ["example_id", "correct", "error_kind"])
    lengths = files.read("features", ["example_id", "length"])
    groups = files.read("tasks", ["example_id", "group_id"])
    answers = lengths.join(labels, on=KEYS, validate="1:1").join(groups, on=KEYS, validate="1:1")
    with_confidences = add_confidences(
        answers,
        files.read("scores", ["example_id", *scored]),
        files.read("predictions", list(PREDICTIONS)),
        learned,
    )
    estimators = [*scored, *learned]
    rows = localized_errors(
        with_confidences, name, estimators, named_baseline, Resampling(*bootstrap)
    )
    return rows.with_columns(**files.scope)


def add_confidences(
    answers: pl.DataFrame, scores: pl.DataFrame, predictions: pl.DataFrame, learned: Sequence[str]
) -> pl.DataFrame:
    """`answers` with a column per estimator, larger = more confident; None where undefined.

    It is the estimator's column of `scores`; for `learned` estimators, which depend on the split,
    it is the mean `probability` in `predictions` over the splits that evaluate the answer.
    """
    joined = answers.join(scores, on=KEYS, how="left", validate="1:1")
    for estimator in learned:
        means = mean_probabilities(predictions.filter(estimator=estimator), *KEYS)
        renamed = means.rename({"probability": estimator})
        joined = joined.join(renamed, on=KEYS, how="left", validate="1:1")
    return joined.sort(KEYS)


def localized_errors(
    answers: pl.DataFrame,
    table: str,
    estimators: Sequence[str],
    named_baseline: str,
    bootstrap: Resampling,
) -> pl.DataFrame:
    """The metrics of each estimator on the slices of one of TABLES; columns ERRORS.

    `answers` holds `task`, `example_id`, `group_id`, `length` (tokens), `correct`, `error_kind` and
    a column of confidence per estimator (None where undefined: its pair is left out). `n` is the
    mean number of pairs, `errors` the number of errors, `length_gap` the mean difference in length
    within a pair, in tokens. The rows of the estimator GAIN hold TRACE+ minus the prespecified
    `named_baseline`.
    """
    slices, metrics = TABLES[table]
    seed, resamples, level = bootstrap
    ordered = answers.sort("task", "example_id")
    arrays = _arrays(ordered, estimators)

    def measure(arrays: AnswerArrays, *draw: object) -> SliceMetrics:
        return _measure_slices(arrays, slices, metrics, estimators, (seed, *draw))

    by_matching = [measure(arrays, "matching", draw) for draw in range(N_MATCHINGS)]
    counts = draw_counts(ordered["group_id"].to_list(), seed, resamples).astype(int)
    index = np.arange(ordered.height)
    by_resample = [
        measure(arrays.rows(np.repeat(index, times)), "resample", draw)
        for draw, times in enumerate(counts)
    ]
    kinds_of = {name: kinds for parts in slices.values() for name, kinds in parts.items()}
    rows = []
    for slice_name, kinds in kinds_of.items():
        n_errors = int(np.isin(arrays.error_kind, kinds).sum())
        for metric in metrics:
            means = {}
            for estimator in estimators:
                key = (estimator, slice_name, metric)
                values, n, gaps = (
                    [result[estimator, slice_name, quantity] for result in by_matching]
                    for quantity in (metric, "n", "length_gap")
                )
                means[estimator] = mean(values)
                low, high, _ = interval([result[key] for result in by_resample], level)
                sizes = (mean(n), n_errors, mean(gaps), N_MATCHINGS, level)
                rows.append((*key, means[estimator], spread(values), low, high, *sizes))
            gains = [
                _gain(
                    {name: result[name, slice_name, metric] for name in estimators}, named_baseline
                )
                for result in by_resample
            ]
            low, high, _ = interval(gains, level)
            gain = (_gain(means, named_baseline), None, low, high)
            sizes = (None, n_errors, None, N_MATCHINGS, level)
            rows.append((GAIN, slice_name, metric, *gain, *sizes))
    return pl.DataFrame(rows, schema=ERRORS, orient="row")


def _arrays(answers: pl.DataFrame, estimators: Sequence[str]) -> AnswerArrays:
    error_kind = pl.when("correct").then(pl.lit("")).otherwise("error_kind")
    return AnswerArrays(
        answers["task"].to_numpy(),
        answers["length"].to_numpy(),
        answers.select(error_kind).to_series().to_numpy(),
        np.array([answers[name].cast(pl.Float64).to_numpy() for name in estimators]),
    )


def _measure_slices(
    answers: AnswerArrays,
    slices: Slices,
    metrics: Mapping[str, CurveMetric],
    estimators: Sequence[str],
    draw: tuple[object, ...],
) -> SliceMetrics:
    """Match each slice of `answers`, seeded by the name of the draw, and measure its parts."""
    values: SliceMetrics = {}
    for matched_slice, parts in slices.items():
        kinds = sorted({kind for part_kinds in parts.values() for kind in part_kinds})
        errors, correct = match_by_task(
            answers.task,
            answers.length,
            np.isin(answers.error_kind, kinds),
            answers.error_kind == "",
            seeded(*draw, matched_slice),
        )
        for part, part_kinds in parts.items():
            in_part = np.isin(answers.error_kind[errors], part_kinds)
            pairs = np.stack([errors, correct])[:, in_part]
            for estimator, confidence in zip(estimators, answers.confidence, strict=True):
                defined = pairs[:, np.isfinite(confidence[pairs]).all(axis=0)]
                gaps = np.abs(np.diff(answers.length[defined], axis=0))
                n = defined.shape[1]
                values[estimator, part, "n"] = n
                values[estimator, part, "length_gap"] = float(gaps.mean()) if n else None
                curve = roc_curve(*confidence[defined]) if n else None
                for metric, measure in metrics.items():
                    values[estimator, part, metric] = measure(*curve) if curve else None
    return values


def _gain(values: Mapping[str, float | None], named_baseline: str) -> float | None:
    """TRACE+ minus the prespecified baseline; None where either is undefined."""
    trace_plus, baseline = values.get(GAINER), values.get(named_baseline)
    return None if None in (trace_plus, baseline) else trace_plus - baseline


def match_lengths(
    errors: np.ndarray, correct: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as indices into `errors` [e] and `correct` [c], the lengths of one task's answers.

    Both results are [min(e, c)] and hold no index twice. In random order, each member of the
    smaller side takes the unmatched member of the other side that is nearest in length.

    >>> match_lengths(np.array([5]), np.array([2, 6]), np.random.default_rng(0))
    (array([0]), array([1]))
    """
    if len(errors) > len(correct):
        second, first = match_lengths(correct, errors, rng)
        return first, second
    order, pool = rng.permutation(len(errors)), rng.permutation(len(correct))
    unmatched = correct[pool].astype(float)
    partners = np.empty(len(errors), dtype=int)
    for chooser in order:
        nearest = np.argmin(np.abs(unmatched - errors[chooser]))
        partners[chooser] = pool[nearest]
        unmatched[nearest] = np.inf
    return np.arange(len(errors)), partners


def match_by_task(
    tasks: np.ndarray,
    lengths: np.ndarray,
    is_error: np.ndarray,
    is_correct: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """`match_lengths` task by task; the results are indices into the arguments, all [n]."""
    empty = np.array([], dtype=int)
    pairs = [(empty, empty)]  # a resample may be empty
    for task in np.unique(tasks):
        errors = np.flatnonzero((tasks == task) & is_error)
        correct = np.flatnonzero((tasks == task) & is_correct)
        first, second = match_lengths(lengths[errors], lengths[correct], rng)
        pairs.append((errors[first], correct[second]))
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)
