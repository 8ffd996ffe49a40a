"""Error rates of answers with similar mean risk, by how far a local peak exceeds it.

Paper, appendix A. A token's risk is its entropy. The answers of all tasks of a study are pooled
and cut into terciles of mean risk, and each tercile at its median spike gap. A value on a cut
belongs below it, so equal values stay together; without ties the parts are equal but for rounding,
like the paper's 313 + 312, 313 + 313, 313 + 312 of 1876 answers.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import polars as pl

from trace_workflow.analyses.study_files import KEYS, StudyFiles
from tracecal.statistics.ranking_metrics import ratio
from tracecal.statistics.resampling import Resampling, draw_counts, interval

FEATURES = ("mean_entropy", "max_entropy", "window_entropy")
# M_H^(4) of an answer within one window is its mean; the two sums may round differently.
ROUNDING = 12
RISKS = {
    "mean_risk": pl.col("mean_entropy"),
    "max_token_risk": pl.col("max_entropy"),
    "spike_gap": (pl.col("window_entropy") - pl.col("mean_entropy")).round(ROUNDING),
}


def read_risks(files: StudyFiles, extra_features: Sequence[str]) -> pl.DataFrame:
    """`add_risks` from the files of the pairs, with further features."""
    features = files.read("features", ["example_id", *FEATURES, *extra_features])
    return add_risks(features, files.labels())


def add_risks(features: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The features' rows with `correct` and RISKS (nats), by model, task and example.

    Answers without entropies (from files) are left out.
    """
    labelled = features.join(labels, on=KEYS, how="inner", validate="1:1")
    return labelled.with_columns(**RISKS).drop_nulls([*RISKS]).sort(KEYS)


RISK_STRATA = ("low", "mid", "high")
SPIKE_STRATA = ("low", "high")
N_QUINTILES = 5
# Scores ranked as percentiles among all answers: averages over tokens, then local ones.
SCORES = {
    "mean_token_entropy": pl.col("mean_entropy"),
    "len_norm_logp": -pl.col("len_norm_logp"),
    "windowed_entropy": pl.col("window_entropy"),
    "trace": pl.col("trace_risk"),
}
SCORE_FEATURES = ("len_norm_logp", "trace_risk")


def analysis(files: StudyFiles, bootstrap: Sequence[float], name: str) -> pl.DataFrame:
    """'spike_strata' or 'spike_quintiles' of the pairs, with their scope."""
    groups = files.read("tasks", ["example_id", "group_id"])
    answers = read_risks(files, SCORE_FEATURES).join(groups, on=KEYS, validate="1:1")
    rates = {"spike_strata": spike_strata, "spike_quintiles": spike_quintiles}[name]
    return rates(answers, Resampling(*bootstrap)).with_columns(**files.scope)


def cut_evenly(
    values: np.ndarray, order: np.ndarray, weights: np.ndarray, n_parts: int
) -> np.ndarray:
    """The part, 0 to `n_parts` - 1, of each value [n]: of equal weight, equal values together.

    `order` sorts the values, `weights` are whole numbers. Part k ends with the value of weighted
    rank n k / n_parts, rounded half up, where n is the sum of the weights.

    >>> values = np.array([3.0, 1.0, 2.0, 4.0])
    >>> cut_evenly(values, values.argsort(), np.ones(4), 2).tolist()
    [1, 0, 0, 1]
    """
    if not weights.any():
        return np.zeros(len(values), dtype=int)
    ranks = np.cumsum(weights[order])
    n, ordered = int(ranks[-1]), values[order]
    ends = [(2 * part * n + n_parts) // (2 * n_parts) for part in range(1, n_parts)]
    bounds = [ordered[np.searchsorted(ranks, end)] if end else -np.inf for end in ends]
    return (values[:, None] > np.array(bounds)).sum(axis=1)


class SpikeRisks:
    """Mean risks and spike gaps [n] of the answers, each with what sorts it."""

    def __init__(self, answers: pl.DataFrame) -> None:
        mean, gap = (answers[name].to_numpy() for name in ("mean_risk", "spike_gap"))
        self._means, self._gaps = ((x, np.argsort(x, kind="stable")) for x in (mean, gap))

    def strata(self, weights: np.ndarray) -> np.ndarray:
        """The number of each answer's stratum: halves by spike gap within terciles of mean risk."""
        terciles = cut_evenly(*self._means, weights, len(RISK_STRATA))
        halves = np.zeros(len(weights), dtype=int)
        for tercile in range(len(RISK_STRATA)):
            inside = terciles == tercile
            cut = cut_evenly(*self._gaps, weights * inside, len(SPIKE_STRATA))
            halves[inside] = cut[inside]
        return len(SPIKE_STRATA) * terciles + halves

    def quintiles(self, weights: np.ndarray) -> np.ndarray:
        """The fifth by spike gap of each answer in the low tercile of mean risk, else -1."""
        inside = cut_evenly(*self._means, weights, len(RISK_STRATA)) == 0
        return np.where(inside, cut_evenly(*self._gaps, weights * inside, N_QUINTILES), -1)


def spike_strata(answers: pl.DataFrame, bootstrap: Resampling) -> pl.DataFrame:
    """A row per stratum, six in all; empty ones hold None.

    `answers` holds `task`, `group_id`, `correct`, `mean_risk` and `spike_gap`. The rate's interval
    is a bootstrap over groups, the strata cut anew in each resample.
    """
    names = list(product(RISK_STRATA, SPIKE_STRATA))
    strata = pl.DataFrame(names, schema=["risk_stratum", "spike_stratum"], orient="row")
    ordered = answers.sort("task", "example_id")
    return _error_rates(ordered, strata, SpikeRisks(ordered).strata, {}, bootstrap)


def spike_quintiles(answers: pl.DataFrame, bootstrap: Resampling) -> pl.DataFrame:
    """The answers in the lowest tercile of mean risk, cut into fifths by spike gap.

    A row per fifth (`quintile` 0 to 4): the columns of `spike_strata`, and the mean percentile
    (0 to 1, among all `answers`, ties halved) of each of SCORES, larger = more risk.
    """
    percentiles = {
        f"{name}_percentile": (score.rank("average") - 0.5) / pl.len()
        for name, score in SCORES.items()
    }
    ranked = answers.with_columns(**percentiles).sort("task", "example_id")
    means = {name: pl.col(name).mean() for name in percentiles}
    fifths = pl.DataFrame({"quintile": range(N_QUINTILES)})
    return _error_rates(ranked, fifths, SpikeRisks(ranked).quintiles, means, bootstrap)


def _error_rates(
    answers: pl.DataFrame,
    strata: pl.DataFrame,
    divide: Callable[[np.ndarray], np.ndarray],
    means: Mapping[str, pl.Expr],
    bootstrap: Resampling,
) -> pl.DataFrame:
    """Counts, means and error rates of `answers`, a row per row of `strata`.

    `divide` gives the answers' row numbers (-1: none) under weights [n].
    """
    is_wrong = (~pl.col("correct")).alias("wrong")
    part = pl.Series("part", divide(np.ones(answers.height)), dtype=pl.Int64)
    summary = (
        answers.with_columns(part)
        .group_by("part")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("mean_risk").mean(),
            pl.col("spike_gap").mean(),
            is_wrong.sum().cast(pl.Int64).alias("incorrect"),
            is_wrong.mean().alias("incorrect_rate"),
            **means,
        )
    )
    rates = _resampled_rates(answers, divide, strata.height, bootstrap)
    low, high, _ = zip(*(interval(values, bootstrap.level) for values in rates.T), strict=True)
    bounds = strata.with_columns(
        pl.Series("incorrect_rate_low", low, dtype=pl.Float64),
        pl.Series("incorrect_rate_high", high, dtype=pl.Float64),
        level=pl.lit(bootstrap.level),
    ).with_row_index("part")
    joined = bounds.with_columns(pl.col("part").cast(pl.Int64)).join(
        summary, on="part", how="left", maintain_order="left"
    )
    return joined.drop("part").with_columns(pl.col("n", "incorrect").fill_null(0))


def _resampled_rates(
    answers: pl.DataFrame,
    divide: Callable[[np.ndarray], np.ndarray],
    n_strata: int,
    bootstrap: Resampling,
) -> np.ndarray:
    """The error rates in resamples of the answers' groups, [resamples, strata]."""
    is_wrong = ~answers["correct"].to_numpy()
    groups = answers["group_id"].to_list()
    rates = []
    for weights in draw_counts(groups, bootstrap.seed, bootstrap.resamples):
        codes = divide(weights)
        inside = codes >= 0
        sizes = np.bincount(codes[inside], weights[inside], n_strata)
        errors = np.bincount(codes[inside], (weights * is_wrong)[inside], n_strata)
        rates.append(ratio(errors, sizes))
    return np.array(rates)
