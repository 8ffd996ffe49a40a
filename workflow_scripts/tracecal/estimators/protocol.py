"""The protocol comparison: a row per method, with what it assumes."""

from collections.abc import Iterable

from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import IDS

# Rows that methods with the same needs share.
SHARED_ROWS = {
    ("traces",): ("likelihood_entropy", "Likelihood / entropy"),
    ("beams",): ("beam", "Beam-based scores"),
}


def protocol_rows(estimators: Iterable[Estimator]) -> list[dict[str, str]]:
    """The rows of the protocol comparison, in the order of the registry."""
    rows: dict[str, dict[str, str]] = {}
    for estimator in estimators:
        if estimator.role == "variant":
            continue
        method, label = estimator.id, estimator.label
        if estimator.role != "trace" and estimator.id in IDS:
            method, label = SHARED_ROWS.get(estimator.needs, (method, label))
        row = {"method": method, "label": label, "role": estimator.role}
        rows.setdefault(method, row | estimator.protocol)
    return list(rows.values())
