"""A table that compares estimators, fits or answers."""

from collections.abc import Sequence
from typing import Any

from trace_workflow.config.run import Run
from trace_workflow.plan.entries import Table
from tracecal.estimators.estimator import Estimator


def comparison_table(
    run: Run,
    name: str,
    *analyses: str,
    estimators: Sequence[Estimator] | None = None,
    studies: Sequence[str] = ("main",),
    short_models: bool = False,
    made_by: str = "",
    of_subset: bool = False,
    **more: Any,
) -> Table:
    """The table `name` of `estimators`, by default of the main study's baselines and TRACE.

    Its notes also say how many answers are correct, which estimators do not score all of them, and
    whether a calibration part is large enough for the weights of a fit.
    """
    estimators = run.selection.main_compared if estimators is None else estimators
    settings = {
        "weights": max([len(e.inputs) for e in estimators], default=0),
        "calibration_share": run.config.splits.calibration_share,
    }
    if any("beams" in estimator.needs for estimator in estimators):
        settings["beams"] = run.config.beams.width
    if of_subset:
        settings["subset"] = run.config.study.broader.answers
    return Table(
        name,
        analyses=tuple(dict.fromkeys([*analyses, "averages", "accuracy"])),
        studies=studies,
        estimators=estimators,
        more=settings | more,
        made_by=made_by,
        short_models=short_models,
        of_subset=of_subset,
    )
