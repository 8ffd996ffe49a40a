"""The tables of a few estimators' averages: those of `estimator_rows`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from trace_workflow.tables import marks
from trace_workflow.tables.estimator_rows import ADDED_ROWS, ESTIMATOR_ROWS, estimators_of
from trace_workflow.tables.metric_names import BETTER, DEBIASED_ECE, DEBIASED_NOTE, METRIC_NAMES
from trace_workflow.tables.ranking_table import BEST_OF_COLUMN, rank_columns
from trace_workflow.tables.standing_notes import beam_notes, count_notes
from trace_workflow.tables.study_results import StudyResults, frame_of
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import count, join_names

STUDY_HEADINGS = {"main": "Main", "cross": "Cross"}
CALIBRATED_NOTE = "Brier and ECE use calibrated probabilities unless a row says otherwise."
REQUIREMENTS_NOTE = (
    "Req.: E extra inference, S sampled answers, H hidden states, L labelled training, "
    "C held-out calibration labels."
)


@dataclass(frozen=True)
class AveragesLayout:
    """How a table of averages looks.

    With `by_study` the columns of several studies stand side by side. `extra_columns` print the
    values of the study's options, by estimator. `heading` is that of the estimators' column,
    `auroc_heading` that of the AUROC where it differs.
    """

    metrics: Sequence[str] = ("brier", "auroc")
    decimals: int = 3
    extra_columns: Mapping[str, Column] = field(default_factory=dict)
    notes: Sequence[str] = ()
    by_study: bool = False
    heading: str = "Variant"
    auroc_heading: str = ""


LAYOUTS = {
    "bridge": AveragesLayout(
        metrics=("brier", "auroc", "ece", DEBIASED_ECE), notes=[DEBIASED_NOTE]
    ),
    "ablation": AveragesLayout(by_study=True),
    "operator_ablation": AveragesLayout(metrics=("auroc",), auroc_heading="Avg. AUROC"),
    # Differences are small, hence a digit more.
    "semantic_fusion": AveragesLayout(decimals=4, heading="Method"),
    "broader_uq": AveragesLayout(
        extra_columns={"requires": Column(("requires",), "Req.")},
        notes=[REQUIREMENTS_NOTE],
        heading="Method",
    ),
}


def table(study: StudyResults) -> Table:
    """From `averages`, the table that the option `table` names: a row per estimator.

    The last group holds estimators beyond ESTIMATOR_ROWS; a note lists estimators without values.
    """
    name = study.options["table"]
    layout = LAYOUTS[name]
    # Of the main study's model, and over the cross study's models.
    averages = study.select("averages", "main").filter(study="main")
    if "cross" in study.studies:
        cross = study.select("averages", "cross").filter(pl.col("model").is_null(), study="cross")
        averages = pl.concat([averages, cross])
    measured = set(averages.filter(study="main")["estimator"])
    by_id = {entry.id: entry for entry in study.estimators}
    expected = estimators_of(name)
    groups = (*ESTIMATOR_ROWS[name], [id for id in by_id if id not in expected])
    sections = {id: str(index) for index, group in enumerate(groups) for id in group}
    entries = [by_id[id] for id in sections if id in measured]
    keys = {
        f"{part}_{metric}" if layout.by_study else metric: (part, metric)
        for part in study.studies
        for metric in layout.metrics
    }
    several_tasks = len(study.studies["main"]["tasks"]) > 1
    defined = averages.drop_nulls("mean")
    rows = study.pivot(defined, keys, ["study", "metric"], entries)
    scope = _scope(study.studies)
    frame_rows = []
    for row in rows:
        id = row["estimator"]
        extra = {column: study.options[column].get(id) or None for column in layout.extra_columns}
        frame_rows.append({"estimator": id, "label": row["label"]} | extra | row | scope)
    absent = sorted(expected - measured)
    pairs = {"": study.in_pairs(study.frames["averages"])}
    subset = []
    if "subset" in study.options:
        size = count(study.options["subset"], "evaluation answer")
        subset = [
            f"On a random subset of at most {size} per task, on which every estimator here is "
            "fitted and evaluated; other tables use all answers."
        ]
    return Table(
        frame=frame_of(frame_rows),
        columns=(
            marks.estimator_column(name, entries, study.scored_shares, layout.heading),
            *layout.extra_columns.values(),
            *rank_columns([_column(key, *keys[key], layout, several_tasks) for key in keys]),
        ),
        section=pl.col("estimator").replace_strict(sections),
        emphasis=BEST_OF_COLUMN,
        added=pl.col("estimator").is_in(sorted(ADDED_ROWS.get(name, ()))),
        footnotes=(
            *([f"Not in this run: {join_names(absent)}."] if absent else []),
            *marks.explain_partly_undefined(pairs, study.tasks, layout.metrics),
            *marks.explain_unscored(study),
        ),
        notes=(
            CALIBRATED_NOTE,
            *_explain_cross(study),
            *subset,
            *layout.notes,
            *beam_notes(entries, study),
            *count_notes(study),
        ),
    )


def _column(
    key: str, part: str, metric: str, layout: AveragesLayout, several_tasks: bool
) -> Column:
    return Column(
        (key,),
        (layout.auroc_heading if several_tasks else "") or METRIC_NAMES[metric],
        STUDY_HEADINGS[part] if layout.by_study else "",
        better=BETTER.get(metric),
        decimals=layout.decimals,
        mark=marks.mark_partly_undefined(key),
        added=metric == DEBIASED_ECE,
    )


def _scope(studies: Mapping[str, Mapping]) -> dict[str, str]:
    """The models and tasks of the values, for the comparison with published ones."""
    main = studies["main"]
    scope = {"model": main["model"], "tasks": " ".join(main["tasks"])}
    if "cross" not in studies:
        return scope
    cross = {f"cross_{key}": " ".join(studies["cross"][key]) for key in ("models", "tasks")}
    return {f"main_{key}": value for key, value in scope.items()} | cross


def _explain_cross(study: StudyResults) -> list[str]:
    if "cross" not in study.studies:
        return []
    cross = study.studies["cross"]
    tasks = join_names([study.tasks[task] for task in cross["tasks"]])
    models = count(len(cross["models"]), "model")
    return [f"Cross: averaged over {tasks}, then over {models}."]
