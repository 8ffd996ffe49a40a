"""Errors matched with correct answers of the same task and similar length (paper, appendix E.3).

Each error gets one correct answer, and no answer is used twice. The paper leaves the rule open, but
its true-positive rates are multiples of 1/595 and 1/97, so each error counts once; and its 65
claims of TruthfulQA, where it has 731 errors and 86 correct answers, indicate pairs without
replacement. Each member of the smaller side takes the answer of the other side that is nearest in
length: choosing from the larger side gives the better matches. The order of choices, and the choice
among equally near answers, is random.
"""

import numpy as np


def match(
    errors: np.ndarray, correct: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as indices into `errors` [e] and `correct` [c], the lengths of one task's answers.

    Both results are [min(e, c)] and hold no index twice. In random order, each member of the
    smaller side takes the member nearest in length that is left on the other side.
    """
    if len(errors) > len(correct):
        second, first = match(correct, errors, rng)
        return first, second
    order, pool = rng.permutation(len(errors)), rng.permutation(len(correct))
    unmatched = correct[pool].astype(float)
    partners = np.empty(len(errors), dtype=int)
    for chooser in order:
        nearest = np.argmin(np.abs(unmatched - errors[chooser]))
        partners[chooser] = pool[nearest]
        unmatched[nearest] = np.inf
    return np.arange(len(errors)), partners


def match_within(
    task: np.ndarray,
    length: np.ndarray,
    is_error: np.ndarray,
    is_correct: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """`match` task by task; the results are rows of the arguments, all [n]."""
    none = np.array([], dtype=int)
    pairs = [(none, none)]  # a resample may be empty
    for name in np.unique(task):
        errors = np.flatnonzero((task == name) & is_error)
        correct = np.flatnonzero((task == name) & is_correct)
        first, second = match(length[errors], length[correct], rng)
        pairs.append((errors[first], correct[second]))
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)
