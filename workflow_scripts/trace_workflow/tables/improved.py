"""TRACE+ against baselines: the columns and sentences of tables that print improvements."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.notes import (
    BETTER,
    CLAIMED,
    LEFT_OUT,
    METRICS,
    NAMES,
    Fewer,
    fewer_in,
    marked,
    named,
    partly,
    unscored,
)
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, better_of
from tracecal.estimators.entry import TRACE_PLUS

UNSUPPORTED = "§"
BEST, IMPROVEMENT = "best_baseline", "improvement"
BOLD = "Bold: the better of Best Non-TRACE and TRACE+, unless both print alike."
BETTER_BOLD = "Bold: the better of the best baseline and TRACE+, unless both print alike."
# The CSV's names for the columns of `improvements` against the oracle: those printed, then those in
# the CSV alone.
VALUES = {"reference": BEST, "value": TRACE_PLUS, "difference": IMPROVEMENT}
MORE = {
    "baseline": f"{BEST}_id",
    "reference_sd": f"{BEST}_sd",
    "value_sd": f"{TRACE_PLUS}_sd",
    "difference_sd": f"{IMPROVEMENT}_sd",
    "undefined": "undefined_splits",
}
COUNTS = {name: name for name in ("tasks", "wins")}
# Those against the baselines of CHOSEN, each after the kind of choice.
CHOSEN = ("picked", "named")
AGAINST = {
    "baseline": "id",
    "reference": "baseline",
    "difference": IMPROVEMENT,
    "difference_sd": f"{IMPROVEMENT}_sd",
    "low": f"{IMPROVEMENT}_low",
    "high": f"{IMPROVEMENT}_high",
    "wins": "wins",
    "supported_wins": "supported_wins",
}
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
    parts = {"oracle": VALUES | MORE | COUNTS} | {
        kind: {key: f"{kind}_{name}" for key, name in AGAINST.items()} for kind in CHOSEN
    }
    for metric, (against, names) in product(metrics, parts.items()):
        own = improvements.filter(metric=metric, against=against)
        columns = own.select(*scope, *(pl.col(k).alias(f"{metric}_{v}") for k, v in names.items()))
        frame = frame.join(columns, on=scope, how="left", nulls_equal=True, maintain_order="left")
    counted = notes.counts(frames, settings, scope)
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
    return notes.footnotes(best, settings)


def right_columns(accuracy: bool = True) -> list[Column]:
    """How many answers are right, of how many."""
    group = "Answers"
    share = [Column(("accuracy",), "Acc.", group, added=True)] if accuracy else []
    return [*share, Column(("right", "answers"), "Correct", group, added=True)]


def columns_of(*names: str, metrics: Sequence[str] = METRICS) -> list[str]:
    """The columns of the metrics, name by name."""
    return [f"{metric}_{name}" for name in names for metric in metrics]


def further_columns(metrics: Sequence[str] = METRICS) -> list[str]:
    """The columns that are in the CSV alone, and those against CHOSEN, metric by metric."""
    chosen = [f"{kind}_{name}" for kind in CHOSEN for name in AGAINST.values()]
    return [f"{metric}_{name}" for metric in metrics for name in (*MORE.values(), *chosen)]


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
    """The improvement on the best baseline, an oracle: a point."""
    key = f"{metric}_{IMPROVEMENT}"
    added = metric not in METRICS
    return Column((key,), label, group, better="higher", signed=True, added=added)


def chosen_columns(
    settings: Settings, metrics: Sequence[str] = METRICS, supported: bool = False
) -> list[Column]:
    """The improvements on the selected and on the prespecified baseline.

    `supported` adds counts of wins. A win whose interval does not lie above zero is marked.
    """
    columns = []
    selected, prespecified = headings(settings)
    for kind, heading in zip(CHOSEN, (selected, f"{prespecified}, prespecified"), strict=True):
        for metric in metrics:
            key = f"{metric}_{kind}_{IMPROVEMENT}"
            won, above = pl.col(key) > 0, pl.col(f"{key}_low") > 0
            mark = won.fill_null(False) & ~above.fill_null(False)
            columns.append(
                Column(
                    (key,),
                    f"Δ{NAMES[metric]}",
                    heading,
                    better="higher",
                    signed=True,
                    added=True,
                    added_mark=marked((mark, UNSUPPORTED)),
                )
            )
        columns += [
            Column(
                (f"{metric}_{kind}_supported_wins", f"{metric}_tasks"),
                f"{NAMES[metric]} supported",
                heading,
                added=True,
            )
            for metric in metrics
            if supported
        ]
    return columns


def headings(settings: Settings) -> list[str]:
    """What the comparisons with the baselines of CHOSEN are called."""
    named = settings.more.get("named", "")
    labels = {entry.id: entry.label for entry in settings.estimators}
    return ["Against the selected baseline", f"Against {labels.get(named, named)}"]


def unsupported(row: Improvement) -> bool:
    """Whether TRACE+ wins and the interval does not lie above zero."""
    return row["difference"] is not None and row["difference"] > 0 and not row["supported"]


def level(improvements: Iterable[Improvement]) -> str:
    """The level of the intervals, as "95%"."""
    return f"{100 * max(row['level'] for row in improvements):g}%"


def explained(improvements: Iterable[Improvement], settings: Settings) -> list[str]:
    """Explains the comparisons and their intervals, and the mark, where it is used."""
    rows = [row for row in improvements if row["metric"] in CLAIMED]
    if not rows or nothing_to_compare(settings):
        return []
    chosen = [row for row in rows if row["against"] in CHOSEN]
    resamples = max((row["resamples"] for row in chosen), default=0)
    notes = [
        "The selected baseline is, in each split, the one with the smallest log loss on the "
        "calibration data, ranked by its calibrated probability; the prespecified one was chosen "
        "before any result. The best baseline (Best Non-TRACE) is an oracle, the best of each "
        "column in hindsight: a point without an interval.",
        f"Intervals ({level(rows)}): percentiles over {resamples} resamples of whole groups of "
        "examples, both sides on the same splits; each stands by itself, uncorrected for their "
        "number.",
    ]
    mark = (
        f"{UNSUPPORTED} TRACE+ is better, but the interval does not lie above zero: this win is "
        "not supported."
    )
    return notes + [mark] * any(map(unsupported, chosen))


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
        undefined = pairs.filter(pl.col("undefined") > 0, metric=metric, against="oracle")
        rows = undefined.sort(settings.in_order(), "task")
        parts = [
            f"{settings.models[row['model']]} on {settings.tasks[row['task']]} "
            f"({row['undefined']} of {row['splits']} splits)"
            for row in rows.iter_rows(named=True)
        ]
        if parts:
            notes.append(f"{LEFT_OUT}: {NAMES[metric]} of {'; '.join(parts)}.")
    return notes
