"""Whether the risk of an answer lies where it is wrong.

Of answers that hold right and wrong parts, how often a pointer points at a wrong part:

window            the window of peak risk, TRACE's operator M; it points at the part that has the
                  largest share of the window's entropy
max_surprisal,    the first token of the largest surprisal or entropy; it points at the part that it
max_entropy       spells, at each of several by halves and so on

and the same of chance, in expectation:

random_window     any window, by the rule of the peak's
random_token      any token of the answer
random_part       any part
failing_name      the answer's part whose name is wrong most often in the calibration part of a
                  split; the mean over the splits that evaluate the answer

A window or token outside of all parts points at none, which does not count as a hit.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses.part_scores import BOUNDS, bounded, labelled_parts, with_sample
from trace_workflow.analyses.study_files import Pairs, Paths
from tracecal.calibration.ranking import ratio
from tracecal.calibration.resampling import Bootstrap
from tracecal.features.operators import WINDOW, window_start
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces

POINTERS = ("window", "max_surprisal", "max_entropy")
CHANCE = ("random_window", "random_token", "random_part", "failing_name")
COUNTS = ("answers", "without_parts", "mixed", "parts", "missing", "wrong")
LOCALISATION = {
    "model": pl.String,
    "task": pl.String,
    "pointer": pl.String,
    **BOUNDS,
    "pointed": pl.Int64,
    **dict.fromkeys(COUNTS, pl.Int64),
}


def analysis(
    traces: Paths,
    wholes: Paths,
    labels: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    bootstrap: Sequence[float],
) -> pl.DataFrame:
    """One row per pair and pointer; columns LOCALISATION. `wholes` are the traces of the answers
    that the parts' `traces` are cut from.

    `pointed` are the mixed answers, those with right and wrong parts, for which the pointer is
    defined. Of COUNTS, `answers` are those of the task, `without_parts` those that do not hold any
    in the form that is asked for, `missing` parts those that the others lack.
    """
    frames = []
    for (model, task), *paths in zip(pairs, traces, wholes, labels, splits, questions, strict=True):
        trace, whole, label, split, question = paths
        parts = labelled_parts(question, label)
        places = read_traces(trace, ["example_id", "surprisal", "start", "end"])
        placed = parts.join(
            places.select("example_id", "start", "end"), on="example_id", validate="1:1"
        )
        answers = mixed_answers(placed, read_traces(whole, ["example_id", "surprisal", "entropy"]))
        failing = failing_names(parts, read_parquet(split, ["example_id", "split", "part"]))
        hits = pointed(answers, failing)
        rows = localisation(hits, answers["group_id"].to_list(), Bootstrap(*bootstrap))
        counts = counted(read_parquet(question, ["role", "parent_id"]), parts)
        named = {"model": model, "task": task} | counts | {"mixed": answers.height}
        frames.append(rows.with_columns(**{name: pl.lit(value) for name, value in named.items()}))
    return pl.concat(frame.select(*LOCALISATION).cast(LOCALISATION) for frame in frames)


def mixed_answers(parts: pl.DataFrame, traces: pl.DataFrame) -> pl.DataFrame:
    """The answers that hold right and wrong parts, sorted by `parent_id`: `group_id`, `surprisal`,
    `entropy`, `peak` (the first token of the window of peak risk), and lists over the parts of
    `part`, `start`, `end` and `wrong`.
    """
    both = pl.col("correct").any() & ~pl.col("correct").all()
    lists = parts.filter(both.over("parent_id")).sort("parent_id", "start", "part")
    answers = lists.group_by("parent_id", maintain_order=True).agg(
        pl.col("group_id").first(), "part", "start", "end", wrong=~pl.col("correct")
    )
    own = traces.rename({"example_id": "parent_id"})
    peak = window_start(pl.col("entropy"), WINDOW).cast(pl.Int64)
    joined = answers.join(own, on="parent_id", how="left", maintain_order="left")
    return joined.with_columns(peak=peak)


def failing_names(parts: pl.DataFrame, splits: pl.DataFrame) -> pl.DataFrame:
    """`example_id`, `split` and the error `rate` of its part's name in the calibration part, of
    each evaluated part.
    """
    role = splits.rename({"part": "role"})
    placed = parts.join(role, on="example_id").with_columns(wrong=~pl.col("correct"))
    rates = placed.filter(role="calibration").group_by("split", "part").agg(rate=pl.mean("wrong"))
    seen = placed.filter(role="evaluation").join(rates, on=["split", "part"], how="left")
    return seen.select("parent_id", "part", "split", rate=pl.col("rate").fill_null(0.0))


def pointed(answers: pl.DataFrame, failing: pl.DataFrame) -> Mapping[str, np.ndarray]:
    """By pointer: how much of it points at a wrong part of each mixed answer, [answers] from 0 to
    1; NaN where it is not defined.
    """
    rows = [_hits(row) for row in answers.iter_rows(named=True)]
    read = {
        name: np.array([row[name] for row in rows], dtype=float)
        for name in (*POINTERS, *CHANCE)
        if name != "failing_name"
    }
    return read | {"failing_name": _failing_hits(answers, failing)}


def _hits(row: Mapping) -> dict[str, float]:
    """The hits of one answer by each pointer that reads its trace."""
    start, end, wrong = (np.array(row[name]) for name in ("start", "end", "wrong"))
    surprisal = np.array(row["surprisal"], dtype=float)
    tokens = np.arange(len(surprisal))[:, None]
    inside = (tokens >= start) & (tokens < end)  # [tokens, parts]
    at_token = (inside & wrong).sum(1) / np.maximum(inside.sum(1), 1)
    hits = {
        "max_surprisal": at_token[surprisal.argmax()],
        "random_token": at_token.mean(),
        "random_part": wrong.mean(),
        **dict.fromkeys(("window", "max_entropy", "random_window"), np.nan),
    }
    if row["entropy"] is not None:
        entropy = np.array(row["entropy"], dtype=float)
        at_window = _at_windows(entropy, start, end, wrong)
        hits["max_entropy"] = at_token[entropy.argmax()]
        hits["window"], hits["random_window"] = at_window[row["peak"]], at_window.mean()
    return hits


def _at_windows(
    entropy: np.ndarray, start: np.ndarray, end: np.ndarray, wrong: np.ndarray
) -> np.ndarray:
    """Whether each window points at a wrong part, [windows]."""
    width = min(WINDOW, len(entropy))
    upto = np.concatenate([[0.0], np.cumsum(entropy)])
    first = np.arange(len(entropy) - width + 1)[:, None]
    begin, stop = np.maximum(first, start), np.minimum(first + width, end)
    risk = np.where(begin < stop, upto[np.maximum(begin, stop)] - upto[begin], -1.0)
    most = risk.argmax(1)
    return wrong[most] & (risk.max(1) >= 0)


def _failing_hits(answers: pl.DataFrame, failing: pl.DataFrame) -> np.ndarray:
    """The hits of the name that fails most often, [answers]; equal names count in equal shares."""
    parts = answers.select("parent_id", "part", "wrong").explode("part", "wrong")
    rated = failing.join(parts, on=["parent_id", "part"])
    keys = ("parent_id", "split")
    most = rated.filter(pl.col("rate") == pl.col("rate").max().over(keys))
    by_split = most.group_by(keys).agg(pl.mean("wrong"))
    by_answer = by_split.sort(keys).group_by("parent_id").agg(pl.mean("wrong").alias("hit"))
    found = answers.select("parent_id").join(
        by_answer, on="parent_id", how="left", maintain_order="left"
    )
    return found["hit"].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def localisation(
    hits: Mapping[str, np.ndarray], groups: Sequence[str], bootstrap: Bootstrap
) -> pl.DataFrame:
    """`pointer`, the mean hit with its interval by a bootstrap over groups, and `pointed`."""
    counts = with_sample(groups, bootstrap)
    rows = []
    for name, values in hits.items():
        known = ~np.isnan(values)
        drawn = counts[:, known]
        means = ratio(drawn @ values[known], drawn.sum(1))
        rows.append((name, *bounded(means, bootstrap.level), int(known.sum())))
    schema = {name: LOCALISATION[name] for name in ("pointer", *BOUNDS, "pointed")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def counted(questions: pl.DataFrame, parts: pl.DataFrame) -> dict[str, int]:
    """COUNTS but `mixed`."""
    answers = set(questions["parent_id"])
    holding = set(parts["parent_id"])
    lacking = questions.filter(role="unanswered")
    missing = lacking.filter(pl.col("parent_id").is_in(list(holding)))
    return {
        "answers": len(answers),
        "without_parts": len(answers - holding),
        "parts": parts.height,
        "missing": missing.height,
        "wrong": int((~parts["correct"]).sum()),
    }
