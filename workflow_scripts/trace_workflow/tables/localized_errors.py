"""Two tables of localized errors: beside global errors, and by kind.

`table(study)` makes the one that the option `table` names: estimators by slices of the errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.analyses.localized_errors import GAIN, GAINER
from trace_workflow.tables.marks import (
    UNSUPPORTED,
    estimator_column,
    explain_unscored,
    mark_where,
)
from trace_workflow.tables.ranking_table import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.standing_notes import refer_to_counts
from trace_workflow.tables.study_results import StudyResults, frame_of, rows_by
from trace_workflow.tables.table import Column, Table, format_number
from trace_workflow.tables.wording import join_names

SLICE_NAMES = {
    "number": "Number/Arithmetic",
    "entity": "Entity/Span",
    "claim": "Factual Claim",
    "localized": "Overall Localized",
    "global": "Global",
}
MATCHING_NOTE = (
    "Each error is matched with another correct answer of the same task and nearest length; a task "
    "with fewer correct answers than errors matches as many errors as it can. Error = positive. "
    "Each value is the mean over {matchings} matchings, which break ties of length at random."
)
KINDS = ("number", "entity", "claim", "localized")
COUNTS = ("n", "errors", "length_gap")
# With fewer matched errors a value depends on single answers, and is not printed.
FEWEST = 10
SliceValues = Mapping[tuple[str, str, str], Mapping]  # rows by estimator, slice and metric


class SliceColumn(NamedTuple):
    """A column of values: its slice of the errors, its metric and its headings."""

    slice: str
    metric: str
    label: str
    group: str = ""

    @property
    def key(self) -> str:
        return f"{self.slice}_{self.metric}"


GLOBAL_ERRORS = (
    SliceColumn("localized", "auroc", "Loc.", "AUROC"),
    SliceColumn("global", "auroc", "Glob.", "AUROC"),
    SliceColumn("localized", "tpr_at_5", "TPR@5%", "Localized errors"),
    SliceColumn("localized", "tpr_at_10", "TPR@10%", "Localized errors"),
    SliceColumn("localized", "tpr_at_20", "TPR@20%", "Localized errors"),
    SliceColumn("localized", "pauc_at_10", "pAUC@10%", "Localized errors"),
    SliceColumn("global", "tpr_at_10", "TPR@10%", "Global errors"),
)


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per estimator, TRACE's last."""
    name = study.options["table"]
    analysis = study.frames[name]
    values = rows_by(analysis, "estimator", "slice", "metric")
    columns = GLOBAL_ERRORS
    if name == "localized_error_subtypes":  # the AUROC of each kind, under the number of pairs
        sizes = {kind: format_number(largest_row(values, kind)["n"], 0) for kind in KINDS}
        columns = [
            SliceColumn(kind, "auroc", f"(n={sizes[kind]})", SLICE_NAMES[kind]) for kind in KINDS
        ]
    model, tasks = analysis.select("model", "tasks").row(0)
    largest = {column.slice: largest_row(values, column.slice) for column in columns}
    table_columns = []
    for column in columns:
        unsupported = pl.col("estimator").is_in([GAINER] * _is_unsupported(column, values))
        settings = {"better": "higher", "added_mark": mark_where((unsupported, UNSUPPORTED))}
        table_columns.append(Column((column.key,), column.label, column.group, **settings))
    rows = [
        {"estimator": entry.id, "label": entry.label}
        | _row_values(entry.id, columns, values)
        | {"sd_over": "matchings", "model": model, "tasks": tasks}
        for entry in sorted(study.measured(analysis), key=lambda entry: entry.role == "trace")
    ]
    return Table(
        frame=frame_of(rows),
        columns=(
            estimator_column(name, shares=study.scored_shares),
            *rank_columns(table_columns),
        ),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *study.missing_tasks("main", tasks.split()),
            *_explain_small_slices(largest),
            *explain_unscored(study),
        ),
        notes=(
            MATCHING_NOTE.format(matchings=analysis["matchings"][0]),
            *_explain_matching(largest),
            *_explain_gains(columns, values, study),
            *refer_to_counts(study),
        ),
    )


def largest_row(values: SliceValues, slice_name: str) -> Mapping:
    """The AUROC of a slice by the estimator that is defined on most of its pairs."""
    rows = [row for (_, *key), row in values.items() if key == [slice_name, "auroc"]]
    return max(rows, key=lambda row: row["n"] or 0)


def has_enough_errors(estimator: str, slice_name: str, values: SliceValues) -> bool:
    """Whether an estimator is measured on enough matched errors of a slice."""
    return (values[estimator, slice_name, "auroc"]["n"] or 0) >= FEWEST


def _row_values(estimator: str, columns: Sequence[SliceColumn], values: SliceValues) -> dict:
    cells = {
        column: values[estimator, column.slice, column.metric]
        if has_enough_errors(estimator, column.slice, values)
        else {}
        for column in columns
    }
    row = {column.key: cell.get("value") for column, cell in cells.items()}
    row |= {f"{column.key}_sd": cell.get("sd") for column, cell in cells.items()}
    for column, cell in cells.items():
        if column.metric == "auroc":
            row |= {f"{column.key}_{end}": cell.get(end) for end in ("low", "high")}
    for slice_name in dict.fromkeys(column.slice for column in columns):
        counts = values[estimator, slice_name, "auroc"]
        row |= {f"{slice_name}_{name}": counts[name] for name in COUNTS}
    return row


def _is_unsupported(column: SliceColumn, values: SliceValues) -> bool:
    """Whether TRACE+ is better than the prespecified baseline, and the interval contains zero."""
    gain = values[GAIN, column.slice, column.metric]
    if not _has_gain(column.slice, values):
        return False
    return None not in (gain["value"], gain["low"]) and gain["low"] <= 0 < gain["value"]


def _has_gain(slice_name: str, values: SliceValues) -> bool:
    """Whether TRACE+ is measured on enough matched errors of a slice."""
    return (GAINER, slice_name, "auroc") in values and has_enough_errors(GAINER, slice_name, values)


def _explain_matching(largest: Mapping[str, Mapping]) -> Iterator[str]:
    """A note on the number of matched errors, and on the gap in length."""
    sizes = [
        f"{SLICE_NAMES[slice_name].lower()} {format_number(row['n'], 0)} of {row['errors']} "
        f"({format_number(row['length_gap'], 1)})"
        for slice_name, row in largest.items()
        if row["n"]
    ]
    if sizes:
        yield (
            f"Matched errors, and the mean difference in tokens within a pair: {', '.join(sizes)}."
        )


def _explain_small_slices(largest: Mapping[str, Mapping]) -> Iterator[str]:
    """The slices with too few matched errors."""
    small = [
        f"{SLICE_NAMES[slice_name].lower()} ({format_number(row['n'] or 0.0, 0)})"
        for slice_name, row in largest.items()
        if (row["n"] or 0) < FEWEST
    ]
    if small:
        yield f"– Fewer than {FEWEST} matched errors, too few for a value: {join_names(small)}."


def _explain_gains(
    columns: Sequence[SliceColumn], values: SliceValues, study: StudyResults
) -> Iterator[str]:
    """By how much TRACE+ exceeds the prespecified baseline, with a bootstrap interval."""
    gains = {
        column.slice: values[GAIN, column.slice, "auroc"]
        for column in columns
        if column.metric == "auroc"
    }
    parts = [
        f"{SLICE_NAMES[slice_name].lower()} {_signed(gain['value'])} "
        f"[{_signed(gain['low'])}, {_signed(gain['high'])}]"
        for slice_name, gain in gains.items()
        if gain["value"] is not None and _has_gain(slice_name, values)
    ]
    if parts:
        level = max(gain["level"] for gain in gains.values())
        baseline = study.labels[study.options["named_baseline"]]
        yield (
            f"AUROC of TRACE+ minus AUROC of {baseline}, prespecified, with a {100 * level:g} % "
            "interval (bootstrap over groups of answers, each resample matched anew): "
            f"{'; '.join(parts)}."
        )
    if any(_is_unsupported(column, values) for column in columns):
        yield (
            f"{UNSUPPORTED} TRACE+ is better than the prespecified baseline, but the interval of "
            "the difference does not lie above zero."
        )


def _signed(value: float | None) -> str:
    return format_number(value, 3, signed=True)
