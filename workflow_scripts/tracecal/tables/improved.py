"""TRACE+ against the best baseline: the columns and sentences of tables that print improvements."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from tracecal.analyse.improvements import TRACE_PLUS
from tracecal.tables import answered
from tracecal.tables.answered import Fewer, fewer_in
from tracecal.tables.phrases import (
    BETTER,
    CLAIMED,
    LEFT_OUT,
    METRICS,
    NAMES,
    marked,
    named,
    partly,
    unscored,
)
from tracecal.tables.settings import Frames, Settings
from tracecal.writers.table import Column, better_of

UNSUPPORTED = "§"
BEST, IMPROVEMENT = "best_baseline", "improvement"
BOLD = "Bold: the better of Best Non-TRACE and TRACE+, unless both print alike."
BETTER_BOLD = "Bold: the better of the best baseline and TRACE+, unless both print alike."
# The CSV's names for the columns of `improvements`: those printed, then those in the CSV alone.
VALUES = {"reference": BEST, "value": TRACE_PLUS, "difference": IMPROVEMENT}
MORE = {
    "baseline": f"{BEST}_id",
    "reference_sd": f"{BEST}_sd",
    "value_sd": f"{TRACE_PLUS}_sd",
    "difference_sd": f"{IMPROVEMENT}_sd",
    "low": f"{IMPROVEMENT}_low",
    "high": f"{IMPROVEMENT}_high",
    "undefined": "undefined_splits",
}
COUNTS = {name: name for name in ("tasks", "wins", "supported_wins")}
Improvement = Mapping[str, object]  # a row of the analysis


def wide(
    improvements: pl.DataFrame,
    frames: Frames,
    settings: Settings,
    *scope: str,
    metrics: Sequence[str] = METRICS,
) -> pl.DataFrame:
    """A row per `scope`, models in their order, with the columns of each metric under its name and
    how many answers are `right`, of how many `answers`, and their `accuracy`.
    """
    order = [settings.in_order() if name == "model" else pl.col(name) for name in scope]
    frame = improvements.select(scope).unique().sort(order, nulls_last=True)
    names = VALUES | MORE | COUNTS
    for metric in metrics:
        own = improvements.filter(metric=metric)
        columns = own.select(*scope, *(pl.col(k).alias(f"{metric}_{v}") for k, v in names.items()))
        frame = frame.join(columns, on=scope, how="left", nulls_equal=True, maintain_order="left")
    counted = answered.counts(frames, settings, scope)
    return frame.join(counted, on=scope, how="left", nulls_equal=True, maintain_order="left")


def best_labels(settings: Settings) -> list[pl.Expr]:
    """The columns of the best baselines' labels."""
    labels = {entry.id: entry.label for entry in settings.estimators}
    return [
        pl.col(f"{metric}_{BEST}_id")
        .replace_strict(labels, default=None, return_dtype=pl.String)
        .alias(f"{metric}_{BEST}_label")
        for metric in METRICS
    ]


def best_column(
    table: str, metric: str, heading: str, group: str, missing: Fewer, *scope: str
) -> Column:
    """The best baseline's label, marked where it is `missing` answers."""
    key = f"{metric}_{BEST}"
    return Column(
        (f"{key}_label",),
        heading,
        group,
        align="left",
        printed=named(table, f"{key}_id", f"{key}_label"),
        mark=unscored(missing, f"{key}_id", *scope),
    )


def few_notes(missing: Fewer, frame: pl.DataFrame, settings: Settings, *scope: str) -> list[str]:
    """Explains the mark of the best baselines in `frame` that are `missing` answers."""

    def is_best(key: tuple[str, str, str]) -> bool:
        is_marked = [fewer_in([key], f"{metric}_{BEST}_id", *scope) for metric in METRICS]
        return not frame.filter(pl.any_horizontal(is_marked)).is_empty()

    best = {key: share for key, share in missing.items() if is_best(key)}
    return answered.footnotes(best, settings)


def right_columns(accuracy: bool = True) -> list[Column]:
    """How many answers are right, of how many."""
    group = "Answers"
    share = [Column(("accuracy",), "Acc.", group, added=True)] if accuracy else []
    return [*share, Column(("right", "answers"), "Right", group, added=True)]


def columns_of(*names: str, metrics: Sequence[str] = METRICS) -> list[str]:
    """The columns of the metrics, name by name."""
    return [f"{metric}_{name}" for name in names for metric in metrics]


def further_columns(metrics: Sequence[str] = METRICS) -> list[str]:
    """The columns that are in the CSV alone, metric by metric."""
    return [f"{metric}_{name}" for metric in metrics for name in MORE.values()]


def side_columns(
    metric: str,
    headings: Sequence[tuple[str, str]],
    missing: Fewer | None = None,
    *scope: str,
) -> list[Column]:
    """The best baseline and TRACE+, each under its (label, group), the better one bold.

    A best baseline that is `missing` answers is marked. The AUROC of calibrated probabilities,
    which the paper does not print, is an added column.
    """
    few = unscored(missing, f"{metric}_{BEST}_id", *scope)
    marks = {BEST: partly(metric) + few, TRACE_PLUS: partly(metric)}
    return better_of(
        [
            Column(
                (f"{metric}_{side}",),
                label,
                group,
                better=BETTER[metric],
                mark=marks[side],
                added=metric not in METRICS,
            )
            for side, (label, group) in zip(marks, headings, strict=True)
        ]
    )


def sides(metrics: Sequence[str], missing: Fewer, *scope: str) -> list[Column]:
    """The best baseline by each metric, then TRACE+ by each, as `side_columns`."""
    headings = {m: [(NAMES[m], "Best Non-TRACE"), (NAMES[m], "TRACE+")] for m in metrics}
    pairs = [side_columns(m, headings[m], missing, *scope) for m in metrics]
    return [column for side in zip(*pairs, strict=True) for column in side]


def gain_column(metric: str, label: str, group: str) -> Column:
    """The improvement; a win whose interval does not lie above zero is marked."""
    key = f"{metric}_{IMPROVEMENT}"
    won, supported = pl.col(key) > 0, pl.col(f"{key}_low") > 0
    unsupported = won.fill_null(False) & ~supported.fill_null(False)
    return Column(
        (key,),
        label,
        group,
        better="higher",
        signed=True,
        added=metric not in METRICS,
        added_mark=marked((unsupported, UNSUPPORTED)),
    )


def unsupported(row: Improvement) -> bool:
    """Whether TRACE+ wins and the interval does not lie above zero."""
    return row["difference"] is not None and row["difference"] > 0 and not row["supported"]


def level(improvements: Iterable[Improvement]) -> str:
    """The level of the intervals, as "95%"."""
    return f"{100 * max(row['level'] for row in improvements):g}%"


def explained(improvements: Iterable[Improvement], settings: Settings) -> list[str]:
    """Explains the intervals, where there are any, and their mark, where it is used."""
    rows = [row for row in improvements if row["metric"] in CLAIMED]
    if not rows or nothing_to_compare(settings):
        return []
    notes = [
        f"Intervals ({level(rows)}): percentiles over {max(row['resamples'] for row in rows)} "
        "resamples of whole groups of examples, the same for all estimators. The best baseline is "
        "chosen anew in every resample, which leans against TRACE+; both sides are measured on the "
        "same splits, and no fit is repeated. Each interval stands by itself, uncorrected for "
        "their number."
    ]
    mark = (
        f"{UNSUPPORTED} TRACE+ is better, but the interval does not lie above zero: this win is "
        "not supported."
    )
    return notes + [mark] * any(map(unsupported, rows))


def nothing_to_compare(settings: Settings) -> list[str]:
    """A note where TRACE+ or every baseline is not among the run's estimators."""
    if TRACE_PLUS not in {entry.id for entry in settings.estimators}:
        return ["TRACE+ is not among the estimators of this run, so there is nothing to compare."]
    if not settings.of_role("baseline"):
        return ["No baseline is among the estimators of this run, so there is nothing to compare."]
    return []


def partly_undefined(pairs: pl.DataFrame, settings: Settings) -> list[str]:
    """A note for each metric that is undefined in some splits of some task."""
    notes = []
    for metric in METRICS:
        undefined = pairs.filter(pl.col("undefined") > 0, metric=metric)
        rows = undefined.sort(settings.in_order(), "task")
        parts = [
            f"{settings.models[row['model']]} on {settings.tasks[row['task']]} "
            f"({row['undefined']} of {row['splits']} splits)"
            for row in rows.iter_rows(named=True)
        ]
        if parts:
            notes.append(f"{LEFT_OUT}: {NAMES[metric]} of {'; '.join(parts)}.")
    return notes
