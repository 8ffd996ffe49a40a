"""Localized errors beside global ones: AUROC, TPR at fixed false-positive rates and partial AUROC.

The table of localized errors kind by kind has the same rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from trace_workflow.analyses.localized_errors import GAIN, GAINER
from trace_workflow.tables import notes
from trace_workflow.tables.captions import listed
from trace_workflow.tables.improved import UNSUPPORTED
from trace_workflow.tables.notes import BEST_OF_COLUMN, frame_of, marked, method, rows_by
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table, number, ranked

NAMES = {
    "number": "Number/Arithmetic",
    "entity": "Entity/Span",
    "claim": "Factual Claim",
    "localized": "Overall Localized",
    "global": "Global",
}
MATCHED = (
    "Errors are compared with correct answers of the same task and nearest length, one for each "
    "error and none twice; where a task has fewer correct answers than errors, as many errors. "
    "Error = positive. Each value is the mean over {matchings} matchings, drawn among answers "
    "equally near."
)
COUNTS = ("n", "errors", "length_gap")
# Matched errors below which a value would depend on single answers, and is not printed.
FEWEST = 10
# The analysis' rows by estimator, slice and metric.
Values = Mapping[tuple[str, str, str], Mapping]
# The row with the most pairs of each slice.
Largest = Mapping[str, Mapping]


class Shown(NamedTuple):
    """A column of values: its slice, its metric and its headings."""

    slice: str
    metric: str
    label: str
    group: str = ""

    @property
    def key(self) -> str:
        return f"{self.slice}_{self.metric}"


def localized_table(name: str, frames: Frames, settings: Settings, shown: Sequence[Shown]) -> Table:
    """The table `name` of an analysis of localized errors: a row per estimator, TRACE's last."""
    analysis, missing = frames[name], notes.fewer(frames, settings)
    values = rows_by(analysis, "estimator", "slice", "metric")
    model, pooled = analysis.select("model", "tasks").row(0)
    present = [entry for entry in settings.estimators if entry.id in set(analysis["estimator"])]
    largest = {column.slice: most(values, column.slice) for column in shown}
    rows = [
        {"estimator": entry.id, "label": entry.label}
        | _values(entry.id, shown, values)
        | {"sd_over": "matchings", "model": model, "tasks": pooled}
        for entry in sorted(present, key=lambda entry: entry.role == "trace")
    ]
    return Table(
        frame=frame_of(rows),
        columns=(
            method(name, missing=missing),
            *ranked([_column(column, values) for column in shown]),
        ),
        emphasis=BEST_OF_COLUMN,
        footnotes=(
            *settings.absent_tasks("main", pooled.split()),
            *_empty(largest),
            *notes.footnotes(missing, settings),
        ),
        notes=(
            MATCHED.format(matchings=analysis["matchings"][0]),
            *_counts(largest),
            *_gains(shown, values, settings),
            *notes.elsewhere(frames, settings),
        ),
    )


def most(values: Values, part: str) -> Mapping:
    """The AUROC of a slice for the estimator that is defined on most of its pairs."""
    rows = [row for (_, *key), row in values.items() if key == [part, "auroc"]]
    return max(rows, key=lambda row: row["n"] or 0)


def enough(estimator: str, part: str, values: Values) -> bool:
    """Whether an estimator is measured on enough matched errors of a slice."""
    return (values[estimator, part, "auroc"]["n"] or 0) >= FEWEST


def _values(estimator: str, shown: Sequence[Shown], values: Values) -> dict:
    cells = {
        column.key: values[estimator, column.slice, column.metric]
        if enough(estimator, column.slice, values)
        else {}
        for column in shown
    }
    row = {key: cell.get("value") for key, cell in cells.items()}
    row |= {f"{key}_sd": cell.get("sd") for key, cell in cells.items()}
    for key in (column.key for column in shown if column.metric == "auroc"):
        row |= {f"{key}_{end}": cells[key].get(end) for end in ("low", "high")}
    for part in dict.fromkeys(column.slice for column in shown):
        row |= {f"{part}_{name}": values[estimator, part, "auroc"][name] for name in COUNTS}
    return row


def _column(column: Shown, values: Values) -> Column:
    marked_rows = [GAINER] * _unsupported(column, values)
    mark = marked((pl.col("estimator").is_in(marked_rows), UNSUPPORTED))
    return Column((column.key,), column.label, column.group, better="higher", added_mark=mark)


def _unsupported(column: Shown, values: Values) -> bool:
    """Whether TRACE+ is better than the prespecified baseline, and the interval contains zero."""
    gain = values[GAIN, column.slice, column.metric]
    if not _compared(column.slice, values):
        return False
    return None not in (gain["value"], gain["low"]) and gain["low"] <= 0 < gain["value"]


def _compared(part: str, values: Values) -> bool:
    """Whether TRACE+, whose gain it is, is measured on enough matched errors of a slice."""
    return (GAINER, part, "auroc") in values and enough(GAINER, part, values)


def _counts(largest: Largest) -> Iterator[str]:
    """How many of the errors are matched, and how well."""
    matched = [
        f"{NAMES[part].lower()} {number(row['n'], 0)} of {row['errors']} "
        f"({number(row['length_gap'], 1)})"
        for part, row in largest.items()
        if row["n"]
    ]
    if matched:
        yield (
            "Errors matched, and by how many tokens the two of a pair differ on average: "
            f"{', '.join(matched)}."
        )


def _empty(largest: Largest) -> Iterator[str]:
    """The slices with too few errors that can be matched."""
    few = [
        f"{NAMES[part].lower()} ({number(row['n'] or 0.0, 0)})"
        for part, row in largest.items()
        if (row["n"] or 0) < FEWEST
    ]
    if few:
        yield f"– Fewer than {FEWEST} matched errors, too few for a value: {listed(few)}."


def _gains(shown: Sequence[Shown], values: Values, settings: Settings) -> Iterator[str]:
    """By how much TRACE+ exceeds the prespecified baseline, with a bootstrap interval."""
    areas = [column.slice for column in shown if column.metric == "auroc"]
    gains = {part: values[GAIN, part, "auroc"] for part in areas}
    stated = [
        f"{NAMES[part].lower()} {_signed(gain['value'])} "
        f"[{_signed(gain['low'])}, {_signed(gain['high'])}]"
        for part, gain in gains.items()
        if gain["value"] is not None and _compared(part, values)
    ]
    if stated:
        level = max(gain["level"] for gain in gains.values())
        named = {entry.id: entry.label for entry in settings.estimators}[settings.more["named"]]
        yield (
            f"AUROC of TRACE+ minus that of {named}, prespecified, with a {100 * level:g}% "
            "interval (bootstrap over groups of answers, each resample matched anew): "
            f"{'; '.join(stated)}."
        )
    if any(_unsupported(column, values) for column in shown):
        yield (
            f"{UNSUPPORTED} TRACE+ is better than the prespecified baseline, but the interval of "
            "the difference does not lie above zero."
        )


def _signed(value: float | None) -> str:
    return number(value, 3, signed=True)


SHOWN = (
    Shown("localized", "auroc", "Loc.", "AUROC"),
    Shown("global", "auroc", "Glob.", "AUROC"),
    Shown("localized", "tpr_at_5", "TPR@5%", "Localized errors"),
    Shown("localized", "tpr_at_10", "TPR@10%", "Localized errors"),
    Shown("localized", "tpr_at_20", "TPR@20%", "Localized errors"),
    Shown("localized", "pauc_at_10", "pAUC@10%", "Localized errors"),
    Shown("global", "tpr_at_10", "TPR@10%", "Global errors"),
)


def table(frames: Frames, settings: Settings) -> Table:
    """From the analysis of the same name."""
    return localized_table("localized_global_errors", frames, settings, SHOWN)
