"""The main comparison: every baseline and TRACE estimator on every task of one model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from tracecal.render import averages, phrases
from tracecal.render.averages import MISSING, NAMES, Average, Entry
from tracecal.render.bounds import Bounds, Intervals, explained, level, read_bounds
from tracecal.render.duels import METRICS, TRACE_PLUS, Duel, duel, gain_cell
from tracecal.render.table import ABSENT, Cell, Column, Row, RowGroup, Table, cell, emphasised

Labels = Mapping[str, str]
SEQUENCE_FAMILIES = ("likelihood", "entropy")
PARTLY, FEWER = "†", "‡"
IMPROVED = (
    "Improvement: of TRACE+ on the best baseline of the column, positive where TRACE+ is better."
)


def main_comparison(
    metrics: pl.DataFrame,
    intervals: pl.DataFrame,
    entries: Sequence[Entry],
    models: Labels,
    tasks: Labels,
    study: Mapping,
) -> Table:
    """The table; `study` names the model and the tasks."""
    model = study["model"]
    compared = [entry for entry in entries if entry.role in ("baseline", "trace")]
    selected = averages.select(metrics, compared, [model], study["tasks"])
    present = sorted(set(selected["task"]))
    found = set(selected["estimator"])
    rows = [entry for entry in compared if entry.id in found]
    values = _values(selected, model, rows, present)
    fewer = _fewer_answers(selected)
    duels = _duels(selected, model, rows, present, read_bounds(intervals))
    scope = (cell(model), cell(" ".join(present)))

    def row(entry: Entry) -> Row:
        citation = "" if entry.role == "trace" else entry.citation
        name = (cell(entry.id), cell(entry.family), cell(entry.label, citation=citation))
        cells = (c for key in values[entry.id] for c in _cells(key, entry, values, fewer))
        return (*name, *cells, *scope)

    columns = (
        Column(("estimator",), shown=False),
        Column(("family",), shown=False),
        Column(("label",), "Method", align="left"),
        *(c for task in present for c in _columns(task, tasks[task], values)),
        *_columns("average", "Avg.", values),
        Column(("model",), shown=False),
        Column(("tasks",), shown=False),
    )
    groups = [RowGroup(tuple(map(row, members)), title) for title, members in grouped(rows)]
    return Table(
        name="main_comparison",
        title="Main comparison",
        caption=_caption(selected, rows, models[model], len(present)),
        columns=columns,
        groups=(*emphasised(groups, columns), *_improvements(duels, level(intervals), scope)),
        emphasis=f"Bold: best of the column; underlined: second best; {phrases.ALIKE}.",
        notes=(
            *phrases.absent_tasks(study["tasks"], present, tasks),
            *_undefined_notes(values, rows, tasks),
            *_fewer_notes(fewer, rows, tasks),
            *_improvement_notes(duels, intervals),
        ),
    )


def grouped(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Titled groups as in the paper: sequence-level, other baselines, TRACE."""
    baselines = [entry for entry in entries if entry.role == "baseline"]
    sequence = [entry for entry in baselines if entry.family in SEQUENCE_FAMILIES]
    others = [entry for entry in baselines if entry.family not in SEQUENCE_FAMILIES]
    families = phrases.listed(list(dict.fromkeys(e.family for e in others))) if others else ""
    named = [
        ("Token- and sequence-level baselines", sequence),
        (f"{families.capitalize()} baselines", others),
        ("", [entry for entry in entries if entry.role == "trace"]),
    ]
    return ((title, members) for title, members in named if members)


Key = tuple[str, str]
Values = dict[str, dict[Key, Average]]


def _values(
    selected: pl.DataFrame, model: str, rows: Sequence[Entry], present: Sequence[str]
) -> Values:
    """By estimator: the average of each (task, metric), then ("average", metric) over tasks."""
    by_task, overall = averages.per_task(selected), averages.over_tasks(selected)
    return {
        entry.id: {
            **{
                (task, m): by_task.get((model, task, entry.id, m), MISSING)
                for task in present
                for m in METRICS
            },
            **{("average", m): overall.get((model, entry.id, m), MISSING) for m in METRICS},
        }
        for entry in rows
    }


def _duels(
    selected: pl.DataFrame,
    model: str,
    rows: Sequence[Entry],
    present: Sequence[str],
    bounds: Intervals,
) -> list[Duel]:
    """TRACE+ against the best baseline on each task, then on average, by each metric.

    None where the run lacks one side.
    """
    baselines = [entry for entry in rows if entry.role == "baseline"]
    if not baselines or all(entry.id != TRACE_PLUS for entry in rows):
        return []
    scopes = [((None, model, task), selected.filter(task=task)) for task in present]
    return [
        duel(part, model, baselines, metric, bounds.get((*key, metric), Bounds()))
        for key, part in (*scopes, (("main", model, None), selected))
        for metric in METRICS
    ]


def _improvements(duels: Sequence[Duel], level: str, scope: Row) -> list[RowGroup]:
    """Rows of the improvements and of the bounds of their intervals."""
    if not duels:
        return []

    def row(id: str, label: str, values: Iterable[tuple[Cell, Cell]]) -> Row:
        cells = (c for value, sd in values for c in (replace(value, signed=True), sd, cell(None)))
        return (cell(id), cell(None), cell(label), *cells, *scope)

    bounds = [
        row(
            f"improvement_{side}",
            f"{level} interval, {words}",
            [(cell(getattr(one.bounds, side)), cell(None)) for one in duels],
        )
        for side, words in (("low", "from"), ("high", "to"))
    ]
    gains = [(gain_cell(one), cell(one.sds[-1])) for one in duels]
    title = "TRACE+ against the best baseline of each column"
    return [RowGroup((row("improvement", "Improvement", gains), *bounds), title)]


def _improvement_notes(duels: Sequence[Duel], intervals: pl.DataFrame) -> list[str]:
    if not duels:
        return []
    intervals_are, *mark = explained(intervals, any(one.unsupported for one in duels))
    return [f"{IMPROVED} {intervals_are}", *mark]


def _columns(key: str, label: str, values: Values) -> list[Column]:
    columns = []
    for metric in METRICS:
        better = averages.BETTER[metric]
        mark = PARTLY if _all_partly((key, metric), values) else ""
        columns += [
            Column((f"{key}_{metric}",), NAMES[metric], label, better, mark=mark),
            Column((f"{key}_{metric}_sd",), shown=False),
            Column((f"{key}_{metric}_undefined_splits",), shown=False),
        ]
    return columns


def _cells(key: Key, entry: Entry, values: Values, fewer: Mapping[Key, float]) -> list[Cell]:
    average = values[entry.id][key]
    partly = _partly(key, average) and not _all_partly(key, values)
    mark = PARTLY * partly + FEWER * ((key[0], entry.id) in fewer)
    return [cell(average.mean, mark=mark), cell(average.sd), cell(average.undefined)]


def _partly(key: Key, average: Average) -> bool:
    """Whether a task's mean leaves out splits."""
    return key[0] != "average" and 0 < average.undefined < average.splits


def _all_partly(key: Key, values: Values) -> bool:
    return all(_partly(key, row[key]) for row in values.values())


def _caption(selected: pl.DataFrame, rows: Sequence[Entry], model: str, tasks: int) -> str:
    beams = any(entry.family == "beam" for entry in rows)
    return (
        f"Confidence estimators on {model}, task by task. All of them judge the same generated "
        "answers, by the Brier score of their calibrated probability and the AUROC of their "
        f"ranking. Each value is {phrases.over_splits(selected)}; Avg. is the unweighted mean over "
        f"{phrases.count(tasks, 'task')}. The best baseline of a column is an oracle: whichever "
        "turned out best there."
        + " Beam scores also read the other beams of a search from the same prompt."
        * beams
    )


def _undefined_notes(values: Values, rows: Sequence[Entry], tasks: Labels) -> list[str]:
    """What the dagger and the dash stand for, with counts, and what the averages leave out."""
    partly, never, skipped = [], [], []
    for key in (key for key in values[rows[0].id] if key[0] != "average"):
        column = {entry: values[entry.id][key] for entry in rows}
        name = f"{NAMES[key[1]]} on {tasks[key[0]]}"
        some = [e for e, average in column.items() if _partly(key, average)]
        none = [e for e, average in column.items() if average.mean is None]
        if some:
            partly.append(f"{name} in {_span([column[e] for e in some])} ({_who(some, rows)})")
        if none:
            never.append(f"{name} ({_who(none, rows)})")
        if len(none) == len(rows):
            skipped.append(name)
    notes = []
    if partly:
        notes.append(
            f"{PARTLY} Undefined in some splits, which the mean leaves out: {'; '.join(partly)}."
        )
    if never:
        dashes = sum(average.mean is None for row in values.values() for average in row.values())
        notes.append(f"{ABSENT} Undefined ({phrases.count(dashes, 'cell')}): {'; '.join(never)}.")
    if skipped:
        notes.append(f"Avg. leaves out {phrases.listed(skipped)}.")
    return notes


def _span(averages: Sequence[Average]) -> str:
    counts = sorted({average.undefined for average in averages})
    total = max(average.splits for average in averages)
    return f"{ABSENT.join(str(c) for c in sorted({counts[0], counts[-1]}))} of {total} splits"


def _fewer_answers(selected: pl.DataFrame) -> dict[Key, float]:
    """The share of answers that was scored, for each (task, estimator) that misses some."""
    counts = selected.filter(metric="brier").group_by("task", "estimator").agg(pl.col("n").sum())
    share = counts.with_columns(share=pl.col("n") / pl.col("n").max().over("task"))
    return {(t, e): s for t, e, _, s in share.filter(pl.col("share") < 1).iter_rows()}


def _fewer_notes(fewer: Mapping[Key, float], rows: Sequence[Entry], tasks: Labels) -> list[str]:
    parts = [
        f"{entry.label} on {tasks[task]} ({fewer[task, entry.id]:.1%} of the answers)"
        for task in sorted({task for task, _ in fewer})
        for entry in rows
        if (task, entry.id) in fewer
    ]
    return [f"{FEWER} Without a score for some answers: {'; '.join(parts)}."] if parts else []


def _who(entries: Sequence[Entry], rows: Sequence[Entry]) -> str:
    if len(entries) == len(rows):
        return "all estimators"
    if len(entries) > 3:
        return phrases.count(len(entries), "estimator")
    return phrases.listed([entry.label for entry in entries])
