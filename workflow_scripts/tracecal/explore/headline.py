"""A run's findings in a few sentences: for a terminal, the report's first page and README."""

from collections.abc import Mapping

import polars as pl

from tracecal.tables import answered
from tracecal.tables.settings import Frames, Labels, Settings

NAMES = {"auroc": "AUROC", "brier": "Brier"}
DIRECTION = {"auroc": "higher is better", "brier": "lower is better"}
HINDSIGHT = (
    "The best baseline is the one that turned out best here, for each metric and task by itself, "
    "which leans against TRACE+: an interval below zero proves no loss."
)


def findings(frames: Frames, settings: Settings) -> list[str]:
    """A run's findings on its main study's model, a sentence or two each, from the analyses.

    `settings` has the estimators, labels and, as `more`, what the main study's table needs.
    """
    main = settings.studies["main"]
    own = pl.col("task").is_in(main["tasks"]), pl.col("model") == main["model"]
    single = frames["improvements"].filter(pl.col("study").is_null(), *own, metric="auroc")
    overall = frames["averages"].filter(pl.col("task").is_null(), study="main")
    labels = {entry.id: entry.label for entry in settings.estimators}
    compared = headline(frames["improvements"], overall, labels | settings.models)
    compared += _by_task(single, labels, settings.tasks)
    broader = [entry.id for entry in settings.of_role("broader")]
    return [
        *answered.notes(frames, settings),
        *compared,
        *_others(overall.filter(pl.col("estimator").is_in(broader), metric="auroc"), labels),
        *([HINDSIGHT] if compared else []),
    ]


def headline(improvements: pl.DataFrame, main: pl.DataFrame, labels: Labels) -> list[str]:
    """One sentence per metric on TRACE+ against the best baseline, for each study.

    `main` holds the averages of the main study's model; `labels` names estimators and models. A
    difference counts as supported only where its interval excludes zero.
    """
    chosen = improvements.filter(pl.col("task").is_null(), pl.col("metric").is_in(list(NAMES)))
    trace = dict(main.filter(estimator="trace").select("metric", "mean").iter_rows())
    rows = chosen.filter(study="main").sort("metric").to_dicts()
    cross = chosen.filter(pl.col("model").is_null(), study="cross").sort("metric").to_dicts()
    return [_main(row, trace.get(row["metric"]), labels) for row in rows] + list(map(_cross, cross))


def _main(row: Mapping, trace: float | None, labels: Labels) -> str:
    model, metric = labels[row["model"]], NAMES[row["metric"]]
    if row["difference"] is None:
        return f"{metric} on {model}: TRACE+ or every baseline has no value on some task."
    beside = "" if trace is None else f", TRACE {trace:.3f}"
    return (
        f"{metric} on {model}, mean over tasks ({DIRECTION[row['metric']]}): TRACE+ "
        f"{row['value']:.3f}{beside}, best baseline {labels[row['baseline']]} "
        f"{row['reference']:.3f}. {_verdict(row)}"
    )


def _by_task(rows: pl.DataFrame, labels: Labels, tasks: Labels) -> list[str]:
    results = [
        f"{tasks[row['task']]} {row['value']:.2f}, {labels[row['baseline']]} {row['reference']:.2f}"
        + (f" ({support})" if (support := _support(row)) else "")
        for row in rows.drop_nulls("difference").sort("task").iter_rows(named=True)
    ]
    sentence = f"AUROC of TRACE+ and of the best baseline, task by task: {'; '.join(results)}."
    return [sentence] if results else []


def _others(averages: pl.DataFrame, labels: Labels) -> list[str]:
    ranked = averages.drop_nulls("mean").sort("mean", "estimator", descending=[True, False])
    results = [f"{labels[row['estimator']]} {row['mean']:.2f}" for row in ranked.to_dicts()]
    sentence = (
        "AUROC of methods of other families, which ask again, draw samples, read hidden states or "
        f"learn: {', '.join(results)}."
    )
    return [sentence] if results else []


def _cross(row: Mapping) -> str:
    wins = (
        f"{row['wins']} of {row['tasks']} model-task pairs, {row['supported_wins']} of them "
        "supported by their interval"
    )
    return f"{NAMES[row['metric']]} over models: TRACE+ is better than the best baseline on {wins}."


def _verdict(row: Mapping) -> str:
    words = (
        f"TRACE+ is {abs(row['difference']):.3f} {'better' if row['difference'] > 0 else 'worse'}"
    )
    if row["low"] is None:
        return f"{words}; no interval could be computed."
    interval = f"{100 * row['level']:g}% interval {row['low']:+.3f} to {row['high']:+.3f}"
    return f"{words} ({interval}): {_support(row) or 'not distinguishable from zero'}."


def _support(row: Mapping) -> str:
    """What a row's interval says of its difference; empty where it contains zero."""
    if row["low"] is None or row["low"] <= 0 <= row["high"]:
        return ""
    return "supported" if row["low"] > 0 else "interval below zero"
