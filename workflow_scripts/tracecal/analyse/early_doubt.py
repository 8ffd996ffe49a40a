"""How early can one tell? Confidence from the first tokens of an answer, and what stopping saves.

Each answer's trace is cut after its first tokens, and the estimators are computed, calibrated and
measured anew on what is left, by the operators, splits and fits of whole answers. An answer shorter
than a number of TOKENS counts with all of its tokens. SHARES of an answer are for looking back:
while it is generated nobody knows its length.

What a stop at so many tokens saves is in `tracecal.analyse.early_stop`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from tracecal.analyse.bootstrap import Bootstrap, interval, resample_metrics
from tracecal.analyse.early_stop import SAVINGS, Held, savings
from tracecal.analyse.gains import SIGNS
from tracecal.analyse.pairs import Pairs, Paths
from tracecal.calibrate.answers import raw_scores
from tracecal.calibrate.predict import calibrate_all, probabilities
from tracecal.calibrate.protocol import Method
from tracecal.decode.traces import read_traces
from tracecal.estimate.of_traces import inputs
from tracecal.features.prefix import first_tokens
from tracecal.storage.files import read_parquet
from tracecal.tasks.roles import evaluated

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
            labelled.select("example_id", "correct"), on="example_id", validate="1:1"
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
            known = labelled.join(inputs(seen, columns), on="example_id", validate="1:1")
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
