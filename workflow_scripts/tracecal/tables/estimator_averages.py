"""What tables of a few estimators' averages share: bridge, ablation and kin."""

from collections.abc import Mapping, Sequence

import polars as pl

from tracecal.tables import answered
from tracecal.tables.phrases import (
    BEST_OF_COLUMN,
    BETTER,
    NAMES,
    by,
    frame_of,
    method,
    partly,
    partly_note,
    summaries,
)
from tracecal.tables.rows import ADDED, ROWS
from tracecal.tables.rows import shown as shown_in
from tracecal.tables.settings import Entry, Frames, Settings
from tracecal.tables.words import count, listed
from tracecal.writers.table import Column, Table, ranked

HEADINGS = {"main": "Main", "cross": "Cross"}
CALIBRATED = "Brier and ECE are of calibrated probabilities unless a row says otherwise."
# By study, estimator and metric.
Means = Mapping[tuple[str, str, str], Mapping]


def averages_table(
    name: str,
    frames: Frames,
    settings: Settings,
    metrics: Sequence[str] = ("brier", "auroc"),
    decimals: int = 3,
    further: Mapping[str, Column] | None = None,
    notes: Sequence[str] = (),
    by_study: bool = False,
    heading: str = "Variant",
    area: str = "",
) -> Table:
    """The table `name` of ROWS, from `averages`: a row per estimator, a column per metric.

    Estimators that ROWS does not name are the last group.

    With `by_study` the columns of several studies stand side by side. `further` columns print
    what `settings.more` says of each estimator. Estimators that were not measured are left out,
    and named in a note. `heading` stands over the estimators, `area` over the AUROC.
    """
    further, missing = further or {}, answered.fewer(frames, settings)
    chosen = _chosen(frames["averages"], settings)
    known = set(chosen.filter(study="main")["estimator"])
    means = by(chosen.drop_nulls("mean"), "study", "estimator", "metric")
    entries = {entry.id: entry for entry in settings.estimators}
    wanted = shown_in(name)
    own = [id for id in entries if id not in wanted]
    groups = [[id for id in group if id in known] for group in (*ROWS[name], own)]
    shown = [entries[id] for group in groups for id in group]
    keys = {
        f"{study}_{metric}" if by_study else metric: (study, metric)
        for study in settings.studies
        for metric in metrics
    }
    columns = [
        Column(
            (name,),
            area or NAMES[metric],
            HEADINGS[study] if by_study else "",
            better=BETTER[metric],
            decimals=decimals,
            mark=partly(name),
        )
        for name, (study, metric) in keys.items()
    ]
    sections = {id: str(place) for place, group in enumerate(groups) for id in group}
    absent = sorted(wanted - known)
    return Table(
        frame=_frame(shown, keys, means, settings, list(further)),
        columns=(
            method(name, shown, missing, heading),
            *further.values(),
            *ranked(columns),
        ),
        section=pl.col("estimator").replace_strict(sections),
        emphasis=BEST_OF_COLUMN,
        added=pl.col("estimator").is_in(sorted(ADDED.get(name, ()))),
        footnotes=(
            *([f"Not in this run: {listed(absent)}."] if absent else []),
            *partly_note({"": settings.of_pairs(frames["averages"])}, metrics, settings.tasks),
            *answered.footnotes(missing, settings),
        ),
        notes=(
            CALIBRATED,
            *_cross_note(settings),
            *notes,
            *answered.notes(frames, settings),
        ),
    )


def _chosen(averages: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """The averages of the main study's model, and those over the cross study's models."""
    main = settings.select(averages, "main").filter(study="main")
    parts = [main]
    if "cross" in settings.studies:
        cross = settings.select(averages, "cross")
        parts.append(cross.filter(pl.col("model").is_null(), study="cross"))
    return pl.concat(parts)


def _frame(
    shown: Sequence[Entry],
    keys: Mapping[str, tuple[str, str]],
    means: Means,
    settings: Settings,
    further: Sequence[str],
) -> pl.DataFrame:
    rows = []
    for entry in shown:
        found = {name: means.get((s, entry.id, m), {}) for name, (s, m) in keys.items()}
        row = {"estimator": entry.id, "label": entry.label}
        row |= {name: settings.more[name].get(entry.id) or None for name in further}
        rows.append(row | summaries(found) | _scope(settings.studies))
    return frame_of(rows)


def _scope(studies: Mapping[str, Mapping]) -> dict[str, str]:
    """What the values were computed over, for the comparison with published ones."""
    main = studies["main"]
    scope = {"model": main["model"], "tasks": " ".join(main["tasks"])}
    if "cross" not in studies:
        return scope
    cross = {f"cross_{key}": " ".join(studies["cross"][key]) for key in ("models", "tasks")}
    return {f"main_{key}": value for key, value in scope.items()} | cross


def _cross_note(settings: Settings) -> list[str]:
    if "cross" not in settings.studies:
        return []
    cross = settings.studies["cross"]
    tasks = listed([settings.tasks[task] for task in cross["tasks"]])
    models = count(len(cross["models"]), "model")
    return [f"Cross: averaged over {tasks}, then over {models}."]
