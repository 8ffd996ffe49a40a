"""Estimators of the user's own columns: a baseline per column, and a fit beside the trace.

Only answers from files may have such columns.
"""

from collections.abc import Sequence
from dataclasses import replace

from tracecal.errors import InputError
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES

COLUMNS = "columns"  # the family, and the need that names them


def column_estimators(names: Sequence[str]) -> list[Estimator]:
    """The estimators of the own columns `names`, the fit last; empty without names.

    Raises `InputError` where a name is an estimator's or a feature's.
    """
    if not names:
        return []
    from tracecal.features.features import FEATURES  # slow to load, and seldom needed

    built_in = {*FEATURES, *(estimator.id for estimator in OF_FILES)}
    if clashes := [name for name in names if name in built_in]:
        raise InputError(
            f"study.columns: {clashes[0]!r} is the name of a built-in estimator or feature; choose "
            "another."
        )
    columns = [Estimator(name, name, COLUMNS, "baseline", "", (COLUMNS,)) for name in names]
    ridge = next(estimator for estimator in ESTIMATORS if estimator.id == "log_ridge")
    inputs = (*ridge.features, *(f"scores.{name}" for name in names))
    needs = (*LOG_RIDGE_ALSO.needs, COLUMNS)
    fit = replace(LOG_RIDGE_ALSO, needs=needs, features=inputs)
    return [*columns, fit]
