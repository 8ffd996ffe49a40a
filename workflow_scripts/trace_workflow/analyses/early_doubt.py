"""Confidence from a prefix: how early one can tell, and what stopping early saves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from trace_workflow.analyses.improvements import SIGNS
from trace_workflow.analyses.study_files import Pairs, Paths
from tracecal.calibration.fits import Method
from tracecal.calibration.predictions import calibrate_all, probabilities, raw_scores
from tracecal.calibration.ranking import ratio
from tracecal.calibration.resampling import (
    Bootstrap,
    draw_counts,
    draw_splits,
    interval,
    mean_over_splits,
    resample_metrics,
)
from tracecal.estimators.trace_inputs import compute_inputs
from tracecal.features.prefix import first_tokens
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces

KEPT = 0.5
# Rules that stop so many more of the answers of a calibration part are compared.
STEP = 0.02
# The share of all tokens that are not generated, the share of the answers that are kept less what
# it is without stops, and the same of the error rate among those kept.
SAVINGS = ("saved", "kept_change", "error_change")


@dataclass(frozen=True)
class Held:
    """A task's answers: `correct` [n], who `calibrates` [splits, n], how often each split counts in
    the sample and the resamples [splits, 1 + resamples], and by split how often each answer is
    drawn where it does, `counts` [those, n].
    """

    correct: np.ndarray
    calibrates: np.ndarray
    in_resample: np.ndarray
    counts: Sequence[np.ndarray]

    @classmethod
    def of(
        cls, answers: pl.DataFrame, splits: pl.DataFrame, task: str, seed: int, resamples: int
    ) -> "Held":
        """`answers` has `example_id` (sorted), `group_id` and `correct`; `splits` also `part`."""
        calibration = splits.filter(part="calibration").partition_by("split", as_dict=True)
        ids = answers["example_id"]
        drawn = draw_counts(answers["group_id"].to_list(), seed, resamples)
        counts = np.vstack([np.ones(len(answers)), drawn])
        in_resample = draw_splits(len(calibration), task, seed, resamples)
        return cls(
            answers["correct"].to_numpy(),
            np.array(
                [ids.is_in(calibration[key]["example_id"].implode()) for key in sorted(calibration)]
            ),
            in_resample,
            [counts[used] for used in in_resample > 0],
        )


class Rule(NamedTuple):
    """Answers are stopped `below` an early probability and kept from the final one `least`, or
    from `usual` where none are stopped.
    """

    below: float
    least: float
    usual: float


def rule(early: np.ndarray, final: np.ndarray, correct: np.ndarray) -> Rule:
    """The rule that stops most answers of a calibration part, arrays [n], n >= 1."""
    n = len(correct)
    kept = max(1, round(KEPT * n))
    usual = float(np.sort(final)[-kept])
    allowed = (~correct[final >= usual]).mean()
    stops = np.unique(np.arange(STEP * n, n - kept + 1, max(STEP * n, 1)).astype(int))
    # A row for each number of stops. With ties fewer are stopped than meant, and more may be kept.
    below = np.sort(early)[stops, None]
    last = np.where(early >= below, final, -np.inf)
    least = np.sort(last)[:, -kept, None]
    held = last >= least
    good = np.flatnonzero((held & ~correct).sum(axis=1) / held.sum(axis=1) <= allowed)
    if not len(good):
        return Rule(-np.inf, usual, usual)
    return Rule(float(below[good[-1], 0]), float(least[good[-1], 0]), usual)


def savings(
    early: np.ndarray,
    final: np.ndarray,
    lengths: np.ndarray,
    seen: np.ndarray,
    held: Held,
) -> dict[str, np.ndarray]:
    """SAVINGS of one estimator, [1 + resamples]: of the sample and of each resample.

    `early` and `final` are its probabilities [splits, n] after `seen` tokens and at the end;
    `lengths` and `seen` [n] count tokens.
    """
    found = np.full((len(SAVINGS), *held.in_resample.shape), np.nan)
    for split, calibrates in enumerate(held.calibrates):
        own, last = early[split], final[split]
        known = np.isfinite(own) & np.isfinite(last)
        fitted, tested = known & calibrates, known & ~calibrates
        if not fitted.any():
            continue
        below, least, usual = rule(own[fitted], last[fitted], held.correct[fitted])
        own, last, wrong, length = own[tested], last[tested], ~held.correct[tested], lengths[tested]
        stopped, before = own < below, last >= usual
        kept = ~stopped & (last >= least)
        summed = [stopped * (length - seen[tested]), length, kept, kept & wrong]
        summed += [before, before & wrong, np.ones_like(length)]
        columns = np.zeros((len(tested), len(summed)))
        columns[tested] = np.column_stack(summed)
        left, tokens, kept, kept_wrong, before, before_wrong, n = (held.counts[split] @ columns).T
        found[:, split, held.in_resample[split] > 0] = [
            ratio(left, tokens),
            ratio(kept - before, n),
            ratio(kept_wrong, kept) - ratio(before_wrong, before),
        ]
    return {
        metric: mean_over_splits(values, held.in_resample)
        for metric, values in zip(SAVINGS, found, strict=True)
    }


# How early can one tell? Confidence from the first tokens of an answer, and what stopping saves.


TOKENS = (1, 2, 3, 5, 8, 16)
SHARES = (0.10, 0.25, 0.50)
ALL = "all"
PREFIXES: Mapping[str, int | float | None] = {
    **{str(tokens): tokens for tokens in TOKENS},
    **{f"{100 * share:.0f}%": share for share in SHARES},
    ALL: None,
}
METRICS = ("auroc", "brier")
EARLY_DOUBT = {
    **dict.fromkeys(("model", "task", "estimator", "prefix", "metric"), pl.String),
    **dict.fromkeys(("value", "low", "high", "lost", "lost_low", "lost_high"), pl.Float64),
    "level": pl.Float64,
    "tokens": pl.Float64,
    "n": pl.Int64,
}
MEASURED = {
    "task": pl.String,
    "estimator": pl.String,
    "prefix": pl.String,
    "metric": pl.String,
    "values": pl.List(pl.Float64),
    "tokens": pl.Float64,
    "n": pl.Int64,
}


def analysis(
    traces: Paths,
    labels: Paths,
    splits: Paths,
    questions: Paths,
    pairs: Pairs,
    *,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    bootstrap: Sequence[float],
) -> pl.DataFrame:
    """`early_doubt` of `pairs`, the tasks of one model, from their files.

    `estimators` has the inputs of each one's fit, as `calibrate_all` takes them.
    """
    seed, resamples, level = Bootstrap(*bootstrap)
    rows = []
    for (_, task), trace_file, label_file, split_file, question in zip(
        pairs, traces, labels, splits, questions, strict=True
    ):
        known = read_traces(trace_file, ["example_id", "surprisal", "entropy"])
        labelled = read_parquet(label_file, ["example_id", "correct"])
        answers = evaluated(known, question, ["group_id"]).join(
            labelled, on="example_id", validate="1:1"
        )
        divided = read_parquet(split_file, ["example_id", "split", "rank", "part"])
        rows.append(
            measured(answers, divided, task, estimators, method, seed=seed, resamples=resamples)
        )
    return early_doubt(pl.concat(rows), pairs[0][0], level)


def measured(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    task: str,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    *,
    seed: int,
    resamples: int,
) -> pl.DataFrame:
    """METRICS of each estimator after each of PREFIXES, and SAVINGS after so many TOKENS: MEASURED.

    `answers` has `example_id`, `group_id`, `correct`, `surprisal` and `entropy`. `values` are those
    of the sample and of each resample, `tokens` the mean number of tokens seen.
    """
    answers = answers.sort("example_id")
    columns = sorted({column for names in estimators.values() for column in names})
    labelled = answers.select("example_id", "group_id", "correct")
    held = Held.of(labelled, splits, task, seed, resamples)
    lengths = answers["surprisal"].list.len().to_numpy()
    rows, final = [], {}
    found: dict[bytes, dict[tuple[str, str], list[float]]] = {}  # by the tokens that are seen
    # The whole answer first: stops are compared with it.
    for prefix in sorted(PREFIXES, key=lambda name: name != ALL):
        seen = first_tokens(answers, PREFIXES[prefix])
        seen_lengths = seen["surprisal"].list.len().to_numpy()
        if (same := seen_lengths.tobytes()) not in found:
            known = labelled.join(compute_inputs(seen, columns), on="example_id", validate="1:1")
            predictions, fits = calibrate_all(known, splits, estimators, method)
            resampled = resample_metrics(
                predictions,
                labelled,
                raw_scores(known),
                model="",
                task=task,
                estimators=list(estimators),
                seed=seed,
                resamples=resamples,
            )
            found[same] = {
                (name, metric): [observed, *drawn]
                for _, _, name, metric, observed, drawn in resampled.iter_rows()
                if metric in METRICS
            }
            early = {
                name: probabilities(known.select(own), fits[name]["splits"].values())
                for name, own in estimators.items()
            }
            final = final or early
            for name in estimators:
                saving = savings(early[name], final[name], lengths, seen_lengths, held)
                found[same] |= {(name, metric): one.tolist() for metric, one in saving.items()}
        # While it is generated nobody knows when a share of an answer is reached.
        told = METRICS if isinstance(PREFIXES[prefix], float) else (*METRICS, *SAVINGS)
        of_prefix = (float(seen_lengths.mean()), len(answers))
        rows += [
            (task, name, prefix, metric, drawn, *of_prefix)
            for (name, metric), drawn in found[same].items()
            if metric in told
        ]
    return pl.DataFrame(rows, schema=MEASURED, orient="row", nan_to_null=True)


def early_doubt(found: pl.DataFrame, model: str, level: float) -> pl.DataFrame:
    """A row per estimator, prefix and metric for each task, and without `task` for their mean.

    `found` has the rows of `measured` of all tasks. `low` and `high` bound the interval that holds
    `level`. `lost` is by how much the metric is worse than on whole answers, with its own interval;
    null for SAVINGS. `n` counts the answers, `tokens` those seen on average.
    """
    rows = []
    for (name, metric), part in found.group_by("estimator", "metric", maintain_order=True):
        by_task: dict[str, dict[str, tuple[np.ndarray, float, int]]] = {}
        for task, prefix, values, tokens, n in part.select(
            "task", "prefix", "values", "tokens", "n"
        ).iter_rows():
            by_task.setdefault(task, {})[prefix] = (np.array(values, dtype=float), tokens, n)
        scopes = {task: [task] for task in by_task} | {None: list(by_task)}
        for task, members in scopes.items():
            means = {
                prefix: np.mean([by_task[one][prefix][0] for one in members], axis=0)
                for prefix in PREFIXES
                if prefix in by_task[members[0]]
            }
            for prefix, values in means.items():
                sign = SIGNS.get(metric, np.nan)
                lost = sign * means[ALL] - sign * values
                n = sum(by_task[one][prefix][2] for one in members)
                tokens = float(np.mean([by_task[one][prefix][1] for one in members]))
                ends = [(one[0], *interval(one[1:], level)[:2]) for one in (values, lost)]
                rows.append(
                    (model, task, name, prefix, metric, *ends[0], *ends[1], level, tokens, n)
                )
    return pl.DataFrame(rows, schema=EARLY_DOUBT, orient="row", nan_to_null=True)
