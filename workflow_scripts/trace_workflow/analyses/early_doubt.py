"""Confidence from the first tokens of an answer, and the tokens that early stops save.

Every estimator is computed on prefixes of the answers, calibrated and evaluated as on whole
answers; `early_stopping` measures the savings.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from trace_workflow.analyses.early_stopping import SAVINGS, ResampledAnswers, savings
from trace_workflow.analyses.gains import SIGNS
from trace_workflow.analyses.labelled_answers import raw_scores
from trace_workflow.analyses.study_files import StudyFiles
from tracecal.calibration.fits import Method, probabilities
from tracecal.calibration.predictions import calibrate_all
from tracecal.calibration.resampling import Resampling, interval, resample_metrics
from tracecal.estimators.trace_inputs import compute_inputs
from tracecal.io.evaluated import evaluated
from tracecal.io.files import read_parquet
from tracecal.io.traces import read_traces

TOKENS = (1, 2, 3, 5, 8, 16)
SHARES = (0.10, 0.25, 0.50)
ALL = "all"
PREFIXES: Mapping[str, int | float | None] = {
    **{str(tokens): tokens for tokens in TOKENS},
    **{f"{100 * share:.0f}%": share for share in SHARES},
    ALL: None,
}
METRICS = ("auroc", "brier")
LISTS = ("surprisal", "entropy", "entropy_lower", "entropy_upper")
EARLY_DOUBT = {
    **dict.fromkeys(("model", "task", "estimator", "prefix", "metric"), pl.String),
    **dict.fromkeys(("value", "low", "high", "lost", "lost_low", "lost_high"), pl.Float64),
    "level": pl.Float64,
    "tokens": pl.Float64,
    "n": pl.Int64,
}
PREFIX_METRICS = {
    "task": pl.String,
    "estimator": pl.String,
    "prefix": pl.String,
    "metric": pl.String,
    "values": pl.List(pl.Float64),
    "tokens": pl.Float64,
    "n": pl.Int64,
}


def analysis(
    files: StudyFiles,
    *,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    bootstrap: Sequence[float],
) -> pl.DataFrame:
    """`early_doubt` of the pairs, the tasks of one model.

    `estimators` has the inputs of each fit by id, as for `calibrate_all`.
    """
    seed, resamples, level = Resampling(*bootstrap)
    frames = []
    for _, task, paths in files.by_pair("traces", "labels", "splits", "questions"):
        traces = read_traces(paths["traces"], ["example_id", "surprisal", "entropy"])
        labels = read_parquet(paths["labels"], ["example_id", "correct"])
        answers = evaluated(traces, paths["questions"], ["group_id"]).join(
            labels, on="example_id", validate="1:1"
        )
        splits = read_parquet(paths["splits"], ["example_id", "split", "rank", "part"])
        frames.append(
            measure_prefixes(
                answers, splits, task, estimators, method, seed=seed, resamples=resamples
            )
        )
    return early_doubt(pl.concat(frames), files.pairs[0][0], level)


def measure_prefixes(
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    task: str,
    estimators: Mapping[str, Sequence[str]],
    method: Method,
    *,
    seed: int,
    resamples: int,
) -> pl.DataFrame:
    """METRICS of each estimator after each of PREFIXES, and SAVINGS after numbers of TOKENS.

    Columns PREFIX_METRICS. `answers` has `example_id`, `group_id`, `correct`, `surprisal` and
    `entropy`. `values` begins with the sample's value, before each resample's; `tokens` is the mean
    length of a prefix.
    """
    answers = answers.sort("example_id")
    labels = answers.select("example_id", "group_id", "correct")
    columns = sorted({column for names in estimators.values() for column in names})
    lengths = answers["surprisal"].list.len().to_numpy()
    resampled_answers = ResampledAnswers.of(labels, splits, task, seed, resamples)
    rows, final_probabilities = [], {}
    # Prefixes of equal lengths are equal, and measured once.
    by_lengths: dict[bytes, dict[tuple[str, str], list[float]]] = {}
    # The whole answer first: stops are compared with it.
    for prefix in sorted(PREFIXES, key=lambda name: name != ALL):
        prefixes = first_tokens(answers, PREFIXES[prefix])
        prefix_lengths = prefixes["surprisal"].list.len().to_numpy()
        key = prefix_lengths.tobytes()
        if key not in by_lengths:
            scored = labels.join(compute_inputs(prefixes, columns), on="example_id", validate="1:1")
            predictions, fits = calibrate_all(scored, splits, estimators, method)
            resampled = resample_metrics(
                predictions,
                labels,
                raw_scores(scored),
                model="",
                task=task,
                estimators=list(estimators),
                seed=seed,
                resamples=resamples,
            )
            by_lengths[key] = {
                (estimator, metric): [observed, *values]
                for _, _, estimator, metric, observed, values in resampled.iter_rows()
                if metric in METRICS
            }
            early_probabilities = {
                estimator: probabilities(scored.select(names), fits[estimator].splits.values())
                for estimator, names in estimators.items()
            }
            final_probabilities = final_probabilities or early_probabilities
            for estimator in estimators:
                by_metric = savings(
                    early_probabilities[estimator],
                    final_probabilities[estimator],
                    lengths,
                    prefix_lengths,
                    resampled_answers,
                )
                by_lengths[key] |= {
                    (estimator, metric): values.tolist() for metric, values in by_metric.items()
                }
        # During generation the length, and so a share of an answer, is unknown.
        is_share = isinstance(PREFIXES[prefix], float)
        metrics = METRICS if is_share else (*METRICS, *SAVINGS)
        sizes = (float(prefix_lengths.mean()), len(answers))
        rows += [
            (task, estimator, prefix, metric, values, *sizes)
            for (estimator, metric), values in by_lengths[key].items()
            if metric in metrics
        ]
    return pl.DataFrame(rows, schema=PREFIX_METRICS, orient="row", nan_to_null=True)


def early_doubt(prefix_metrics: pl.DataFrame, model: str, level: float) -> pl.DataFrame:
    """A row per estimator, prefix and metric for each task, and without `task` for their mean.

    `prefix_metrics` has the rows of `measure_prefixes` of all tasks. `low` and `high` bound the
    interval that holds `level`. `lost` is the loss in the metric against whole answers, with its
    interval; None for SAVINGS. `n` counts the answers, `tokens` is the mean length of a
    prefix.
    """
    rows = []
    groups = prefix_metrics.group_by("estimator", "metric", maintain_order=True)
    for (estimator, metric), group in groups:
        by_task: dict[str, dict[str, tuple[np.ndarray, float, int]]] = {}
        columns = group.select("task", "prefix", "values", "tokens", "n")
        for task, prefix, values, tokens, n in columns.iter_rows():
            by_task.setdefault(task, {})[prefix] = (np.array(values, dtype=float), tokens, n)
        sign = SIGNS.get(metric, np.nan)
        scopes = {task: [task] for task in by_task} | {None: list(by_task)}
        for task, members in scopes.items():
            means = {
                prefix: np.mean([by_task[member][prefix][0] for member in members], axis=0)
                for prefix in PREFIXES
                if prefix in by_task[members[0]]
            }
            for prefix, values in means.items():
                lost = sign * means[ALL] - sign * values
                n = sum(by_task[member][prefix][2] for member in members)
                tokens = float(np.mean([by_task[member][prefix][1] for member in members]))
                bounds = [
                    end
                    for series in (values, lost)
                    for end in (series[0], *interval(series[1:], level)[:2])
                ]
                rows.append((model, task, estimator, prefix, metric, *bounds, level, tokens, n))
    return pl.DataFrame(rows, schema=EARLY_DOUBT, orient="row", nan_to_null=True)


def first_tokens(traces: pl.DataFrame, prefix: int | float | None) -> pl.DataFrame:
    """Cut the lists of traces to their first `prefix` tokens, or to that share of them, rounded up.

    None changes nothing.

    >>> traces = pl.DataFrame({"surprisal": [[3.0, 2.0, 1.0]], "entropy": [[3.0, 2.0, 1.0]]})
    >>> first_tokens(traces, 2)["entropy"].to_list(), first_tokens(traces, 0.5)["entropy"].to_list()
    ([[3.0, 2.0]], [[3.0, 2.0]])
    """
    if prefix is None:
        return traces
    length = pl.col("surprisal").list.len()
    n_tokens = (length * prefix).ceil() if isinstance(prefix, float) else pl.lit(prefix)
    lists = [name for name in LISTS if name in traces.columns]
    return traces.with_columns(pl.col(lists).list.head(n_tokens.cast(pl.Int64)))
