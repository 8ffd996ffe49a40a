"""The rows of the protocol comparison."""

from collections.abc import Iterable

from tracecal.estimators.estimator import Estimator
from tracecal.estimators.registry import IDS

# The row of the protocol comparison that methods with the same needs share.
SHARED_ROWS = {
    ("traces",): ("likelihood_entropy", "Likelihood / entropy"),
    ("beams",): ("beam", "Beam-based scores"),
}


def protocol_rows(chosen: Iterable[Estimator]) -> list[dict[str, str]]:
    """The methods of the protocol comparison in the registry's order; some share a row."""
    rows: dict[str, dict[str, str]] = {}
    for estimator in chosen:
        if estimator.role == "variant":
            continue
        method, label = estimator.id, estimator.label
        if estimator.role != "trace" and estimator.id in IDS:
            method, label = SHARED_ROWS.get(estimator.needs, (method, label))
        row = {"method": method, "label": label, "role": estimator.role}
        rows.setdefault(method, row | estimator.protocol)
    return list(rows.values())
