"""Entries: estimators as the rules pass them to tables and figures."""

from collections.abc import Iterable
from typing import NamedTuple

from tracecal.estimators.estimator import Estimator

TRACE_PLUS = "trace_plus"
PICKED = "picked_baseline"  # the id of the baseline selected in each split, beside the estimators'


class Entry(NamedTuple):
    """An estimator as tables and figures need it."""

    id: str
    label: str
    family: str
    role: str
    citation: str


def entries(estimators: Iterable[Estimator]) -> list[dict[str, str]]:
    """The entries of `estimators`, as parameters of a rule."""
    return [
        {"id": e.id, "label": e.label, "family": e.group, "role": e.role, "citation": e.citation}
        for e in estimators
    ]
