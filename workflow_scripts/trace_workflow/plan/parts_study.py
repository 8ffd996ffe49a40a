"""The analyses of parts of answers, with their tables and figure."""

from collections.abc import Iterator

from trace_workflow.config.run import Run
from trace_workflow.plan.entries import (
    QUESTIONS,
    Analysis,
    Figure,
    PerPair,
    PlannedTable,
    Result,
    analysed,
)

# Files of each pair of the study of parts; 'wholes' and 'whole_scores' are of the whole answers.
FILES = {
    "traces": "<results>/traces/{model}/{task}.arrow",
    "wholes": "<results>/traces/{model}/{parent}.arrow",
    "labels": "<results>/labels/{model}/{task}.parquet",
    "splits": "<results>/splits/{task}.parquet",
    "scores": "<results>/scores/{model}/{task}.parquet",
    "predictions": "<results>/predictions/{model}/{task}.parquet",
    "whole_scores": "<results>/scores/{model}/{parent}.parquet",
    "questions": QUESTIONS,
}


def results(run: Run) -> Iterator[Result | PlannedTable]:
    """The analyses, tables and figure of a run with parts of answers; none of another run."""
    if not run.missing_parts:
        return
    estimators = run.selection.of_parts
    bootstrap = {"bootstrap": run.bootstrap}
    yield Analysis(
        "localisation", _files("traces wholes labels splits questions"), bootstrap, pairs="parts"
    )
    yield Analysis(
        "part_scores",
        _files("labels questions scores predictions whole_scores"),
        {"scored": estimators.scored.ids, "learned": estimators.learned.ids} | bootstrap,
        pairs="parts",
    )
    missing = {"missing": run.missing_parts}
    yield PlannedTable("localisation", ["localisation"], studies=["parts"], more=missing)
    yield PlannedTable("part_scores", ["part_scores"], studies=["parts"], estimators=estimators)
    yield Figure(
        "wrong_parts",
        {"pointed": analysed("localisation")},
        {"models": run.model_labels, "tasks": run.task_labels},
    )


def _files(kinds: str) -> dict[str, PerPair]:
    return {kind: PerPair(FILES[kind], "parts") for kind in kinds.split()}
