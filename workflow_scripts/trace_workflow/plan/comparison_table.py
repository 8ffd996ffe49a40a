"""A table that compares estimators, fits or answers."""

from collections.abc import Sequence
from typing import Any

from trace_workflow.config.selection import Run
from trace_workflow.plan.entries import Table
from tracecal.estimators.estimator import Estimator


def compares(
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
    """A table of the main study's baselines and TRACE, or of `estimators`.

    Its notes also say how many answers are correct, which estimators do not score all of them, and
    whether a calibration part is large enough for the weights of a fit.
    """
    estimators = run.selection.main_compared if estimators is None else estimators
    fitted = {
        "weights": max([len(e.inputs) for e in estimators], default=0),
        "calibration_share": run.config.splits.calibration_share,
    }
    if any("beams" in estimator.needs for estimator in estimators):
        more["beams"] = run.config.beams.width
    if of_subset:
        more["subset"] = run.config.study.broader.answers
    every = tuple(dict.fromkeys([*analyses, "averages", "accuracy"]))
    more = fitted | more
    return Table(name, every, studies, estimators, more, made_by, short_models, of_subset)
