"""Errors and correct answers of the same task, paired by their lengths."""

import numpy as np


def match_lengths(
    errors: np.ndarray, correct: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as indices into `errors` [e] and `correct` [c], the lengths of one task's answers.

    Both results are [min(e, c)] and hold no index twice. In random order, each member of the
    smaller side takes the unmatched member of the other side that is nearest in length.

    >>> match_lengths(np.array([5]), np.array([2, 6]), np.random.default_rng(0))
    (array([0]), array([1]))
    """
    if len(errors) > len(correct):
        second, first = match_lengths(correct, errors, rng)
        return first, second
    order, pool = rng.permutation(len(errors)), rng.permutation(len(correct))
    unmatched = correct[pool].astype(float)
    partners = np.empty(len(errors), dtype=int)
    for chooser in order:
        nearest = np.argmin(np.abs(unmatched - errors[chooser]))
        partners[chooser] = pool[nearest]
        unmatched[nearest] = np.inf
    return np.arange(len(errors)), partners


def match_by_task(
    tasks: np.ndarray,
    lengths: np.ndarray,
    is_error: np.ndarray,
    is_correct: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """`match_lengths` task by task; the results are indices into the arguments, all [n]."""
    empty = np.array([], dtype=int)
    pairs = [(empty, empty)]  # a resample may be empty
    for task in np.unique(tasks):
        errors = np.flatnonzero((tasks == task) & is_error)
        correct = np.flatnonzero((tasks == task) & is_correct)
        first, second = match_lengths(lengths[errors], lengths[correct], rng)
        pairs.append((errors[first], correct[second]))
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)
