"""An estimator as tables and figures get it."""

from collections.abc import Iterable
from typing import NamedTuple

from tracecal.estimators.estimator import Estimator

TRACE_PLUS = "trace_plus"


class Entry(NamedTuple):
    """An estimator as the rules pass it to a table or figure."""

    id: str
    label: str
    family: str
    role: str
    citation: str


PICKED = "picked_baseline"


def entries(estimators: Iterable[Estimator]) -> list[dict[str, str]]:
    """Estimators as tables and figures are given them."""
    return [
        {"id": e.id, "label": e.label, "family": e.group, "role": e.role, "citation": e.citation}
        for e in estimators
    ]
