"""Semantic entropy (Kuhn et al. 2023): uncertainty over meanings of sampled answers, in nats.

p(c) of a meaning c sums the length-normalised probabilities exp(mean ln p_t) of its samples, and
SE = -1/|C| Σ ln p(c) over the sampled meanings C. As in the authors' code a text that is drawn
twice counts twice, so that agreement lowers SE (below 0, where all samples agree).

This is the Monte Carlo estimate of their semantic entropy, over length-normalised probabilities as
in their experiments. Agrees with the authors' code (lorenzkuhn/semantic_uncertainty) except for its
constant shift, and with Ybakman/TruthTorchLM (truth_methods/semantic_entropy.py) where no text is
drawn twice. IINemo/lm-polygraph deliberately differs: it takes whole sequences' probabilities and a
mean over samples.
"""

import polars as pl

from tracecal.decode.traces import read_arrow
from tracecal.estimate.agreement import normalised

SCORES: dict[str, pl.Expr] = {
    "semantic_entropy": -pl.col("nats"),
}


def exact_meanings(samples: pl.DataFrame) -> pl.DataFrame:
    """`samples` with `meaning`, shared by an example's samples with the same normalised text."""
    return samples.with_columns(meaning=normalised(pl.col("text")).rank("dense").over("example_id"))


def entailed_meanings(samples: pl.DataFrame, comparisons: pl.DataFrame) -> pl.DataFrame:
    """`samples` with `meaning`: the first earlier sample that each entails and is entailed by.

    As in the authors' code, a sample is compared with the first sample of each earlier meaning, in
    order. It entails another where entailment is the likeliest relation.
    """
    entails = comparisons.filter(
        pl.col("hypothesis").is_not_null()
        & (pl.col("entailment") > pl.max_horizontal(pl.col("neutral"), pl.col("contradiction")))
    )
    pairs = set(entails.select("example_id", "premise", "hypothesis").iter_rows())
    meanings: dict[tuple[str, int], int] = {}
    firsts: dict[str, list[int]] = {}
    ordered = samples.sort("example_id", "sample")
    for example, sample in ordered.select("example_id", "sample").iter_rows():
        earlier = firsts.setdefault(example, [])
        same = (
            first
            for first in earlier
            if (example, first, sample) in pairs and (example, sample, first) in pairs
        )
        meaning = meanings[example, sample] = next(same, sample)
        if meaning == sample:
            earlier.append(sample)
    return ordered.with_columns(meaning=pl.Series(list(meanings.values()), dtype=pl.Int64))


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


def answers(samples: str, equivalence: str, comparisons: str | None = None) -> pl.DataFrame:
    """The semantic entropy of each evaluated prompt; `equivalence` is 'exact' or 'nli'."""
    drawn = read_arrow(samples, ["example_id", "sample", "surprisal", "text"])
    if equivalence == "nli":
        return entropies(entailed_meanings(drawn, read_arrow(comparisons)))
    return entropies(exact_meanings(drawn))
