"""The main comparison: every baseline and TRACE estimator on every task of one model."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from trace_workflow.tables import improved, notes
from trace_workflow.tables.captions import count, listed, note
from trace_workflow.tables.notes import (
    BEST_OF_COLUMN,
    BETTER,
    CLAIMED,
    DIRECTION,
    METRICS,
    NAMES,
    PARTLY,
    beam_notes,
    marked,
    method,
    rows_by,
    summaries,
)
from trace_workflow.tables.settings import Frames, Settings, present_tasks
from trace_workflow.tables.table import ABSENT, Column, Table, ranked
from tracecal.estimators import entry
from tracecal.estimators.entry import PICKED, Entry

FAMILIES = {"beam": "beam-distribution"}
SEQUENCE_FAMILIES = ("likelihood", "entropy")
AVERAGE = "average"
GAINS = "gains"

# By (task, null for the average; estimator; metric).
Means = Mapping[tuple[str | None, str, str], Mapping]
# Of a baseline and TRACE+ by (task, metric, against).
Gains = Mapping[tuple[str | None, str, str], Mapping]
Keys = Sequence[tuple[str | None, str]]


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`, `improvements` and `accuracy`."""
    chosen = settings.select(frames["averages"], "main")
    present, ids = present_tasks(chosen), set(chosen["estimator"])
    rows = [entry for entry in settings.of_role("baseline", "trace") if entry.id in ids]
    means = rows_by(chosen, "task", "estimator", "metric")
    metrics = [metric for metric in CLAIMED if metric in set(chosen["metric"])]
    further = [metric for metric in metrics if metric not in METRICS]
    keys = [
        (task, metric)
        for part in (METRICS, further)
        for task in (*present, None)
        for metric in part
    ]
    gains = _gains(frames["improvements"], rows, settings)
    ends = ("", "_sd", "_undefined_splits")
    frame = pl.DataFrame(
        [*(_row(entry, keys, means) for entry in rows), *_gain_rows(gains, keys, settings)],
        schema=["estimator", "family", "label", *(_name(*key) + e for key in keys for e in ends)],
        infer_schema_length=None,
    ).with_columns(**settings.scope(present))
    fewer = notes.fewer(frames, settings)
    columns = [_column(key, rows, means, gains, fewer, settings.tasks) for key in keys]
    sections, titles = _sections(rows)
    known = pl.col("estimator").is_in([entry.id for entry in rows])
    return Table(
        frame=frame,
        columns=(method("main_comparison", rows), *ranked(columns, among=known)),
        section=pl.col("estimator").replace_strict(sections, default=GAINS),
        titles=titles,
        emphasis=BEST_OF_COLUMN,
        added=~known,
        footnotes=(
            *settings.absent_tasks("main", present),
            *_undefined_notes(keys, rows, means, settings.tasks),
            *notes.footnotes(fewer, settings),
        ),
        notes=(
            *notes.notes(frames, settings),
            *beam_notes(rows, settings),
            *([DIRECTION] if "auroc_calibrated" in metrics else []),
            *_gain_notes(gains, settings),
            *_beyond_notes(frames, settings),
        ),
    )


def _gains(improvements: pl.DataFrame, rows: Sequence[Entry], settings: Settings) -> Gains:
    """Empty where the run lacks TRACE+ or every baseline."""
    roles = {entry.id if entry.role == "trace" else entry.role for entry in rows}
    if not {"baseline", entry.TRACE_PLUS} <= roles:
        return {}
    return rows_by(settings.select(improvements, "main"), "task", "metric", "against")


def _name(task: str | None, metric: str) -> str:
    return f"{task or AVERAGE}_{metric}"


def _row(entry: Entry, keys: Keys, means: Means) -> dict:
    row = {"estimator": entry.id, "family": entry.family, "label": entry.label}
    return row | summaries({_name(t, m): means.get((t, entry.id, m), {}) for t, m in keys})


def _gain_rows(gains: Gains, keys: Keys, settings: Settings) -> Iterator[dict]:
    """The selected baseline, and the improvements with the ends of their intervals."""
    if not gains:
        return

    def row(estimator: str, label: str, against: str, column: str, sd: str = "") -> dict:
        found = {key: gains[*key, against] for key in keys}
        values = {_name(*key): found[key][column] for key in keys}
        sds = {f"{_name(*key)}_sd": found[key][sd] for key in keys if sd}
        return {"estimator": estimator, "label": label} | values | sds

    interval = f"{improved.level(gains.values())} interval"
    named = improved.headings(settings)
    yield row(PICKED, "Selected baseline", "picked", "reference", "reference_sd")
    for kind, heading in zip(improved.CHOSEN, named, strict=True):
        start = f"improvement_{kind}"
        yield row(
            start, f"TRACE+ {heading.lower()[:1]}{heading[1:]}", kind, "difference", "difference_sd"
        )
        yield row(f"{start}_low", f"{interval}, from", kind, "low")
        yield row(f"{start}_high", f"{interval}, to", kind, "high")
    best = "TRACE+ against the best of the column"
    yield row("improvement", best, "oracle", "difference", "difference_sd")


def _column(
    key: tuple[str | None, str],
    rows: Sequence[Entry],
    means: Means,
    gains: Gains,
    fewer: notes.Fewer,
    tasks: Mapping[str, str],
) -> Column:
    task, metric = key
    partly = _partly(key, rows, means)
    every = partly == list(rows)
    unscored = [estimator for _, where, estimator in fewer if task in (where, None)]
    unsupported = [
        f"improvement_{kind}"
        for kind in improved.CHOSEN
        if gains and improved.unsupported(gains[*key, kind])
    ]
    estimator, where = pl.col("estimator"), tasks[task] if task else "Avg."
    printed = metric in METRICS
    return Column(
        (_name(*key),),
        NAMES[metric] if printed else where,
        where if printed else NAMES[metric],
        BETTER[metric],
        signed=~estimator.is_in([*(entry.id for entry in rows), PICKED]),
        heading_mark=PARTLY if every else "",
        mark=marked(
            (estimator.is_in([] if every else [entry.id for entry in partly]), PARTLY),
            (estimator.is_in(unscored), notes.FEWER),
        ),
        added_mark=marked((estimator.is_in(unsupported), improved.UNSUPPORTED)),
        added=not printed,
    )


def _partly(key: tuple[str | None, str], rows: Sequence[Entry], means: Means) -> list[Entry]:
    """The estimators whose mean on a task leaves out splits."""
    task, metric = key
    averages = {entry: means.get((task, entry.id, metric)) for entry in rows if task}
    return [
        e
        for e, average in averages.items()
        if average and 0 < average["undefined"] < average["splits"]
    ]


def _sections(rows: Sequence[Entry]) -> tuple[dict[str, str], dict[str, str]]:
    """Each estimator's section, and the sections' titles, as in the paper."""
    sections = {
        entry.id: "trace"
        if entry.role == "trace"
        else "sequence"
        if entry.family in SEQUENCE_FAMILIES
        else "others"
        for entry in rows
    }
    others = dict.fromkeys(e.family for e in rows if sections[e.id] == "others")
    families = [FAMILIES.get(family, family) for family in others]
    return sections, {
        "sequence": "Token- and sequence-level confidence baselines",
        "others": f"{_series(families).capitalize()} baselines" if families else "",
        GAINS: "TRACE+ against a baseline: positive where TRACE+ is better",
    }


def _series(names: Sequence[str]) -> str:
    """As `listed`, with the paper's comma before the last of three or more."""
    *others, last = names
    return f"{', '.join(others)}, and {last}" if len(others) > 1 else listed(names)


def _gain_notes(gains: Gains, settings: Settings) -> list[str]:
    if not gains:
        return []
    return improved.explained(gains.values(), settings)


def _beyond_notes(frames: Frames, settings: Settings) -> list[str]:
    """By how much each fit beyond the paper is better than TRACE+, averaged over the tasks."""
    labels = settings.more.get("beyond_paper", {})
    if not labels:
        return []
    rows = frames["beyond_paper"].filter(pl.col("task").is_null(), study="main")
    told, supported = [], []
    for (fit,), of_fit in rows.group_by("baseline", maintain_order=True):
        by_metric = {row["metric"]: row for row in of_fit.iter_rows(named=True)}
        # Their calibrated probability is their score, so that there is one AUROC.
        found = [by_metric[metric] for metric in METRICS if metric in by_metric]
        # A difference says how much better TRACE+ is.
        gains = [
            f"{NAMES[row['metric']]} {-row['difference']:+.3f} [{-row['high']:+.3f}, "
            f"{-row['low']:+.3f}]"
            for row in found
        ]
        told.append(f"{labels[fit]}: {', '.join(gains)}")
        supported += [f"{labels[fit]} in {NAMES[r['metric']]}" for r in found if r["high"] < 0]
    if not told:
        return []
    level = f"{100 * rows['level'].max():g} %"
    return [
        "Fits beyond the paper, by how much they are better than TRACE+, averaged over the tasks "
        f"({level} intervals that hold for all of them at once): {'; '.join(told)}. Supported by "
        f"their interval: {listed(supported) if supported else 'none'}."
    ]


def _undefined_notes(
    keys: Keys, rows: Sequence[Entry], means: Means, tasks: Mapping[str, str]
) -> list[str]:
    """Explains the dagger and the dash, with counts, and what the averages leave out."""
    partly, never, skipped, dashes = [], [], [], 0
    for task, metric in keys:
        column = {entry: means.get((task, entry.id, metric)) for entry in rows}
        none = [e for e, average in column.items() if average is None or average["mean"] is None]
        dashes += len(none)
        if task is None:
            continue
        name = f"{NAMES[metric]} on {tasks[task]}"
        if some := _partly((task, metric), rows, means):
            partly.append(f"{name} in {_span([column[e] for e in some])} ({_who(some, rows)})")
        if none:
            never.append(f"{name} ({_who(none, rows)})")
        if len(none) == len(rows):
            skipped.append(name)
    return [
        *note(f"{PARTLY} Undefined in some splits, which the mean leaves out", partly),
        *note(f"{ABSENT} Undefined ({count(dashes, 'cell')})", never),
        *([f"Avg. leaves out {listed(skipped)}."] if skipped else []),
    ]


def _span(averages: Sequence[Mapping]) -> str:
    counts = sorted({average["undefined"] for average in averages})
    total = max(average["splits"] for average in averages)
    return f"{ABSENT.join(str(c) for c in sorted({counts[0], counts[-1]}))} of {total} splits"


def _who(entries: Sequence[Entry], rows: Sequence[Entry]) -> str:
    if len(entries) == len(rows):
        return "all estimators"
    if len(entries) > 3:
        return count(len(entries), "estimator")
    return listed([entry.label for entry in entries])
