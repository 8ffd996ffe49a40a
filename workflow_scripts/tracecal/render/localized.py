"""The two tables of localized errors: against global ones, and kind by kind."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from tracecal.render import phrases
from tracecal.render.averages import Entry
from tracecal.render.table import Column, Row, RowGroup, Table, cell, emphasised, number

Labels = Mapping[str, str]
GAIN = "gain"
NAMES = {
    "number": "Number/arithmetic",
    "entity": "Entity/span",
    "claim": "Factual claim",
    "localized": "All localized",
    "global": "Global",
}
MATCHED = (
    "Errors are told from correct answers of the same task and nearest length, one for each error "
    "and none twice; where a task has fewer correct answers than errors, as many errors. Error = "
    "positive. Each value is the mean over {matchings} matchings, drawn among answers equally near."
)


class Shown(NamedTuple):
    """A column of the table: what it shows of which slice, and how it is headed."""

    slice: str
    metric: str
    label: str
    group: str = ""

    @property
    def key(self) -> str:
        return f"{self.slice}_{self.metric}"


GLOBAL = (
    Shown("localized", "auroc", "Loc.", "AUROC"),
    Shown("global", "auroc", "Glob.", "AUROC"),
    Shown("localized", "tpr_at_5", "TPR@5%", "Localized errors"),
    Shown("localized", "tpr_at_10", "TPR@10%", "Localized errors"),
    Shown("localized", "tpr_at_20", "TPR@20%", "Localized errors"),
    Shown("localized", "pauc_at_10", "pAUC@10%", "Localized errors"),
    Shown("global", "tpr_at_10", "TPR@10%", "Global errors"),
)
SUBTYPES = tuple(Shown(part, "auroc", NAMES[part]) for part in list(NAMES)[:4])


def localized_global_table(
    found: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """AUROC, TPR at fixed false-positive rates and partial AUROC of each estimator."""
    about = (
        "errors in a compact part of the answer (a number, an entity, a claim) and errors in all "
        "of it. TPR@x%: the share of errors found while x% of the correct answers are suspected "
        "at most; pAUC@10%: the area under the ROC curve below 10%, scaled so that chance is 0.5."
    )
    return _table(
        "localized_global_errors",
        "Localized and global errors",
        about,
        GLOBAL,
        found,
        entries,
        models,
        tasks,
        study,
    )


def localized_subtypes_table(
    found: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """AUROC of each estimator by kind of localized error, with the number of pairs."""
    pairs = _pairs(found)
    shown = [
        one._replace(label=f"{one.label} (n = {number(pairs[one.slice], 0)})") for one in SUBTYPES
    ]
    return _table(
        "localized_error_subtypes",
        "Localized errors by kind",
        "AUROC on localized errors by kind; n is the number of errors that are matched.",
        shown,
        found,
        entries,
        models,
        tasks,
        study,
    )


def _table(
    name: str,
    title: str,
    about: str,
    shown: Sequence[Shown],
    found: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    values = {(e, s, m): row for e, s, m, *row in found.select(*KEYS, *VALUES).iter_rows()}
    slices = list(dict.fromkeys(one.slice for one in shown))
    aucs = [one for one in shown if one.metric == "auroc"]
    model, pooled, matchings = found.select("model", "tasks", "matchings").row(0)
    columns = (
        Column(("estimator",), shown=False),
        Column(("label",), "Method", align="left"),
        *(Column((one.key,), one.label, one.group, better="higher") for one in shown),
        *(Column((f"{one.key}_sd",), shown=False) for one in shown),
        *(Column((f"{one.key}_{end}",), shown=False) for one in aucs for end in ("low", "high")),
        *(Column((f"{part}_{what}",), shown=False) for part in slices for what in ("n", "errors")),
        *(Column((key,), shown=False) for key in ("sd_over", "model", "tasks")),
    )

    def row(entry: Entry) -> Row:
        mine = {one.key: values[entry.id, one.slice, one.metric] for one in shown}
        counts = [values[entry.id, part, "auroc"][4:] for part in slices]
        return tuple(
            cell(value)
            for value in (
                entry.id,
                entry.label,
                *(mine[one.key][0] for one in shown),
                *(mine[one.key][1] for one in shown),
                *(end for one in aucs for end in mine[one.key][2:4]),
                *(count for both in counts for count in both),
                *("matchings", model, pooled),
            )
        )

    present = [entry for entry in entries if entry.id in set(found["estimator"])]
    parts = [[e for e in present if (e.role == "trace") is own] for own in (False, True)]
    groups = [RowGroup(tuple(map(row, part))) for part in parts if part]
    over = phrases.listed([tasks[task] for task in pooled.split()])
    return Table(
        name=name,
        title=title,
        caption=f"{models[model]}, {over} pooled: {about} " + MATCHED.format(matchings=matchings),
        columns=columns,
        groups=emphasised(groups, columns),
        emphasis=f"Bold: best of the column; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *phrases.absent_tasks(study["tasks"], pooled.split(), tasks),
            *_counts(found, slices),
            *_gains(values, aucs),
        ),
        wide=len(shown) > len(SUBTYPES),
    )


KEYS = ("estimator", "slice", "metric")
VALUES = ("value", "sd", "low", "high", "n", "errors")


def _pairs(found: pl.DataFrame) -> dict[str, float]:
    """How many errors of each slice are matched, for the estimator that is defined on most."""
    return dict(found.group_by("slice").agg(pl.col("n").max()).iter_rows())


def _counts(found: pl.DataFrame, slices: Sequence[str]) -> Iterator[str]:
    """How many of the errors are matched, and which slices are empty."""
    pairs = _pairs(found)
    errors = dict(found.select("slice", "errors").unique().iter_rows())
    counts = [
        f"{NAMES[s].lower()} {number(pairs[s], 0)} of {errors[s]}" for s in slices if pairs[s]
    ]
    if counts:
        yield f"Errors matched: {', '.join(counts)}."
    if empty := [NAMES[part].lower() for part in slices if not pairs[part]]:
        yield (
            f"– Undefined: no error that could be matched is of the kind {phrases.listed(empty)}."
        )


def _gains(values: Mapping[tuple, Sequence], aucs: Sequence[Shown]) -> Iterator[str]:
    """By how much TRACE+ exceeds the best baseline of the table, with the bootstrap's interval."""
    gains = {one.slice: values.get((GAIN, one.slice, "auroc"), [None])[:4] for one in aucs}
    told = [
        f"{NAMES[part].lower()} {number(gain[0], 3, signed=True)} "
        f"[{number(gain[2], 3, signed=True)}, {number(gain[3], 3, signed=True)}]"
        for part, gain in gains.items()
        if gain[0] is not None
    ]
    if told:
        yield (
            "AUROC of TRACE+ minus that of the best baseline shown, whichever it turns out to be, "
            f"with a 95% interval (bootstrap over groups of answers, matched anew): "
            f"{'; '.join(told)}."
        )
