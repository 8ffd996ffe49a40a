"""Two tables of localized errors: beside global errors, and by kind.

`table(study)` makes the one that the option `table` names: estimators by slices of the errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.analyses.localized_errors import GAIN, GAINER
from trace_workflow.tables.marks import UNSUPPORTED, estimator_column, explain_unscored, mark_where
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
UNSUPPORTED_NOTE = (
    f"{UNSUPPORTED} TRACE+ is better than the prespecified baseline, but the interval of the "
    "difference does not lie above zero."
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
    enough = {
        key: row for key, row in values.items() if (values[*key[:2], "auroc"]["n"] or 0) >= FEWEST
    }
    # By how much TRACE+ exceeds the prespecified baseline, where it has enough errors.
    gains = {c: values[GAIN, *c[:2]] for c in columns if (GAINER, *c[:2]) in enough}
    unsupported = [column for column, gain in gains.items() if _is_unsupported(gain)]
    table_columns = []
    for column in columns:
        marked = pl.col("estimator").is_in([GAINER] * (column in unsupported))
        settings = {"better": "higher", "added_mark": mark_where((marked, UNSUPPORTED))}
        table_columns.append(Column((column.key,), column.label, column.group, **settings))
    rows = [
        {"estimator": entry.id, "label": entry.label}
        | _row_values(entry.id, columns, enough)
        | {
            f"{slice_name}_{count}": values[entry.id, slice_name, "auroc"][count]
            for slice_name in largest
            for count in COUNTS
        }
        | {"sd_over": "matchings", "model": model, "tasks": tasks}
        for entry in sorted(study.measured(analysis), key=lambda entry: entry.role == "trace")
    ]
    return Table(
        frame=frame_of(rows),
        columns=(estimator_column(name, shares=study.scored_shares), *rank_columns(table_columns)),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *study.missing_tasks("main", tasks.split()),
            *_explain_small_slices(largest),
            *explain_unscored(study),
        ),
        notes=(
            MATCHING_NOTE.format(matchings=analysis["matchings"][0]),
            *_explain_matching(largest),
            *_explain_gains(gains, study),
            *([UNSUPPORTED_NOTE] * bool(unsupported)),
            *refer_to_counts(study),
        ),
    )


def largest_row(values: SliceValues, slice_name: str) -> Mapping:
    """The AUROC of a slice by the estimator that is defined on most of its pairs."""
    rows = [row for (_, *key), row in values.items() if key == [slice_name, "auroc"]]
    return max(rows, key=lambda row: row["n"] or 0)


def _row_values(estimator: str, columns: Sequence[SliceColumn], values: SliceValues) -> dict:
    cells = {column: values.get((estimator, *column[:2]), {}) for column in columns}
    row = {column.key: cell.get("value") for column, cell in cells.items()}
    row |= {f"{column.key}_sd": cell.get("sd") for column, cell in cells.items()}
    for column, cell in cells.items():
        if column.metric == "auroc":
            row |= {f"{column.key}_{end}": cell.get(end) for end in ("low", "high")}
    return row


def _is_unsupported(gain: Mapping) -> bool:
    """Whether TRACE+ is better than the prespecified baseline, and the interval contains zero."""
    return None not in (gain["value"], gain["low"]) and gain["low"] <= 0 < gain["value"]


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


def _explain_gains(gains: Mapping[SliceColumn, Mapping], study: StudyResults) -> Iterator[str]:
    """By how much TRACE+ exceeds the prespecified baseline, with a bootstrap interval."""
    parts = [
        f"{SLICE_NAMES[column.slice].lower()} {_signed(gain['value'])} "
        f"[{_signed(gain['low'])}, {_signed(gain['high'])}]"
        for column, gain in gains.items()
        if column.metric == "auroc" and gain["value"] is not None
    ]
    if parts:
        level = max(gain["level"] for gain in gains.values())
        baseline = study.labels[study.options["named_baseline"]]
        yield (
            f"AUROC of TRACE+ minus AUROC of {baseline}, prespecified, with a {100 * level:g} % "
            "interval (bootstrap over groups of answers, each resample matched anew): "
            f"{'; '.join(parts)}."
        )


def _signed(value: float | None) -> str:
    return format_number(value, 3, signed=True)
