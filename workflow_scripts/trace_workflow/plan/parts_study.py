"""The analyses of parts of answers, with their tables."""

from collections.abc import Iterator

from trace_workflow.config.run import Run
from trace_workflow.plan.entries import Analysis, PlannedTable, Result, pair_files


def results(run: Run) -> Iterator[Result | PlannedTable]:
    """The analyses and tables of a run with parts of answers; none of another run."""
    if not run.missing_parts:
        return
    estimators = run.selection.of_parts
    bootstrap = {"bootstrap": run.bootstrap}
    yield Analysis(
        "localisation",
        pair_files("traces wholes labels splits questions", "parts"),
        bootstrap,
        pairs="parts",
    )
    yield Analysis(
        "part_scores",
        pair_files("labels questions scores predictions whole_scores", "parts"),
        {"scored": estimators.scored.ids, "learned": estimators.learned.ids} | bootstrap,
        pairs="parts",
    )
    for name, more in {
        "localisation": {"more": {"missing": run.missing_parts}},
        "part_scores": {"estimators": estimators},
    }.items():
        yield PlannedTable(name, [name], studies=["parts"], made_by="parts", function=name, **more)
