"""Notes that stand below most tables: how many answers there are, are correct, and are needed.

A fit needs as many answers as Riley et al. 2020 (BMJ 368:m441) say. A penalty asks for no fewer:
with few of them its own size is a matter of chance (Riley et al. 2021).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import ABSENT
from trace_workflow.tables.wording import count, note
from tracecal.estimators.estimator import Entry

# The paper's defaults: the least factor by which overfitting may shrink the weights, and the share
# of the explainable variation that a fit is expected to explain.
SHRINKAGE, EXPLAINED = 0.9, 0.15


def needed_answers(n_weights: int, share: float) -> float:
    """How many answers a fit of `n_weights` needs: criterion 1 of Riley et al. 2020.

    `share` is the share of one class; no number suffices where a class has no answers.

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


def warn_of_few_answers(accuracies: Iterable[Mapping], study: StudyResults) -> list[str]:
    """A warning on the calibration parts that have fewer answers than their fit needs.

    `accuracies` have `model`, `task` (None: all tasks together), `n` and `correct`. The study's
    options have the number of `weights` of the largest fit (0: none is fitted) and the
    `calibration_share`.
    """
    n_weights, share = study.options["weights"], study.options["calibration_share"]
    warnings = []
    for row in accuracies:
        rarer = min(row["correct"], row["n"] - row["correct"])
        needed = needed_answers(n_weights, rarer / row["n"])
        if needed <= round(share * row["n"]):
            continue
        name = study.pair_label(row["model"], row["task"]) if row["task"] else "all tasks together"
        if math.isfinite(needed):
            warnings.append(
                f"of {name}'s {row['n']}, {share * row['n']:.0f} calibrate ({share * rarer:.0f} of "
                f"the rarer class), where about {needed:.0f} are needed"
            )
        else:
            warnings.append(f"{name} has answers of one class only")
    if not warnings:
        return []
    return [
        f"Too few calibration answers for {count(n_weights, 'weight')} (Riley et al. 2020, "
        f"overfitting of at most {100 * (1 - SHRINKAGE):.0f} %): {'; '.join(warnings)}. Label more "
        "answers, or compare scores that fit one weight."
    ]


COUNTS_ELSEWHERE = "The main comparison has the numbers of answers and of correct ones."
BEAMS = "Beam scores read all beams of a search from the same prompt, K = {} beams."


def count_notes(study: StudyResults) -> list[str]:
    """How many answers are correct or missing, and a warning where a task's fit has too few."""
    correct = [
        f"{study.pair_label(row['model'], row['task'])} {row['correct']} of {row['n']} "
        f"({row['accuracy']:.3f})"
        for row in study.accuracies
    ]
    return [
        f"Correct answers (accuracy): {'; '.join(correct)}.",
        *missing_answers(study.accuracies, study),
        *warn_of_few_answers(study.accuracies, study),
    ]


def refer_to_counts(study: StudyResults, pooled: bool = False) -> list[str]:
    """A reference to the counts of the main comparison, and the warning of `count_notes`.

    A fit is for one task or, if `pooled`, for all tasks together.
    """
    total = {"task": None} | sum_counts(study.accuracies)
    fits = [total] if pooled else study.accuracies
    return [COUNTS_ELSEWHERE, *warn_of_few_answers(fits, study)]


def sum_counts(accuracies: Sequence[Mapping]) -> dict[str, int]:
    """`n` and `correct`, summed over rows of the analysis `accuracy`."""
    return {name: sum(row[name] for row in accuracies) for name in ("n", "correct")}


def missing_answers(accuracies: Sequence[Mapping], study: StudyResults) -> list[str]:
    """Notes on questions without answers, answers without entropies, and parts that answers lack.

    The study's option `missing` says by task what a missing part counts as.
    """
    missing = study.options.get("missing", {})
    questions = [row for row in accuracies if row["task"] not in missing]
    parts_left_out = [row for row in accuracies if missing.get(row["task"]) == "unanswered"]
    parts_wrong = [row for row in accuracies if missing.get(row["task"]) == "wrong"]
    without_entropy = f"{ABSENT} Answers without the entropies that TRACE needs"
    # The column of counts, its rows, whether `n` excludes what it counts, and the sentence.
    kinds = [
        ("unanswered", questions, True, "Questions without an answer in the files"),
        ("unanswered", parts_left_out, True, "Missing parts, left out"),
        ("unanswered", parts_wrong, False, "Missing parts, counted as wrong"),
        ("without_entropy", accuracies, False, without_entropy),
    ]
    notes = []
    for column, rows, excluded, sentence in kinds:
        counts = [
            f"{study.pair_label(row['model'], row['task'])} ({row[column]} of "
            f"{row['n'] + (row[column] if excluded else 0)})"
            for row in rows
            if row[column]
        ]
        notes += note(sentence, counts)
    return notes


def beam_notes(entries: Sequence[Entry], study: StudyResults) -> list[str]:
    """A note on the number of beams, the option `beams`, if `entries` have beam scores."""
    if not any(entry.family == "beam" for entry in entries):
        return []
    return [BEAMS.format(study.options["beams"])]
