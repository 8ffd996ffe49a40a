"""The main comparison: every baseline, TRACE estimator and own score on every task of one model.

`table(study)` lays out the averages of the main study, a row per estimator and a column per task
and metric, with the improvements of TRACE+ over three baselines below: the prespecified baseline,
the baseline selected on calibration data, and the best of each column.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from trace_workflow.tables import improvement_columns as improved
from trace_workflow.tables import marks, metric_names
from trace_workflow.tables.ranking_table import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.standing_notes import beam_notes, count_notes
from trace_workflow.tables.study_results import StudyResults, rows_by, tasks_of
from trace_workflow.tables.table import ENDS, WIDEST, Column, Table
from trace_workflow.tables.wording import join_names
from tracecal.estimators.estimator import PICKED, TRACE_PLUS, Entry

FAMILY_NAMES = {"beam": "beam-distribution"}
SEQUENCE_FAMILIES = ("likelihood", "entropy")
AVERAGE = "average"
GAINS = "gains"

Key = tuple[str | None, str]  # a task, None for the average, and a metric


@dataclass(frozen=True)
class Comparison:
    """The rows and columns of the table, and the improvements behind them.

    `gains` are the improvements of TRACE+ and of own scores by estimator, task, metric and what
    they are compared with; they are empty if the run has no TRACE+ or no baseline. `compared` are
    the entries that have gains.
    """

    study: StudyResults
    entries: Sequence[Entry]
    keys: Sequence[Key]
    gains: Mapping[tuple[str, str | None, str, str], Mapping]

    @property
    def compared(self) -> list[Entry]:
        compared = {estimator for estimator, *_ in self.gains}
        return [entry for entry in self.entries if entry.id in compared]

    @property
    def ids(self) -> list[str]:
        return [entry.id for entry in self.entries]


def table(study: StudyResults) -> Table:
    """Make the table from `averages` and `improvements`."""
    averages = study.select("averages")
    tasks, measured = tasks_of(averages), set(averages["estimator"])
    metrics = [metric for metric in metric_names.CLAIMED if metric in set(averages["metric"])]
    added_metrics = [metric for metric in metrics if metric not in metric_names.METRICS]
    scopes = (*tasks, None) if len(tasks) > 1 else tasks  # a single task is its average
    keys = [
        (task, metric)
        for part in (metric_names.METRICS, added_metrics)
        for task in scopes
        for metric in part
    ]
    entries = [e for e in study.with_role("baseline", "trace", "own") if e.id in measured]
    gains = {}
    if any(entry.role == "baseline" for entry in entries):
        gains = rows_by(study.select("improvements"), "estimator", "task", "metric", "against")
    comparison = Comparison(study, entries, keys, gains)
    rows = study.pivot(averages, {_name(*key): key for key in keys}, ["task", "metric"], entries)
    families = {entry.id: entry.family for entry in entries}
    ends = ("", "_sd", "_undefined_splits")
    columns = ["estimator", "label", *(_name(*key) + end for key in keys for end in ends)]
    rows += _gain_rows(comparison)
    frame = pl.DataFrame(rows, columns, infer_schema_length=None).with_columns(**study.scope(tasks))
    family = pl.col("estimator").replace_strict(families, default=None, return_dtype=pl.String)
    frame.insert_column(1, frame.select(family=family).to_series())
    sections, titles = _sections(comparison)
    is_estimator = pl.col("estimator").is_in(comparison.ids)
    columns = [_column(key, comparison) for key in keys]
    return Table(
        frame=frame,
        columns=(
            marks.estimator_column("main_comparison", entries),
            *rank_columns(columns, compared_rows=is_estimator),
        ),
        section=pl.col("estimator").replace_strict(sections),
        titles=titles,
        emphasis=BEST_OF_COLUMN,
        added=~is_estimator | pl.col("estimator").is_in([e.id for e in study.with_role("own")]),
        footnotes=(
            *study.missing_tasks("main", tasks),
            *marks.explain_partly_undefined(
                {"": averages.filter(is_estimator)}, study.tasks, metrics
            ),
            *marks.explain_unscored(study),
        ),
        notes=(
            *count_notes(study),
            *beam_notes(entries, study),
            *([metric_names.DIRECTION_NOTE] if "auroc_calibrated" in metrics else []),
            *improved.explain_improvements(comparison.gains.values(), study),
        ),
    )


def _name(task: str | None, metric: str) -> str:
    return f"{task or AVERAGE}_{metric}"


def _gain_rows(comparison: Comparison) -> Iterator[dict]:
    """The selected baseline, and the improvements with the ends of their intervals.

    The last row of TRACE+ compares with the best of each column and has no interval.
    """
    gains = comparison.gains
    if not comparison.compared:
        return

    def row(name: str, label: str, entry: str, against: str, column: str, sd: str = "") -> dict:
        by_key = {_name(*key): gains.get((entry, *key, against), {}) for key in comparison.keys}
        values = {key: gain.get(column) for key, gain in by_key.items()}
        sds = {f"{key}_sd": gain.get(sd) for key, gain in by_key.items() if sd}
        return {"estimator": name, "label": label} | values | sds

    interval = f"{improved.interval_level(gains.values())} interval"
    rivals = dict(zip(improved.CHOSEN, improved.chosen_headings(comparison.study), strict=True))
    sides = ("reference", "reference_sd")
    first = comparison.compared[0]
    yield row(PICKED, "Selected baseline", first.id, "picked", *sides)
    for entry in comparison.compared:
        further = {} if entry.id == TRACE_PLUS else {TRACE_PLUS: "Against TRACE+"}
        for kind, heading in (rivals | further).items():
            name = _gain_row(entry, kind)
            label = f"{entry.label} {heading[:1].lower()}{heading[1:]}"
            yield row(name, label, entry.id, kind, "difference", "difference_sd")
            yield row(f"{name}_low", f"{interval}, from", entry.id, kind, "low")
            yield row(f"{name}_high", f"{interval}, to", entry.id, kind, "high")
        if entry.id == TRACE_PLUS:
            best = "TRACE+ against the best of the column"
            yield row("improvement", best, entry.id, "oracle", "difference", "difference_sd")


def _gain_row(entry: Entry, against: str) -> str:
    """The id of the row with an estimator's improvements."""
    prefix = "" if entry.id == TRACE_PLUS else f"{entry.id}_"
    return f"{prefix}improvement_{against}"


def _column(key: Key, comparison: Comparison) -> Column:
    task, metric = key
    study = comparison.study
    partly_scored = [
        estimator
        for _, scored_task, estimator in study.scored_shares
        if task in (scored_task, None)
    ]
    bounded = {
        _gain_row(entry, kind): comparison.gains[entry.id, *key, kind]
        for entry in comparison.compared
        for kind in (*improved.CHOSEN, TRACE_PLUS)
        if (entry.id, *key, kind) in comparison.gains
    }
    too_wide = [
        name + end
        for name, gain in bounded.items()
        if gain["low"] is not None and gain["high"] - gain["low"] > WIDEST
        for end in ("", *ENDS)
    ]
    unsupported = [name for name, gain in bounded.items() if improved.is_unsupported(gain)]
    estimator, task_label = pl.col("estimator"), study.tasks[task] if task else "Avg."
    in_paper = metric in metric_names.METRICS
    of_task = in_paper or (None, metric) not in comparison.keys
    return Column(
        (_name(*key),),
        metric_names.METRIC_NAMES[metric] if of_task else task_label,
        task_label if of_task else metric_names.METRIC_NAMES[metric],
        metric_names.BETTER[metric],
        signed=~estimator.is_in([*comparison.ids, PICKED]),
        mark=marks.mark_partly_undefined(_name(*key))
        + marks.mark_where((estimator.is_in(partly_scored), marks.UNSCORED)),
        added_mark=marks.mark_where((estimator.is_in(unsupported), marks.UNSUPPORTED)),
        added=not in_paper,
        too_wide=estimator.is_in(too_wide),
    )


def _sections(comparison: Comparison) -> tuple[dict[str, str], dict[str, str]]:
    """The section of each row, and the titles of sections; TRACE's own has none."""
    entries = comparison.entries

    def section(entry: Entry) -> str:
        if entry.role in ("trace", "own"):
            return entry.role
        return "sequence" if entry.family in SEQUENCE_FAMILIES else "others"

    families = dict.fromkeys(
        FAMILY_NAMES.get(entry.family, entry.family)
        for entry in entries
        if section(entry) == "others"
    )
    family_names = join_names([*families]) if families else ""
    if len(families) > 2:  # as in the paper, with a comma before the last
        family_names = ", and ".join(family_names.rsplit(" and ", 1))
    sections = {entry.id: section(entry) for entry in entries}
    titles = {
        "sequence": "Token- and sequence-level confidence baselines",
        "others": f"{family_names.capitalize()} baselines" if families else "",
        "own": "Your own scores",
        GAINS: "TRACE+ against a baseline: positive where TRACE+ is better",
    }
    for row in _gain_rows(comparison):
        sections.setdefault(row["estimator"], GAINS)
    for entry in comparison.compared:
        if entry.role == "own":
            gain_rows = {name for name in sections if name.startswith(f"{entry.id}_improvement_")}
            sections |= dict.fromkeys(gain_rows, f"{GAINS}_{entry.id}")
            titles[f"{GAINS}_{entry.id}"] = f"{entry.label}: positive where it is better"
    return sections, titles
