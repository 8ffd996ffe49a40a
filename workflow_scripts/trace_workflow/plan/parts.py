"""Analyses of parts of answers, with their tables and figures."""

from collections.abc import Iterator

from trace_workflow.config.selection import Run, beyond_traces
from trace_workflow.plan.entries import (
    QUESTIONS,
    Analysis,
    Figure,
    PerPair,
    Result,
    Table,
    analysed,
)
from tracecal.estimators.registry import entries

# Files of each pair of the study of parts; those of 'whole_scores' and 'wholes' are of the answers.
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


def results(run: Run) -> Iterator[Result | Table]:
    """The analyses, tables and figures of the study of parts, where a run has one."""
    if not run.missing_parts:
        return
    shown = [
        e
        for e in run.chosen
        if (e.role in ("baseline", "trace") or e in run.custom or e in run.beyond_paper)
        and not beyond_traces(e)
    ]
    yield Analysis(
        "localisation",
        _files("traces wholes labels splits questions"),
        {"bootstrap": run.bootstrap},
        pairs="parts",
    )
    scored = {
        "scored": [e.id for e in shown if not e.features],
        "learned": [e.id for e in shown if e.features],
    }
    yield Analysis(
        "part_scores",
        _files("labels questions scores predictions whole_scores"),
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


def _files(kinds: str) -> dict[str, PerPair]:
    return {kind: PerPair(FILES[kind], "parts") for kind in kinds.split()}
