"""Findings on TRACE+ and baselines: ranking, and the exactness of probabilities."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from trace_workflow.tables.finding import (
    NUMBERS,
    Finding,
    Outcome,
    Topic,
    format_interval,
    outcome_of,
)
from trace_workflow.tables.metric_names import METRIC_NAMES
from trace_workflow.tables.study_results import Labels, rows_by
from trace_workflow.tables.wording import count, join_names

SELECTED = "the baseline selected on the calibration data"
RIVALS = {"picked": SELECTED, "named": "the prespecified baseline"}

MAIN = "main_comparison"
COMPARISON = Topic("comparison", MAIN, "{where}TRACE+ {verdict} {rival} ({numbers}).")
UNDEFINED = Topic(
    "comparison",
    MAIN,
    "{where}TRACE+ cannot be compared with {rival}: no {metric} on some task.",
)
AT_ONCE = Topic(
    "all baselines",
    MAIN,
    "With {percent:g}% intervals that hold for all baselines at once, TRACE+ is better than "
    "{counts}.",
)
HINDSIGHT = Topic(
    "hindsight",
    MAIN,
    "The best baseline in hindsight, {label} (AUROC {reference:.3f}, TRACE+ {value:.3f}), could "
    "not have been chosen beforehand, so it has no interval and is no evidence for or against "
    "TRACE+.",
)
OTHER_METHODS = Topic(
    "other methods", "broader_uq", "AUROC of methods of other families: {aurocs}."
)
MODELS = Topic(
    "models", "cross_model", "Over {pairs} of model and task, TRACE+ has a better {metric} {wins}."
)


class MetricWords(NamedTuple):
    """A metric's name, the metric that has to agree on a win, and words for each outcome."""

    name: str
    confirmed_by: str | None
    won: str
    tied: str
    lost: str


METRIC_WORDS = {
    "auroc": MetricWords(
        "AUROC",
        "auroc_calibrated",
        "ranks right above wrong answers better than",
        "ranks right above wrong answers about as well as",
        "ranks right above wrong answers worse than",
    ),
    "brier": MetricWords(
        "Brier score",
        None,
        "gives more exact probabilities than",
        "gives about as exact probabilities as",
        "gives less exact probabilities than",
    ),
}


def compare_with_baselines(
    improvements: pl.DataFrame, tasks: Labels, labels: Labels
) -> list[Finding]:
    """TRACE+ against the prespecified and the selected baseline.

    Over all tasks both metrics count, on single tasks the AUROC against the selected baseline. A
    win by AUROC counts only where calibrated probabilities win as well, as the direction of other
    raw scores is not fitted.
    """
    by_key = rows_by(improvements, "task", "against", "metric")
    findings = []
    for task in sorted({*improvements["task"]}, key=lambda task: task or ""):
        metrics, rivals = (METRIC_WORDS, RIVALS) if task is None else (["auroc"], ["picked"])
        for against in sorted(rivals):
            for metric in metrics:
                if row := by_key.get((task, against, metric)):
                    confirming = by_key.get((task, against, METRIC_WORDS[metric].confirmed_by))
                    findings.append(_comparison(row, confirming, tasks, labels))
    return findings


def _comparison(row: Mapping, confirming: Mapping | None, tasks: Labels, labels: Labels) -> Finding:
    words, task = METRIC_WORDS[row["metric"]], row["task"]
    facts = {"where": f"On {tasks[task]}, " if task else "", "rival": _rival(row, labels)}
    values = {name: row[name] for name in (*NUMBERS, "model", "task", "metric", "against")}
    values |= {"baseline": row["baseline"], "task_label": tasks.get(task)}
    if row["difference"] is None:
        return UNDEFINED.finding(metric=words.name, **facts)._replace(**values)
    outcome = outcome_of(row["low"], row["high"])
    numbers = f"{words.name} {row['value']:.3f} and {row['reference']:.3f}, {_difference(row)}"
    if confirming is not None and confirming["difference"] is not None:
        outcome = _agreed(outcome, outcome_of(confirming["low"], confirming["high"]))
        numbers += f"; of calibrated probabilities {_difference(confirming)}"
    verdict = "has no interval against" if outcome is None else getattr(words, outcome)
    finding = COMPARISON.finding(verdict=verdict, numbers=numbers, **facts)
    return finding._replace(outcome=outcome, **values)


def _agreed(first: Outcome | None, second: Outcome | None) -> Outcome | None:
    """The outcome by two metrics: a loss by either is a loss, a win needs both."""
    if first == second or None in (first, second):
        return first if first == second else None
    return "lost" if "lost" in (first, second) else "tied"


def _difference(row: Mapping) -> str:
    """The advantage of TRACE+, with its interval where it has one."""
    has_interval = row["low"] is not None
    ends = f", {format_interval(row['level'], row['low'], row['high'])}" if has_interval else ""
    return f"{abs(row['difference']):.3f} {'better' if row['difference'] > 0 else 'worse'}{ends}"


def _rival(row: Mapping, labels: Labels) -> str:
    label = labels.get(row["baseline"], row["baseline"])
    rival = RIVALS[row["against"]]
    often = "" if row["against"] == "named" else "most often "
    return f"{rival}, {often}{label}" if label else rival


def count_at_once(comparisons: pl.DataFrame) -> list[Finding]:
    """How many baselines TRACE+ is better or worse than, by intervals that hold at once."""
    overall = comparisons.filter(pl.col("task").is_null(), study="main")
    counts = []
    for metric in ("auroc", "auroc_calibrated", "brier"):
        rows = overall.filter(metric=metric)
        if rows.height:
            better, worse = (rows["low"] > 0).sum(), (rows["high"] < 0).sum()
            counts.append(f"{better} of {rows.height} by {METRIC_NAMES[metric]} (worse: {worse})")
    if not counts:
        return []
    return [AT_ONCE.finding(percent=100 * overall["level"].max(), counts=join_names(counts))]


def find_best_in_hindsight(oracle: pl.DataFrame, labels: Labels) -> list[Finding]:
    """The best baseline in hindsight, which is no evidence either way."""
    row = next(oracle.filter(pl.col("task").is_null()).iter_rows(named=True), None)
    if row is None or row["difference"] is None:
        return []
    return [HINDSIGHT.finding(**row, label=labels[row["baseline"]])]


def rank_other_methods(averages: pl.DataFrame, labels: Labels) -> list[Finding]:
    """The AUROC of estimators of other families, the best first."""
    ranking = averages.drop_nulls("mean").sort("mean", "estimator", descending=[True, False])
    aurocs = [f"{labels[row['estimator']]} {row['mean']:.2f}" for row in ranking.to_dicts()]
    return [OTHER_METHODS.finding(aurocs="; ".join(aurocs))] if aurocs else []


def count_wins_over_models(improvements: pl.DataFrame) -> list[Finding]:
    """On how many pairs of the cross-model study TRACE+ is better, and with which support."""
    findings = []
    for metric, words in METRIC_WORDS.items():
        by_rival = rows_by(improvements.filter(metric=metric), "against")
        rows = {rival: by_rival[rival,] for rival in sorted(RIVALS) if (rival,) in by_rival}
        if not rows:
            continue
        wins = [
            f"than {RIVALS[rival]} on {row['wins']} ({row['supported_wins']} with an interval "
            "above zero)"
            for rival, row in rows.items()
        ]
        pairs = count(max(row["tasks"] for row in rows.values()), "pair")
        findings.append(MODELS.finding(pairs=pairs, metric=words.name, wins=" and ".join(wins)))
    return findings
