"""Error rates of answers with similar mean risk, by how far a local peak exceeds it (paper,
appendix A).

The answers of all tasks of a study are pooled and cut into terciles of mean risk, and each tercile
at its median spike gap. A value on a cut belongs below it, so equal values stay together; without
ties the parts are equal but for rounding, like the paper's 313 + 312, 313 + 313, 313 + 312 of 1876
answers.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import polars as pl

from tracecal.analyse.bootstrap import Bootstrap, group_counts, interval
from tracecal.analyse.pairs import KEYS, Pairs, Paths, read_pairs, scope
from tracecal.analyse.spikes import read_risks
from tracecal.calibrate.measures import ratio

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


def cut(values: pl.Expr, parts: int) -> pl.Expr:
    """The part, 0 to `parts` - 1, of each value: parts of equal size, equal values together.

    Part k ends with the value of rank n k / parts, rounded half up.
    """
    n, ordered = pl.len().cast(pl.Int64), values.sort()
    ends = [(2 * part * n + parts) // (2 * parts) for part in range(1, parts)]
    beyond = [(end == 0) | (values > ordered.get(end - 1, null_on_oob=True)) for end in ends]
    return pl.sum_horizontal(part.cast(pl.Int64) for part in beyond)


def spike_strata(answers: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """One row per stratum, six in all; empty ones have nulls.

    `answers` holds `task`, `group_id`, `correct`, `mean_risk` and `spike_gap`. The rate's interval
    is a bootstrap over groups, the strata held fixed.
    """
    names = list(product(RISK_STRATA, SPIKE_STRATA))
    strata = pl.DataFrame(names, schema=["risk_stratum", "spike_stratum"], orient="row")
    return _rates(_stratified(answers), strata, {}, bootstrap)


def spike_quintiles(answers: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """The answers in the lowest tercile of mean risk, cut into fifths by spike gap.

    One row per fifth (`quintile` 0 to 4): the columns of `spike_strata`, and the mean percentile
    (0 to 1, among all `answers`, ties halved) of each of SCORES, larger = more risk.
    """
    ranked = answers.with_columns(
        ((score.rank("average") - 0.5) / pl.len()).alias(f"{name}_percentile")
        for name, score in SCORES.items()
    )
    low = _stratified(ranked).filter(risk_stratum="low")
    parts = low.with_columns(quintile=cut(pl.col("spike_gap"), QUINTILES))
    means = {f"{name}_percentile": pl.col(f"{name}_percentile").mean() for name in SCORES}
    every = pl.DataFrame({"quintile": range(QUINTILES)})
    return _rates(parts, every, means, bootstrap)


def _stratified(answers: pl.DataFrame) -> pl.DataFrame:
    terciles = answers.with_columns(
        risk_stratum=_named(cut(pl.col("mean_risk"), len(RISK_STRATA)), RISK_STRATA)
    )
    halves = cut(pl.col("spike_gap"), len(SPIKE_STRATA)).over("risk_stratum")
    named = terciles.with_columns(spike_stratum=_named(halves, SPIKE_STRATA))
    return named.sort("task", "example_id")


def _named(part: pl.Expr, names: Sequence[str]) -> pl.Expr:
    return part.replace_strict(range(len(names)), names, return_dtype=pl.String)


def _rates(
    answers: pl.DataFrame,
    strata: pl.DataFrame,
    means: Mapping[str, pl.Expr],
    bootstrap: Bootstrap,
) -> pl.DataFrame:
    """Counts, means and error rates of `answers`, one row per row of `strata`."""
    keys = strata.columns
    wrong = (~pl.col("correct")).alias("wrong")
    summary = answers.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("mean_risk").mean(),
        pl.col("spike_gap").mean(),
        wrong.sum().cast(pl.Int64).alias("incorrect"),
        wrong.mean().alias("incorrect_rate"),
        **means,
    )
    part = strata.with_row_index("part")
    codes = answers.join(part, on=keys, how="left", maintain_order="left")["part"].to_numpy()
    members = codes == np.arange(strata.height)[:, None]
    incorrect = members & ~answers["correct"].to_numpy()
    counts = group_counts(answers, bootstrap.seed, bootstrap.resamples).T
    rates = map(ratio, incorrect @ counts, members @ counts)
    low, high, _ = zip(*(interval(values, bootstrap.level) for values in rates), strict=True)
    bounds = strata.with_columns(
        pl.Series("incorrect_rate_low", low, dtype=pl.Float64),
        pl.Series("incorrect_rate_high", high, dtype=pl.Float64),
    )
    return bounds.join(summary, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("n", "incorrect").fill_null(0)
    )
