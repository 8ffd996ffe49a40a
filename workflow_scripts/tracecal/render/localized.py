"""The two tables of localized errors: beside global ones, and kind by kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from tracecal.render import phrases
from tracecal.render.averages import Entry
from tracecal.render.table import Column, Row, RowGroup, Table, cell, emphasised, number

Labels = Mapping[str, str]
GAIN, GAINER = "gain", "trace_plus"
UNSUPPORTED = "§"
NAMES = {
    "number": "Number/arithmetic",
    "entity": "Entity/span",
    "claim": "Factual claim",
    "localized": "All localized",
    "global": "Global",
}


class Measured(NamedTuple):
    """What the analysis says of an estimator, slice and metric."""

    value: float | None
    sd: float | None
    low: float | None
    high: float | None
    n: float | None
    errors: int
    length_gap: float | None


KEYS = ("estimator", "slice", "metric")
COUNTS = ("n", "errors", "length_gap")
Values = Mapping[tuple[str, str, str], Measured]


class Shown(NamedTuple):
    """A column of values: of which slice, by which metric, and how it is headed."""

    slice: str
    metric: str
    label: str
    group: str = ""

    @property
    def key(self) -> str:
        return f"{self.slice}_{self.metric}"


@dataclass(frozen=True)
class _What:
    """What one of the tables shows."""

    name: str
    title: str
    about: str
    shown: tuple[Shown, ...]
    wide: bool = False
    counted: bool = False

    @property
    def slices(self) -> list[str]:
        return list(dict.fromkeys(one.slice for one in self.shown))

    @property
    def areas(self) -> list[Shown]:
        return [one for one in self.shown if one.metric == "auroc"]


GLOBAL = _What(
    "localized_global_errors",
    "Localized and global errors",
    "errors in a compact part of the answer (a number, an entity, a claim) and errors in all of "
    "it. TPR@x%: the share of errors found while at most x% of the correct answers are suspected; "
    "pAUC@10%: the area under the ROC curve below 10%, scaled so that chance is 0.5.",
    (
        Shown("localized", "auroc", "Loc.", "AUROC"),
        Shown("global", "auroc", "Glob.", "AUROC"),
        Shown("localized", "tpr_at_5", "TPR@5%", "Localized errors"),
        Shown("localized", "tpr_at_10", "TPR@10%", "Localized errors"),
        Shown("localized", "tpr_at_20", "TPR@20%", "Localized errors"),
        Shown("localized", "pauc_at_10", "pAUC@10%", "Localized errors"),
        Shown("global", "tpr_at_10", "TPR@10%", "Global errors"),
    ),
    wide=True,
)
SUBTYPES = _What(
    "localized_error_subtypes",
    "Localized errors by kind",
    "AUROC on errors in a compact part of the answer, by kind; n is how many of them are matched.",
    tuple(Shown(part, "auroc", NAMES[part]) for part in ("number", "entity", "claim", "localized")),
    counted=True,
)
MATCHED = (
    "Errors are told from correct answers of the same task and nearest length, one for each error "
    "and none twice; where a task has fewer correct answers than errors, as many errors. Error = "
    "positive. Each value is the mean over {matchings} matchings, drawn among answers equally near."
)


def localized_global_table(
    found: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """AUROC, TPR at fixed false-positive rates and partial AUROC of each estimator."""
    return _table(GLOBAL, found, entries, models, tasks, study)


def localized_subtypes_table(
    found: pl.DataFrame, entries: Sequence[Entry], models: Labels, tasks: Labels, study: Mapping
) -> Table:
    """AUROC of each estimator by kind of localized error, with the number of pairs."""
    return _table(SUBTYPES, found, entries, models, tasks, study)


def _table(
    what: _What,
    found: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    values = {
        (estimator, part, metric): Measured(*row)
        for estimator, part, metric, *row in found.select(*KEYS, *Measured._fields).iter_rows()
    }
    model, pooled, matchings = found.select("model", "tasks", "matchings").row(0)
    columns = _columns(what, values)
    present = [entry for entry in entries if entry.id in set(found["estimator"])]
    parts = [[e for e in present if (e.role == "trace") is own] for own in (False, True)]
    groups = [
        RowGroup(tuple(_row(what, entry, values, model, pooled) for entry in part))
        for part in parts
        if part
    ]
    over = phrases.listed([tasks[task] for task in pooled.split()])
    return Table(
        name=what.name,
        title=what.title,
        caption=f"{models[model]}, {over} pooled: {what.about} "
        + MATCHED.format(matchings=matchings),
        columns=columns,
        groups=emphasised(groups, columns),
        emphasis=f"Bold: best of the column; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *phrases.absent_tasks(study["tasks"], pooled.split(), tasks),
            *_counts(what, values),
            *_gains(what, values),
        ),
        wide=what.wide,
    )


def _columns(what: _What, values: Values) -> tuple[Column, ...]:
    def headed(one: Shown) -> Column:
        label, group = one.label, one.group
        if what.counted:
            label, group = f"n = {number(_most(values, one.slice).n, 0)}", one.label
        return Column((one.key,), label, group, better="higher")

    hidden = [
        *(f"{one.key}_sd" for one in what.shown),
        *(f"{one.key}_{end}" for one in what.areas for end in ("low", "high")),
        *(f"{part}_{count}" for part in what.slices for count in COUNTS),
        *("sd_over", "model", "tasks"),
    ]
    return (
        Column(("estimator",), shown=False),
        Column(("label",), "Method", align="left"),
        *map(headed, what.shown),
        *(Column((key,), shown=False) for key in hidden),
    )


def _row(what: _What, entry: Entry, values: Values, model: str, tasks: str) -> Row:
    mine = {one: values[entry.id, one.slice, one.metric] for one in what.shown}
    counted = [values[entry.id, part, "auroc"] for part in what.slices]
    hidden = [
        *(mine[one].sd for one in what.shown),
        *(end for one in what.areas for end in (mine[one].low, mine[one].high)),
        *(getattr(one, count) for one in counted for count in COUNTS),
        *("matchings", model, tasks),
    ]
    return (
        cell(entry.id),
        cell(entry.label),
        *(
            cell(mine[one].value, mark=UNSUPPORTED * _unsupported(entry.id, one, values))
            for one in what.shown
        ),
        *map(cell, hidden),
    )


def _unsupported(estimator: str, one: Shown, values: Values) -> bool:
    """Whether this is TRACE+'s win over the baselines shown, and its interval holds none."""
    gain = values[GAIN, one.slice, one.metric]
    known = estimator == GAINER and None not in (gain.value, gain.low)
    return known and gain.low <= 0 < gain.value


def _most(values: Values, part: str) -> Measured:
    """The AUROC of a slice for the estimator that is defined on most of its pairs."""
    mine = [one for (_, s, metric), one in values.items() if (s, metric) == (part, "auroc")]
    return max(mine, key=lambda one: one.n or 0)


def _counts(what: _What, values: Values) -> Iterator[str]:
    """How many of the errors are matched, how well, and which slices are empty."""
    most = {part: _most(values, part) for part in what.slices}
    told = [
        f"{NAMES[part].lower()} {number(one.n, 0)} of {one.errors} ({number(one.length_gap, 1)})"
        for part, one in most.items()
        if one.n
    ]
    if told:
        yield (
            "Errors matched, and by how many tokens the two of a pair differ on average: "
            f"{', '.join(told)}."
        )
    if empty := [NAMES[part].lower() for part, one in most.items() if not one.n]:
        yield f"– Undefined: no error that can be matched is of the kind {phrases.listed(empty)}."


def _gains(what: _What, values: Values) -> Iterator[str]:
    """By how much TRACE+ exceeds the best baseline of the table, with the bootstrap's interval."""
    gains = {one.slice: values[GAIN, one.slice, "auroc"] for one in what.areas}
    told = [
        f"{NAMES[part].lower()} {_signed(one.value)} [{_signed(one.low)}, {_signed(one.high)}]"
        for part, one in gains.items()
        if one.value is not None
    ]
    if told:
        yield (
            "AUROC of TRACE+ minus that of the best baseline shown (an oracle, chosen anew in "
            "every resample), with a 95% interval (bootstrap over groups of answers, each resample "
            f"matched anew): {'; '.join(told)}."
        )
    if any(_unsupported(GAINER, one, values) for one in what.shown):
        yield (
            f"{UNSUPPORTED} TRACE+ is better than each baseline shown, but the interval of the "
            "difference does not lie above zero."
        )


def _signed(value: float | None) -> str:
    return number(value, 3, signed=True)
