"""How many answers a fit needs (Riley et al. 2020, BMJ 368:m441), and a warning below that.

A penalty asks for no fewer answers: with few of them its own size is a matter of chance (Riley et
al. 2021).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.wording import count

# The paper's defaults: the least factor by which overfitting may shrink the weights, and the share
# of the explainable variation that a fit is expected to explain.
SHRINKAGE, EXPLAINED = 0.9, 0.15


def needed_answers(n_weights: int, share: float) -> float:
    """How many answers a fit of `n_weights` needs: criterion 1 of Riley et al. 2020.

    `share` is that of one class; without answers of one class no number suffices.

    >>> round(needed_answers(8, 0.5)), needed_answers(0, 0.5), needed_answers(8, 0.0)
    (599, 0, inf)
    """
    if not n_weights:
        return 0
    if not share:
        return math.inf
    likelihood = share * math.log(share) + (1 - share) * math.log(1 - share)
    explained = EXPLAINED * (1 - math.exp(2 * likelihood))  # Cox and Snell's R²
    return n_weights / ((SHRINKAGE - 1) * math.log(1 - explained / SHRINKAGE))


def warn_of_few_answers(
    accuracies: Iterable[Mapping], study: StudyResults, shares: Sequence[float] = ()
) -> list[str]:
    """A warning on the calibration parts that have fewer answers than their fit needs.

    `accuracies` have `model`, `task` (None: all tasks together), `n` and `correct`. The study's
    options have the number of `weights` of the largest fit (0: none is fitted) and the
    `calibration_share`, in whose place `shares` may stand.
    """
    n_weights = study.options["weights"]
    shares = shares or [study.options["calibration_share"]]
    warnings = []
    for row in accuracies:
        rarer = min(row["correct"], row["n"] - row["correct"])
        needed = needed_answers(n_weights, rarer / row["n"])
        if needed <= round(min(shares) * row["n"]):
            continue
        name = study.pair_label(row["model"], row["task"]) if row["task"] else "all tasks together"
        if math.isfinite(needed):
            sizes = [_part_sizes(shares, number) for number in (row["n"], rarer)]
            warnings.append(
                f"{name} has {sizes[0]} ({sizes[1]} of the rarer class) and needs about "
                f"{needed:.0f}"
            )
        else:
            warnings.append(f"{name} has answers of one class only")
    if not warnings:
        return []
    return [
        f"Too few calibration answers for {count(n_weights, 'weight')} (Riley et al. 2020, "
        f"overfitting of at most {1 - SHRINKAGE:.0%}): {'; '.join(warnings)}."
    ]


def _part_sizes(shares: Sequence[float], number: int) -> str:
    """The sizes of a calibration part, from the first share's to the last's."""
    ends = dict.fromkeys(f"{share * number:.0f}" for share in (shares[0], shares[-1]))
    return " to ".join(ends)
