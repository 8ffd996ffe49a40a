"""Notes that stand below most tables: how many answers there are, and how many are correct."""

from collections.abc import Mapping, Sequence

from trace_workflow.tables.sample_size import warn_of_few_answers
from trace_workflow.tables.study_results import StudyResults
from trace_workflow.tables.table import ABSENT
from trace_workflow.tables.wording import note
from tracecal.estimators.estimator import Entry

COUNTS_ELSEWHERE = "Answers, and how many are correct: see the main comparison."
BEAMS = "Beam scores read all beams of a search from the same prompt, K = {} beams"
# Flores et al. 2025: of two beams all three are functions of the difference of their scores.
ALIKE = ", of which Beam-Ratio, Beam-TailThinness and Beam Entropy order answers alike"


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


def refer_to_counts(
    study: StudyResults, shares: Sequence[float] = (), pooled: bool = False
) -> list[str]:
    """In place of `count_notes`: a reference to the main comparison's, and the same warning.

    A fit is for one task, or, if `pooled`, for all of them together.
    """
    total = {"task": None} | sum_counts(study.accuracies)
    fits = [total] if pooled else study.accuracies
    return [COUNTS_ELSEWHERE, *warn_of_few_answers(fits, study, shares)]


def sum_counts(accuracies: Sequence[Mapping]) -> dict[str, int]:
    """`n` and `correct`, summed over rows of the analysis `accuracy`."""
    return {name: sum(row[name] for row in accuracies) for name in ("n", "correct")}


def missing_answers(accuracies: Sequence[Mapping], study: StudyResults) -> list[str]:
    """Notes on questions without answers, answers without entropies, and parts that answers lack.

    The study's option `missing` has by task of parts what a missing part counts as.
    """
    missing = study.options.get("missing", {})
    questions = [row for row in accuracies if row["task"] not in missing]
    parts_left_out = [row for row in accuracies if missing.get(row["task"]) == "unanswered"]
    parts_wrong = [row for row in accuracies if missing.get(row["task"]) == "wrong"]
    without_entropy = f"{ABSENT} Without entropies, which TRACE needs, are answers"
    # The column of counts, its rows, whether `n` excludes what it counts, and the sentence.
    kinds = [
        ("unanswered", questions, True, "Answers' files leave out questions"),
        ("unanswered", parts_left_out, True, "Parts that answers lack are left out"),
        ("unanswered", parts_wrong, False, "Parts that answers lack count as wrong"),
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
    """How many beams the beam scores among `entries` read, by the study's option `beams`."""
    if not any(entry.family == "beam" for entry in entries):
        return []
    n_beams = study.options["beams"]
    return [f"{BEAMS.format(n_beams)}{ALIKE if n_beams == 2 else ''}."]
