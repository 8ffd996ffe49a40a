"""How often the risk of an answer lies in a wrong part, compared with chance."""

import polars as pl

from trace_workflow.analyses.localisation import CHANCE, COUNTS, POINTERS
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import Column, Table
from trace_workflow.tables.wording import note

POINTER_NAMES = {
    "window": "Window of peak risk",
    "max_surprisal": "Token of highest surprisal",
    "max_entropy": "Token of highest entropy",
    "random_window": "Chance: any window",
    "random_token": "Chance: any token",
    "random_part": "Chance: any part",
    "failing_name": "The part that usually fails",
}
MISSING_PARTS = {"unanswered": "are left out", "wrong": "count as wrong in the accuracy"}


def table(study: StudyResults) -> Table:
    """From the analysis of the same name: a row per pointer, the best first, pair by pair."""
    order = [*POINTERS, *CHANCE]
    rank = pl.col("pointer").replace_strict(order, range(len(order)))
    label = pl.col("pointer").replace_strict(POINTER_NAMES)
    rows = study.in_pairs(study.frames["localisation"]).with_columns(label=label)
    frame = rows.sort(
        *(study.model_order, "task", "value", rank),
        descending=[False, False, True, False],
        nulls_last=True,
    )
    section, titles = study.pair_sections
    level = frame["level"].max()
    return Table(
        frame=frame.select(
            *("model", "task", "pointer", "label", "value", "low", "high", "pointed"),
            *COUNTS,
        ),
        columns=(
            Column(("label",), "Points at", align="left"),
            Column(("value",), "In a wrong part", better="higher"),
            Column(("low", "high"), f"{100 * (level or 0):g}% interval", joint=" to "),
            Column(("pointed",), "Answers"),
        ),
        section=section,
        titles=titles,
        notes=(
            "The share of answers with right and wrong parts in which the pointer lies in a wrong "
            "part; a token or window outside all parts is no hit.",
            *_count_parts(frame, study),
        ),
    )


def _count_parts(frame: pl.DataFrame, study: StudyResults) -> list[str]:
    """A note on the numbers of answers and parts, and on missing parts."""
    missing = study.options["missing"]
    sentences = [
        f"{study.pair_label(row['model'], row['task'])} {row['answers']} answers, "
        f"{row['without_parts']} without parts in the requested form and {row['mixed']} with right "
        f"and wrong parts; {row['wrong']} of {row['parts']} parts are wrong, {row['missing']} more "
        f"are missing; missing parts {MISSING_PARTS[missing[row['task']]]}"
        for row in frame.unique(["model", "task"], maintain_order=True).to_dicts()
    ]
    return note("Counted", sentences)
