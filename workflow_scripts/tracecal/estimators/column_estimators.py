"""The estimators of a user's own columns."""

from collections.abc import Sequence
from dataclasses import replace

from tracecal.errors import InputError
from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES

# Own columns of a run, each a baseline, and the fit that takes them beside the trace. Answers
# from files alone may have them: what needs them says so.
COLUMNS = "columns"


def of_columns(names: Sequence[str]) -> list[Estimator]:
    """Registry entries for the columns `names` of answers from files, the fit last; none without.

    Raises `InputError` where a name is an estimator's or a feature's.
    """
    if not names:
        return []
    from tracecal.features.features import FEATURES  # slow to load, and seldom needed

    known = {*FEATURES, *(one.id for one in OF_FILES)}
    if taken := [name for name in names if name in known]:
        raise InputError(
            f"study.columns: {taken[0]!r} is the name of a built-in estimator or feature; choose "
            "another."
        )
    columns = [Estimator(name, name, COLUMNS, "baseline", "", (COLUMNS,)) for name in names]
    ridge = next(one for one in ESTIMATORS if one.id == "log_ridge")
    inputs = (*ridge.features, *(f"scores.{name}" for name in names))
    needs = (*LOG_RIDGE_ALSO.needs, COLUMNS)
    fit = replace(LOG_RIDGE_ALSO, needs=needs, features=inputs)
    return [*columns, fit]
