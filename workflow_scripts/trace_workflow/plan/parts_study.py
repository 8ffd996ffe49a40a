"""Analyses of parts of answers, with their tables and figure."""

from collections.abc import Iterator

from trace_workflow.config.selection import Run
from trace_workflow.plan.entries import (
    QUESTIONS,
    Analysis,
    Figure,
    PerPair,
    Result,
    Table,
    analysed,
)
from tracecal.estimators.entry import entries

# Files of each pair of the study of parts; those of 'whole_scores' and 'wholes' are of the answers.
OF_PARTS = {
    "traces": "<results>/traces/{model}/{task}.arrow",
    "wholes": "<results>/traces/{model}/{parent}.arrow",
    "labels": "<results>/labels/{model}/{task}.parquet",
    "splits": "<results>/splits/{task}.parquet",
    "scores": "<results>/scores/{model}/{task}.parquet",
    "predictions": "<results>/predictions/{model}/{task}.parquet",
    "whole_scores": "<results>/scores/{model}/{parent}.parquet",
    "questions": QUESTIONS,
}


def results_of_parts(run: Run) -> Iterator[Result | Table]:
    """The analyses, tables and figures of the study of parts, where a run has one."""
    if not run.missing_parts:
        return
    shown = run.selection.of_parts
    yield Analysis(
        "localisation",
        _of_parts("traces wholes labels splits questions"),
        {"bootstrap": run.bootstrap},
        pairs="parts",
    )
    scored = {
        "scored": shown.scored.ids,
        "learned": shown.learned.ids,
    }
    yield Analysis(
        "part_scores",
        _of_parts("labels questions scores predictions whole_scores"),
        scored | {"bootstrap": run.bootstrap},
        pairs="parts",
    )
    missing = {"missing": run.missing_parts}
    yield Table("localisation", ["localisation"], studies=["parts"], more=missing)
    yield Table("part_scores", ["part_scores"], studies=["parts"], estimators=shown)
    yield Figure(
        "wrong_parts",
        {"pointed": analysed("localisation"), "scores": analysed("part_scores")},
        {
            "entries": entries(shown),
            "models": run.model_labels,
            "tasks": run.task_labels,
        },
    )


def _of_parts(kinds: str) -> dict[str, PerPair]:
    return {kind: PerPair(OF_PARTS[kind], "parts") for kind in kinds.split()}
