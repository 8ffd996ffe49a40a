"""The tables of a few estimators' averages: those named in ROWS."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from trace_workflow.tables import notes
from trace_workflow.tables.captions import ADDED, ROWS, count, listed
from trace_workflow.tables.captions import shown as shown_in
from trace_workflow.tables.notes import (
    BEST_OF_COLUMN,
    BETTER,
    DEBIASED,
    DEBIASED_IS,
    NAMES,
    beam_notes,
    frame_of,
    method,
    partly,
    partly_note,
    rows_by,
    summaries,
)
from trace_workflow.tables.settings import Frames, Settings
from trace_workflow.tables.table import Column, Table, ranked

HEADINGS = {"main": "Main", "cross": "Cross"}
CALIBRATED = "Brier and ECE are of calibrated probabilities unless a row says otherwise."
REQUIREMENTS = (
    "Req.: E extra inference, S sampled answers, H hidden states, L labelled training, "
    "C held-out calibration labels."
)
EPR_ID = "mean_token_entropy"
EPR = "Mean token entropy is also EPR (Moslonka et al. 2025), taken over the whole vocabulary."


@dataclass(frozen=True)
class Layout:
    """How a table of averages looks.

    With `by_study` the columns of several studies are side by side. `further` columns print values
    of `settings.more`, by estimator. `heading` is the heading of the estimators' column, `area`
    that of the AUROC.
    """

    metrics: Sequence[str] = ("brier", "auroc")
    decimals: int = 3
    further: Mapping[str, Column] = field(default_factory=dict)
    notes: Sequence[str] = ()
    by_study: bool = False
    heading: str = "Variant"
    area: str = ""


LAYOUTS = {
    "bridge": Layout(metrics=("brier", "auroc", "ece", DEBIASED), notes=[DEBIASED_IS]),
    "ablation": Layout(by_study=True),
    "operator_ablation": Layout(metrics=("auroc",), area="Avg. AUROC"),
    # Differences are small, hence a digit more.
    "semantic_fusion": Layout(decimals=4, heading="Method"),
    "broader_uq": Layout(
        further={"requires": Column(("requires",), "Req.")}, notes=[REQUIREMENTS], heading="Method"
    ),
}


def table(frames: Frames, settings: Settings) -> Table:
    """From `averages`, the table that `settings.more["table"]` names: a row per estimator.

    Estimators that are not in ROWS are the last group; those that were not measured are left out
    and listed in a note.
    """
    name = settings.more["table"]
    layout, missing = LAYOUTS[name], notes.fewer(frames, settings)
    by_study, further = layout.by_study, layout.further
    chosen = _chosen(frames["averages"], settings)
    known = set(chosen.filter(study="main")["estimator"])
    means = rows_by(chosen.drop_nulls("mean"), "study", "estimator", "metric")
    entries = {entry.id: entry for entry in settings.estimators}
    wanted = shown_in(name)
    groups = (*ROWS[name], [id for id in entries if id not in wanted])
    sections = {id: str(place) for place, group in enumerate(groups) for id in group}
    shown = [entries[id] for id in sections if id in known]
    keys = {
        f"{study}_{metric}" if by_study else metric: (study, metric)
        for study in settings.studies
        for metric in layout.metrics
    }
    columns = [
        Column(
            (key,),
            layout.area or NAMES[metric],
            HEADINGS[study] if by_study else "",
            better=BETTER.get(metric),
            decimals=layout.decimals,
            mark=partly(key),
            added=metric == DEBIASED,
        )
        for key, (study, metric) in keys.items()
    ]
    rows = [
        {"estimator": entry.id, "label": entry.label}
        | {column: settings.more[column].get(entry.id) or None for column in further}
        | summaries({key: means.get((s, entry.id, m), {}) for key, (s, m) in keys.items()})
        | _scope(settings.studies)
        for entry in shown
    ]
    absent = sorted(wanted - known)
    epr = [EPR] * (name == "broader_uq" and EPR_ID in entries)
    return Table(
        frame=frame_of(rows),
        columns=(method(name, shown, missing, layout.heading), *further.values(), *ranked(columns)),
        section=pl.col("estimator").replace_strict(sections),
        emphasis=BEST_OF_COLUMN,
        added=pl.col("estimator").is_in(sorted(ADDED.get(name, ()))),
        footnotes=(
            *([f"Not in this run: {listed(absent)}."] if absent else []),
            *partly_note(
                {"": settings.of_pairs(frames["averages"])}, settings.tasks, layout.metrics
            ),
            *notes.footnotes(missing, settings),
        ),
        notes=(
            CALIBRATED,
            *_cross_note(settings),
            *_subset_note(settings),
            *layout.notes,
            *beam_notes(shown, settings),
            *epr,
            *notes.notes(frames, settings),
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


def _scope(studies: Mapping[str, Mapping]) -> dict[str, str]:
    """The models and tasks of the values, for the comparison with published ones."""
    main = studies["main"]
    scope = {"model": main["model"], "tasks": " ".join(main["tasks"])}
    if "cross" not in studies:
        return scope
    cross = {f"cross_{key}": " ".join(studies["cross"][key]) for key in ("models", "tasks")}
    return {f"main_{key}": value for key, value in scope.items()} | cross


def _subset_note(settings: Settings) -> list[str]:
    if "subset" not in settings.more:
        return []
    size = count(settings.more["subset"], "evaluation answer")
    return [
        f"On a seeded subset of at most {size} of each task, on which every estimator here is "
        "fitted and evaluated; other tables compare on all answers."
    ]


def _cross_note(settings: Settings) -> list[str]:
    if "cross" not in settings.studies:
        return []
    cross = settings.studies["cross"]
    tasks = listed([settings.tasks[task] for task in cross["tasks"]])
    models = count(len(cross["models"]), "model")
    return [f"Cross: averaged over {tasks}, then over {models}."]
