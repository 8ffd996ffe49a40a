"""A run's outcome in a few sentences, for the end of a terminal's output."""

from collections.abc import Mapping

import polars as pl

NAMES = {"auroc": "AUROC", "brier": "Brier"}
DIRECTION = {"auroc": "higher is better", "brier": "lower is better"}


def headline(improvements: pl.DataFrame, labels: Mapping[str, str]) -> list[str]:
    """One sentence per metric on TRACE+ against the best baseline, for each study.

    `improvements` is the analysis of that name; `labels` names estimators and models. A difference
    counts as shown only where its interval excludes zero.
    """
    averages = improvements.filter(pl.col("task").is_null(), pl.col("metric").is_in(list(NAMES)))
    main = averages.filter(study="main").sort("metric").to_dicts()
    cross = averages.filter(pl.col("model").is_null(), study="cross").sort("metric").to_dicts()
    return [_main(row, labels) for row in main] + [_cross(row) for row in cross]


def _main(row: Mapping, labels: Mapping[str, str]) -> str:
    model, metric = labels.get(row["model"], row["model"]), NAMES[row["metric"]]
    if row["difference"] is None:
        return f"{metric} on {model}: TRACE+ or every baseline has no value on some task."
    baseline = labels.get(row["baseline"], row["baseline"])
    return (
        f"{metric} on {model}, mean over tasks ({DIRECTION[row['metric']]}): TRACE+ "
        f"{row['value']:.3f}, best baseline {baseline} {row['reference']:.3f}. {_verdict(row)}"
    )


def _cross(row: Mapping) -> str:
    wins = (
        f"{row['wins']} of {row['tasks']} model-task pairs, {row['supported_wins']} of them "
        "supported by their interval"
    )
    return f"{NAMES[row['metric']]} over models: TRACE+ is better than the best baseline on {wins}."


def _verdict(row: Mapping) -> str:
    better = row["difference"] > 0
    words = f"TRACE+ is {abs(row['difference']):.3f} {'better' if better else 'worse'}"
    if row["low"] is None:
        return f"{words}; no interval could be computed."
    interval = f"{100 * row['level']:g}% interval {row['low']:+.3f} to {row['high']:+.3f}"
    shown = row["low"] > 0 if better else row["high"] < 0
    return f"{words} ({interval}): {'supported' if shown else 'not distinguishable from zero'}."
