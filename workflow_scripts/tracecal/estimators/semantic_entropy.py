"""Semantic entropy (Kuhn et al. 2023): uncertainty over meanings of sampled answers, in nats.

p(c) of a meaning c sums the length-normalised probabilities exp(mean ln p_t) of its samples, and
SE = -1/|C| Σ ln p(c) over the sampled meanings C: the Monte Carlo estimate of their semantic
entropy, over length-normalised probabilities as in their experiments. A text that is drawn twice
counts twice, as in the authors' code, so that agreement lowers SE (below 0, where all samples
agree).

Given the meanings, SE agrees with the authors' code (lorenzkuhn/semantic_uncertainty) except for
its constant shift, and with Ybakman/TruthTorchLM (truth_methods/semantic_entropy.py) where no text
is drawn twice; `compared_meanings` names the sources of the two clustering rules.
"""

import polars as pl

from tracecal.answers.normalised_text import normalised
from tracecal.io.traces import read_arrow

SCORES: dict[str, pl.Expr] = {"semantic_entropy": -pl.col("nats")}
# When a comparison speaks for a shared meaning; two samples need both directions.
AGREES = {
    "mutual_entailment": pl.col("entailment") > pl.max_horizontal("neutral", "contradiction"),
    "no_contradiction": pl.col("contradiction") <= pl.max_horizontal("entailment", "neutral"),
}


def exact_meanings(samples: pl.DataFrame) -> pl.DataFrame:
    """`samples` with `meaning`, shared by an example's samples with the same normalised text."""
    return samples.with_columns(meaning=normalised(pl.col("text")).rank("dense").over("example_id"))


def compared_meanings(
    samples: pl.DataFrame, comparisons: pl.DataFrame, same_meaning: str
) -> pl.DataFrame:
    """`samples` with `meaning`: the number of the first sample of its cluster.

    Equal texts share a meaning. Otherwise a sample is compared with the first sample of each
    earlier cluster, in order, and joins the first that it agrees with. `same_meaning` is

    'mutual_entailment': each entails the other. So Kuhn et al. define it, and IINemo/lm-polygraph
    clusters (stat_calculators/semantic_classes.py).
    'no_contradiction': neither contradicts the other. So Ybakman/TruthTorchLM clusters
    (utils/common_utils.py), and the authors' code, which compares all pairs, the last of which
    decides.

    The relation is the likeliest of entailment, neutral and contradiction.
    """
    agreeing = comparisons.filter(pl.col("hypothesis").is_not_null() & AGREES[same_meaning])
    pairs = set(agreeing.select("example_id", "premise", "hypothesis").iter_rows())
    ordered = samples.sort("example_id", "sample")
    meanings: list[int] = []
    by_text: dict[str, dict[str, int]] = {}
    for example, sample, text in ordered.select("example_id", "sample", "text").iter_rows():
        clusters = by_text.setdefault(example, {})
        if text not in clusters:
            agreeing_first = (
                first
                for first in dict.fromkeys(clusters.values())
                if {(example, first, sample), (example, sample, first)} <= pairs
            )
            clusters[text] = next(agreeing_first, sample)
        meanings.append(clusters[text])
    return ordered.with_columns(meaning=pl.Series(meanings, dtype=pl.Int64))


def entropies(samples: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `nats`, the semantic entropy, from samples with their `meaning`."""
    mean_logp = -pl.col("surprisal").list.eval(pl.element().cast(pl.Float64)).list.mean()
    # In a fixed order: in another one the last bits of the sums would differ.
    return (
        samples.with_columns(logp=mean_logp)
        .sort("example_id", "meaning", "sample")
        .group_by("example_id", "meaning", maintain_order=True)
        .agg(logp=_log_sum_exp(pl.col("logp")))
        .group_by("example_id", maintain_order=True)
        .agg(nats=-pl.col("logp").mean())
        .sort("example_id")
    )


def _log_sum_exp(x: pl.Expr) -> pl.Expr:
    return x.max() + (x - x.max()).exp().sum().log()


def answers(
    samples: str,
    equivalence: str,
    comparisons: str | None = None,
    same_meaning: str = "mutual_entailment",
) -> pl.DataFrame:
    """The semantic entropy of each evaluated prompt; `equivalence` is 'exact' or 'nli'.

    With 'nli', `comparisons` is the file of `compared_meanings`.
    """
    frame = read_arrow(samples, ["example_id", "sample", "surprisal", "text"])
    if equivalence == "nli":
        return entropies(compared_meanings(frame, read_arrow(comparisons), same_meaning))
    return entropies(exact_meanings(frame))
