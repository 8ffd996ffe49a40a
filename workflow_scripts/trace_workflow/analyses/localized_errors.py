"""How well confidence separates errors of a kind from correct answers of similar length (paper,
appendix E.3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from trace_workflow.analyses.averages import mean, spread
from trace_workflow.analyses.study_files import KEYS, Pairs, Paths, read_pairs, scope
from tracecal.calibration.predictions import mean_probabilities
from tracecal.calibration.resampling import Bootstrap, draw_counts, interval
from tracecal.io.randomness import seeded


def match(
    errors: np.ndarray, correct: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as indices into `errors` [e] and `correct` [c], the lengths of one task's answers.

    Both results are [min(e, c)] and hold no index twice. In random order, each member of the
    smaller side takes the member nearest in length that is left on the other side.
    """
    if len(errors) > len(correct):
        second, first = match(correct, errors, rng)
        return first, second
    order, pool = rng.permutation(len(errors)), rng.permutation(len(correct))
    unmatched = correct[pool].astype(float)
    partners = np.empty(len(errors), dtype=int)
    for chooser in order:
        nearest = np.argmin(np.abs(unmatched - errors[chooser]))
        partners[chooser] = pool[nearest]
        unmatched[nearest] = np.inf
    return np.arange(len(errors)), partners


def match_within(
    task: np.ndarray,
    length: np.ndarray,
    is_error: np.ndarray,
    is_correct: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """`match` task by task; the results are rows of the arguments, all [n]."""
    none = np.array([], dtype=int)
    pairs = [(none, none)]  # a resample may be empty
    for name in np.unique(task):
        errors = np.flatnonzero((task == name) & is_error)
        correct = np.flatnonzero((task == name) & is_correct)
        first, second = match(length[errors], length[correct], rng)
        pairs.append((errors[first], correct[second]))
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)


LOCALIZED = ("number", "entity", "claim")
MATCHINGS = 20
PARTIAL = 0.10
GAIN, GAINER = "gain", "trace_plus"

ERRORS = {
    "estimator": pl.String,
    "slice": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "sd": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Float64,
    "errors": pl.Int64,
    "length_gap": pl.Float64,
    "matchings": pl.Int64,
    "level": pl.Float64,
}
# A function of the false- and true-positive rates along a ROC curve.
Metric = Callable[[np.ndarray, np.ndarray], float]
# The parts that are measured, and their kinds of errors, by the slice that is matched as a whole.
Slices = Mapping[str, Mapping[str, Sequence[str]]]
# By (estimator, slice, quantity): metrics, 'n' pairs, mean 'length_gap'; null where undefined.
Measured = dict[tuple[str, str, str], float | None]


def area(false: np.ndarray, true: np.ndarray) -> float:
    """Area under the ROC curve."""
    return float(np.trapezoid(true, false))


def tpr_at(rate: float) -> Metric:
    """The largest true-positive rate at a false-positive rate of at most `rate`.

    It is not interpolated: some threshold on the confidence reaches it.
    """
    return lambda false, true: float(true[false <= rate].max())


def partial_area(false: np.ndarray, true: np.ndarray) -> float:
    """Area at false-positive rates below 10 %, standardised so that chance is 0.5 (McClish 1989).

    As scikit-learn's `roc_auc_score(max_fpr=0.1)`, from an existing curve.
    """
    inside = false <= PARTIAL
    x = np.append(false[inside], PARTIAL)
    y = np.append(true[inside], np.interp(PARTIAL, false, true))
    chance = PARTIAL**2 / 2
    return float(0.5 * (1 + (np.trapezoid(y, x) - chance) / (PARTIAL - chance)))


AUROC: Mapping[str, Metric] = {"auroc": area}
METRICS: Mapping[str, Metric] = AUROC | {
    "tpr_at_5": tpr_at(0.05),
    "tpr_at_10": tpr_at(0.10),
    "tpr_at_20": tpr_at(0.20),
    "pauc_at_10": partial_area,
}
TABLES: Mapping[str, tuple[Slices, Mapping[str, Metric]]] = {
    "localized_global_errors": (
        {"localized": {"localized": LOCALIZED}, "global": {"global": ("global",)}},
        METRICS,
    ),
    "localized_error_subtypes": (
        {"localized": {kind: (kind,) for kind in LOCALIZED} | {"localized": LOCALIZED}},
        AUROC,
    ),
}


def analysis(
    scores: Paths,
    predictions: Paths,
    features: Paths,
    labels: Paths,
    tasks: Paths,
    pairs: Pairs,
    *,
    scored: Sequence[str],
    learned: Sequence[str],
    named: str,
    bootstrap: Sequence[float],
    name: str,
) -> pl.DataFrame:
    """`localized_errors` from the files of `pairs`, with their scope.

    `scored` estimators have a score, `learned` ones only probabilities.
    """
    labelled = read_pairs(labels, pairs, ["example_id", "correct", "error_kind"])
    lengths = read_pairs(features, pairs, ["example_id", "length"])
    groups = read_pairs(tasks, pairs, ["example_id", "group_id"])
    answers = lengths.join(labelled, on=KEYS, validate="1:1").join(groups, on=KEYS, validate="1:1")
    confidences = with_confidences(
        answers,
        read_pairs(scores, pairs, ["example_id", *scored]),
        read_pairs(predictions, pairs, ["estimator", "split", "example_id", "probability"]),
        learned,
    )
    rows = localized_errors(confidences, name, [*scored, *learned], named, Bootstrap(*bootstrap))
    return rows.with_columns(**scope(pairs))


def with_confidences(
    answers: pl.DataFrame,
    scores: pl.DataFrame,
    predictions: pl.DataFrame,
    learned: Sequence[str],
) -> pl.DataFrame:
    """`answers` with a column per estimator, larger = more confident; null where undefined.

    It is the estimator's column of `scores`; for `learned` estimators, which depend on the split,
    it is the mean `probability` in `predictions` over the splits that evaluate the answer.
    """
    joined = answers.join(scores, on=KEYS, how="left", validate="1:1")
    for estimator in learned:
        means = mean_probabilities(predictions.filter(estimator=estimator), *KEYS)
        renamed = means.rename({"probability": estimator})
        joined = joined.join(renamed, on=KEYS, how="left", validate="1:1")
    return joined.sort(KEYS)


class _Answers(NamedTuple):
    """Columns [n] of the answers; confidence [estimators, n] is NaN where undefined."""

    task: np.ndarray
    length: np.ndarray
    kind: np.ndarray  # "" where the answer is correct
    confidence: np.ndarray

    def rows(self, index: np.ndarray) -> "_Answers":
        return _Answers(*(column[..., index] for column in self))


def localized_errors(
    answers: pl.DataFrame,
    table: str,
    estimators: Sequence[str],
    named: str,
    bootstrap: Bootstrap,
) -> pl.DataFrame:
    """The metrics of each estimator on the slices of one of TABLES; columns ERRORS.

    `answers` holds `task`, `example_id`, `group_id`, `length` (tokens), `correct`, `error_kind`
    and a column of confidence per estimator (null where undefined: its pair is left out). `n` is
    the mean number of pairs, `errors` the number of errors, `length_gap` the mean difference in
    length within a pair, in tokens. The rows of the estimator GAIN say by how much TRACE+ exceeds
    the baseline `named` beforehand in that metric.
    """
    slices, metrics = TABLES[table]
    seed, resamples, level = bootstrap
    ordered = answers.sort("task", "example_id")
    kind = pl.when("correct").then(pl.lit("")).otherwise("error_kind")
    arrays = _Answers(
        ordered["task"].to_numpy(),
        ordered["length"].to_numpy(),
        ordered.select(kind).to_series().to_numpy(),
        np.array([ordered[name].cast(pl.Float64).to_numpy() for name in estimators]),
    )

    def measure(drawn: _Answers, *name: object) -> Measured:
        return _measure(drawn, slices, metrics, estimators, (seed, *name))

    by_matching = [measure(arrays, "matching", draw) for draw in range(MATCHINGS)]
    counts = draw_counts(ordered["group_id"].to_list(), seed, resamples).astype(int)
    index = np.arange(ordered.height)
    by_resample = [
        measure(arrays.rows(np.repeat(index, times)), "resample", draw)
        for draw, times in enumerate(counts)
    ]
    rows = []
    for part, kinds in ((p, kinds) for parts in slices.values() for p, kinds in parts.items()):
        errors = int(np.isin(arrays.kind, kinds).sum())
        for metric in metrics:
            for estimator in estimators:
                key = (estimator, part, metric)
                values, n, gap = (
                    [result[estimator, part, quantity] for result in by_matching]
                    for quantity in (metric, "n", "length_gap")
                )
                low, high, _ = interval([result[key] for result in by_resample], level)
                summary = (mean(values), spread(values), low, high, mean(n), errors, mean(gap))
                rows.append((*key, *summary, MATCHINGS, level))
            means = {name: value for name, p, m, value, *_ in rows if (p, m) == (part, metric)}
            gains = [
                _gain({name: result[name, part, metric] for name in estimators}, named)
                for result in by_resample
            ]
            low, high, _ = interval(gains, level)
            gain = (_gain(means, named), None, low, high)
            rows.append((GAIN, part, metric, *gain, None, errors, None, MATCHINGS, level))
    return pl.DataFrame(rows, schema=ERRORS, orient="row")


def _measure(
    answers: _Answers,
    slices: Slices,
    metrics: Mapping[str, Metric],
    estimators: Sequence[str],
    name: tuple[object, ...],
) -> Measured:
    """Match each slice of `answers` with the random draw `name`, and measure its parts."""
    measured: Measured = {}
    for whole, parts in slices.items():
        kinds = sorted({kind for chosen in parts.values() for kind in chosen})
        errors, correct = match_within(
            answers.task,
            answers.length,
            np.isin(answers.kind, kinds),
            answers.kind == "",
            seeded(*name, whole),
        )
        for part, chosen in parts.items():
            both = np.stack([errors, correct])[:, np.isin(answers.kind[errors], chosen)]
            for estimator, confidence in zip(estimators, answers.confidence, strict=True):
                defined = both[:, np.isfinite(confidence[both]).all(axis=0)]
                gaps = np.abs(np.diff(answers.length[defined], axis=0))
                n = defined.shape[1]
                measured[estimator, part, "n"] = n
                measured[estimator, part, "length_gap"] = float(gaps.mean()) if n else None
                curve = _curve(*confidence[defined]) if n else None
                for metric, measure in metrics.items():
                    measured[estimator, part, metric] = measure(*curve) if curve else None
    return measured


def _curve(errors: np.ndarray, correct: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False- and true-positive rates of "this is an error" as the threshold on confidence rises."""
    thresholds = np.unique(np.concatenate([errors, correct]))
    false, true = (
        np.append(0, np.searchsorted(np.sort(group), thresholds, side="right") / len(group))
        for group in (correct, errors)
    )
    return false, true


def _gain(values: Mapping[str, float | None], named: str) -> float | None:
    """By how much TRACE+ exceeds the prespecified baseline; null where either is undefined."""
    trace_plus, baseline = values.get(GAINER), values.get(named)
    return None if None in (trace_plus, baseline) else trace_plus - baseline
