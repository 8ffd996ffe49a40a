"""Whether the risk of an answer lies where it is wrong.

How often a pointer hits a wrong part, in answers with right and wrong parts:

window            the window of peak risk, TRACE's operator M; it points at the part that has the
                  largest share of the window's entropy
max_surprisal,    the first token of the largest surprisal or entropy; it points at the part that
max_entropy       holds the token, or at several in equal shares

and the same by chance, in expectation:

random_window     any window, with the peak's rule
random_token      any token of the answer
random_part       any part
failing_name      the answer's part whose name is wrong most often in the calibration part of a
                  split; the mean over the splits that evaluate the answer

A window or token outside all parts is no hit.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses import part_metrics
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.estimators.features import WINDOW
from tracecal.estimators.operators import window_start
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces
from tracecal.statistics.ranking_metrics import ratio
from tracecal.statistics.resampling import Resampling

POINTERS = ("window", "max_surprisal", "max_entropy")
CHANCE = ("random_window", "random_token", "random_part", "failing_name")
COUNTS = ("answers", "without_parts", "mixed", "parts", "missing", "wrong")
LOCALISATION = {
    **dict.fromkeys(("model", "task", "pointer"), pl.String),
    **part_metrics.BOUNDS,
    **dict.fromkeys(("pointed", *COUNTS), pl.Int64),
}


def analysis(files: StudyFiles, bootstrap: Sequence[float]) -> pl.DataFrame:
    """A row per pair and pointer; columns LOCALISATION.

    The files `wholes` are the traces of the answers that the parts' `traces` are cut from.
    `pointed` counts the mixed answers, with right and wrong parts, for which the pointer is
    defined. Among COUNTS, `answers` counts all answers to the task, `without_parts` the answers
    without any part in the requested form, `missing` the parts that other answers lack.
    """
    frames = []
    kinds = ("traces", "wholes", "labels", "splits", "questions")
    for model, task, paths in files.by_pair(*kinds):
        parts = part_metrics.read_parts(paths["questions"], paths["labels"])
        places = read_traces(paths["traces"], ["example_id", "surprisal", "start", "end"])
        placed = parts.join(places.drop("surprisal"), on="example_id", validate="1:1")
        traces = read_traces(paths["wholes"], ["example_id", "surprisal", "entropy"])
        answers = mixed_answers(placed, traces)
        splits = read_parquet(paths["splits"], ["example_id", "split", "part"])
        hits = pointer_hits(answers, name_error_rates(parts, splits))
        rows = localisation(hits, answers["group_id"].to_list(), Resampling(*bootstrap))
        counts = count_parts(read_parquet(paths["questions"], ["role", "parent_id"]), parts)
        columns = {"model": model, "task": task} | counts | {"mixed": answers.height}
        frames.append(rows.with_columns(**{name: pl.lit(value) for name, value in columns.items()}))
    return pl.concat(frame.select(*LOCALISATION).cast(LOCALISATION) for frame in frames)


def mixed_answers(parts: pl.DataFrame, traces: pl.DataFrame) -> pl.DataFrame:
    """The answers with right and wrong parts, sorted by `parent_id`.

    Columns `group_id`, `surprisal`, `entropy`, `peak` (the first token of the window of peak risk),
    and lists over the parts of `part`, `start`, `end` and `wrong`.
    """
    is_mixed = pl.col("correct").any() & ~pl.col("correct").all()
    mixed = parts.filter(is_mixed.over("parent_id")).sort("parent_id", "start", "part")
    answers = mixed.group_by("parent_id", maintain_order=True).agg(
        pl.col("group_id").first(), "part", "start", "end", wrong=~pl.col("correct")
    )
    peak = window_start(pl.col("entropy"), WINDOW).cast(pl.Int64)
    by_parent = traces.rename({"example_id": "parent_id"})
    joined = answers.join(by_parent, on="parent_id", how="left", maintain_order="left")
    return joined.with_columns(peak=peak)


def name_error_rates(parts: pl.DataFrame, splits: pl.DataFrame) -> pl.DataFrame:
    """The error `rate` of each evaluated part's name in the calibration part of a split.

    Columns `parent_id`, `part`, `split` and `rate`.
    """
    role = splits.rename({"part": "role"})
    divided = parts.join(role, on="example_id").with_columns(wrong=~pl.col("correct"))
    rates = divided.filter(role="calibration").group_by("split", "part").agg(rate=pl.mean("wrong"))
    rated = divided.filter(role="evaluation").join(rates, on=["split", "part"], how="left")
    return rated.select("parent_id", "part", "split", rate=pl.col("rate").fill_null(0.0))


def pointer_hits(answers: pl.DataFrame, name_rates: pl.DataFrame) -> Mapping[str, np.ndarray]:
    """The hits of each pointer on wrong parts of the mixed answers, [answers].

    From 0 to 1, NaN where the pointer is undefined.
    """
    rows = [_trace_hits(row) for row in answers.iter_rows(named=True)]
    hits = {
        name: np.array([row[name] for row in rows], dtype=float)
        for name in (*POINTERS, *CHANCE)
        if name != "failing_name"
    }
    return hits | {"failing_name": _failing_name_hits(answers, name_rates)}


def localisation(
    hits: Mapping[str, np.ndarray], groups: Sequence[str], bootstrap: Resampling
) -> pl.DataFrame:
    """`pointer`, the mean hit with its interval by a bootstrap over groups, and `pointed`."""
    counts = part_metrics.sample_and_resamples(groups, bootstrap)
    rows = []
    for pointer, values in hits.items():
        defined = ~np.isnan(values)
        weights = counts[:, defined]
        means = ratio(weights @ values[defined], weights.sum(1))
        rows.append((pointer, *part_metrics.bounds_of(means, bootstrap.level), int(defined.sum())))
    schema = {name: LOCALISATION[name] for name in ("pointer", *part_metrics.BOUNDS, "pointed")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def count_parts(questions: pl.DataFrame, parts: pl.DataFrame) -> dict[str, int]:
    """COUNTS but `mixed`."""
    answers, with_parts = set(questions["parent_id"]), set(parts["parent_id"])
    unanswered = questions.filter(role="unanswered")
    missing = unanswered.filter(pl.col("parent_id").is_in(list(with_parts)))
    return {
        "answers": len(answers),
        "without_parts": len(answers - with_parts),
        "parts": parts.height,
        "missing": missing.height,
        "wrong": int((~parts["correct"]).sum()),
    }


def _trace_hits(row: Mapping) -> dict[str, float]:
    """The hits of an answer by each pointer that reads its trace."""
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
        at_window = _window_hits(entropy, start, end, wrong)
        hits["max_entropy"] = at_token[entropy.argmax()]
        hits["window"], hits["random_window"] = at_window[row["peak"]], at_window.mean()
    return hits


def _window_hits(
    entropy: np.ndarray, start: np.ndarray, end: np.ndarray, wrong: np.ndarray
) -> np.ndarray:
    """Whether each window points at a wrong part, [windows]."""
    width = min(WINDOW, len(entropy))
    sums = np.concatenate([[0.0], np.cumsum(entropy)])
    first = np.arange(len(entropy) - width + 1)[:, None]
    begin, stop = np.maximum(first, start), np.minimum(first + width, end)
    risk = np.where(begin < stop, sums[np.maximum(begin, stop)] - sums[begin], -1.0)
    return wrong[risk.argmax(1)] & (risk.max(1) >= 0)


def _failing_name_hits(answers: pl.DataFrame, name_rates: pl.DataFrame) -> np.ndarray:
    """The hits of the name that fails most often, [answers]; tied names count in equal shares."""
    parts = answers.select("parent_id", "part", "wrong").explode("part", "wrong")
    rated = name_rates.join(parts, on=["parent_id", "part"])
    keys = ("parent_id", "split")
    failing = rated.filter(pl.col("rate") == pl.col("rate").max().over(keys))
    by_split = failing.group_by(keys).agg(pl.mean("wrong"))
    by_answer = by_split.sort(keys).group_by("parent_id").agg(pl.mean("wrong").alias("hit"))
    hits = answers.select("parent_id").join(
        by_answer, on="parent_id", how="left", maintain_order="left"
    )
    return hits["hit"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
