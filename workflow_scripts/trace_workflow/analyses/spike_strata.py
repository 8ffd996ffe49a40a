"""Error rates of answers with similar mean risk, by how far a local peak exceeds it (paper,
appendix A).

The answers of all tasks of a study are pooled and cut into terciles of mean risk, and each tercile
at its median spike gap. A value on a cut belongs below it, so equal values stay together; without
ties the parts are equal but for rounding, like the paper's 313 + 312, 313 + 313, 313 + 312 of 1876
answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from trace_workflow.analyses.study_files import KEYS, Pairs, Paths, read_labels, read_pairs, scope
from tracecal.calibration.ranking import ratio
from tracecal.calibration.resampling import Bootstrap, draw_counts, interval

RISK_STRATA = ("low", "mid", "high")
SPIKE_STRATA = ("low", "high")
QUINTILES = 5
# Scores ranked as percentiles among all answers: averages over tokens, then local ones.
SCORES = {
    "mean_token_entropy": pl.col("mean_entropy"),
    "len_norm_logp": -pl.col("len_norm_logp"),
    "windowed_entropy": pl.col("window_entropy"),
    "trace": pl.col("trace_risk"),
}
SCORE_FEATURES = ("len_norm_logp", "trace_risk")


def analysis(
    features: Paths,
    labels: Paths,
    tasks: Paths,
    pairs: Pairs,
    bootstrap: Sequence[float],
    name: str,
) -> pl.DataFrame:
    """'spike_strata' or 'spike_quintiles' from the files of `pairs`, with their scope."""
    groups = read_pairs(tasks, pairs, ["example_id", "group_id"])
    risks = read_risks(features, labels, pairs, SCORE_FEATURES)
    answers = risks.join(groups, on=KEYS, validate="1:1")
    rates = {"spike_strata": spike_strata, "spike_quintiles": spike_quintiles}[name]
    return rates(answers, Bootstrap(*bootstrap)).with_columns(**scope(pairs))


def cut(values: np.ndarray, order: np.ndarray, weights: np.ndarray, parts: int) -> np.ndarray:
    """The part, 0 to `parts` - 1, of each value [n]: parts of equal weight, equal values together.

    `order` sorts the values, `weights` are whole numbers. Part k ends with the value of weighted
    rank n k / parts, rounded half up, where n is the sum of the weights.
    """
    if not weights.any():
        return np.zeros(len(values), dtype=int)
    upto = np.cumsum(weights[order])
    n, ordered = int(upto[-1]), values[order]
    ends = [(2 * part * n + parts) // (2 * parts) for part in range(1, parts)]
    bounds = [ordered[np.searchsorted(upto, end)] if end else -np.inf for end in ends]
    return (values[:, None] > np.array(bounds)).sum(axis=1)


@dataclass(frozen=True)
class _Risks:
    """Columns [n] of the answers, and what sorts them."""

    mean: np.ndarray
    gap: np.ndarray
    by_mean: np.ndarray
    by_gap: np.ndarray

    @classmethod
    def of(cls, answers: pl.DataFrame) -> "_Risks":
        mean, gap = (answers[name].to_numpy() for name in ("mean_risk", "spike_gap"))
        return cls(mean, gap, np.argsort(mean, kind="stable"), np.argsort(gap, kind="stable"))

    def strata(self, weights: np.ndarray) -> np.ndarray:
        """The number of each answer's stratum: halves by spike gap within terciles of mean risk."""
        terciles = cut(self.mean, self.by_mean, weights, len(RISK_STRATA))
        halves = np.zeros(len(weights), dtype=int)
        for tercile in range(len(RISK_STRATA)):
            inside = terciles == tercile
            found = cut(self.gap, self.by_gap, weights * inside, len(SPIKE_STRATA))
            halves[inside] = found[inside]
        return len(SPIKE_STRATA) * terciles + halves

    def quintiles(self, weights: np.ndarray) -> np.ndarray:
        """The fifth by spike gap of each answer in the low tercile of mean risk, else -1."""
        inside = cut(self.mean, self.by_mean, weights, len(RISK_STRATA)) == 0
        return np.where(inside, cut(self.gap, self.by_gap, weights * inside, QUINTILES), -1)


def spike_strata(answers: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """One row per stratum, six in all; empty ones have nulls.

    `answers` holds `task`, `group_id`, `correct`, `mean_risk` and `spike_gap`. The rate's interval
    is a bootstrap over groups, the strata cut anew in each resample.
    """
    names = list(product(RISK_STRATA, SPIKE_STRATA))
    strata = pl.DataFrame(names, schema=["risk_stratum", "spike_stratum"], orient="row")
    ordered = answers.sort("task", "example_id")
    return _rates(ordered, strata, _Risks.of(ordered).strata, {}, bootstrap)


def spike_quintiles(answers: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """The answers in the lowest tercile of mean risk, cut into fifths by spike gap.

    One row per fifth (`quintile` 0 to 4): the columns of `spike_strata`, and the mean percentile
    (0 to 1, among all `answers`, ties halved) of each of SCORES, larger = more risk.
    """
    ranked = answers.with_columns(
        ((score.rank("average") - 0.5) / pl.len()).alias(f"{name}_percentile")
        for name, score in SCORES.items()
    ).sort("task", "example_id")
    means = {f"{name}_percentile": pl.col(f"{name}_percentile").mean() for name in SCORES}
    every = pl.DataFrame({"quintile": range(QUINTILES)})
    return _rates(ranked, every, _Risks.of(ranked).quintiles, means, bootstrap)


def _rates(
    answers: pl.DataFrame,
    strata: pl.DataFrame,
    divide: Callable[[np.ndarray], np.ndarray],
    means: Mapping[str, pl.Expr],
    bootstrap: Bootstrap,
) -> pl.DataFrame:
    """Counts, means and error rates of `answers`, one row per row of `strata`.

    `divide` gives the answers' row numbers (-1: none) under weights [n].
    """
    wrong = (~pl.col("correct")).alias("wrong")
    part = pl.Series("part", divide(np.ones(answers.height)), dtype=pl.Int64)
    summary = (
        answers.with_columns(part)
        .group_by("part")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("mean_risk").mean(),
            pl.col("spike_gap").mean(),
            wrong.sum().cast(pl.Int64).alias("incorrect"),
            wrong.mean().alias("incorrect_rate"),
            **means,
        )
    )
    incorrect = ~answers["correct"].to_numpy()
    groups = answers["group_id"].to_list()
    rates = []
    for weights in draw_counts(groups, bootstrap.seed, bootstrap.resamples):
        codes = divide(weights)
        kept, size = codes >= 0, strata.height
        drawn = np.bincount(codes[kept], weights[kept], size)
        rates.append(ratio(np.bincount(codes[kept], (weights * incorrect)[kept], size), drawn))
    ends = [interval(values, bootstrap.level) for values in np.array(rates).T]
    low, high, _ = zip(*ends, strict=True)
    bounds = strata.with_columns(
        pl.Series("incorrect_rate_low", low, dtype=pl.Float64),
        pl.Series("incorrect_rate_high", high, dtype=pl.Float64),
        level=pl.lit(bootstrap.level),
    ).with_row_index("part")
    joined = bounds.with_columns(pl.col("part").cast(pl.Int64)).join(
        summary, on="part", how="left", maintain_order="left"
    )
    return joined.drop("part").with_columns(pl.col("n", "incorrect").fill_null(0))


# Token risk: H_t, its mean over the answer, and how far a peak exceeds it.


FEATURES = ("mean_entropy", "max_entropy", "window_entropy")

# M_H^(4) of an answer within one window is its mean; the two sums may round differently.
_ROUNDING = 12

RISKS = {
    "mean_risk": pl.col("mean_entropy"),
    "max_token_risk": pl.col("max_entropy"),
    "spike_gap": (pl.col("window_entropy") - pl.col("mean_entropy")).round(_ROUNDING),
}


def read_risks(features: Paths, labels: Paths, pairs: Pairs, more: Sequence[str]) -> pl.DataFrame:
    """`with_risks` from the files of `pairs`, with `more` features."""
    measured = read_pairs(features, pairs, ["example_id", *FEATURES, *more])
    return with_risks(measured, read_labels(labels, pairs))


def with_risks(features: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """The features' rows with `correct` and RISKS (nats), by model, task and example.

    Answers without entropies (from files) are left out.
    """
    labelled = features.join(labels, on=KEYS, how="inner", validate="1:1")
    return labelled.with_columns(**RISKS).drop_nulls([*RISKS]).sort(KEYS)
