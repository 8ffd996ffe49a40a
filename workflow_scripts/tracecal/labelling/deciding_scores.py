"""The scores that decide which answers to keep."""

from collections.abc import Mapping
from typing import Any

from tracecal.errors import InputError

# The first of these that the answers have decides, where no estimator is named or recommended.
PREFERRED = ("trace_plus", "trace", "len_norm_logp")


def deciding_scores(
    data: Mapping[str, Any], estimator: str | None, recommended: str | None = None
) -> tuple[str, list[float | None]]:
    """The estimator that decides, and its probability of each answer, or score without one.

    `data` are those of `PageAnswers.page_data`, `recommended` is the calibrator's own estimator.
    Raises `InputError` where the answers lack it.
    """
    columns = data["answers"]
    preferred = (recommended, *PREFERRED) if recommended else PREFERRED
    for name in [estimator] if estimator else preferred:
        for kind in ("probability", "score"):
            values = columns[kind].get(name, [])
            if any(value is not None for value in values):
                return name, values
    available = ", ".join(columns["score"]) or "none"
    raise InputError(
        f"the answers have no score of {estimator or ' or '.join(PREFERRED)}; there is "
        f"{available}: choose one with --estimator, or give answers with log-probabilities."
    )
