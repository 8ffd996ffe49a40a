"""What tracecal keeps of the other answers when some of a set are labelled."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from benchmarks.real_sets import AnswerSet
from tracecal.calibration.fits import probabilities
from tracecal.calibration.settings import FitSettings
from tracecal.calibrator.guarantee import find_guarantees
from tracecal.calibrator.ranking import default_ranking
from tracecal.calibrator.trace_kinds import undecided
from tracecal.calibrator.training_set import describe_answers, make_training_set

LABELS, DRAWS = (50, 100, 300, 1000), 5
LEAST_NEW = 100  # answers that are left to measure on
TASK = "task"


def draws(answers: AnswerSet) -> Iterator[tuple[int, int, np.ndarray, np.random.Generator]]:
    """Number of labels, draw, mask [n] of the labelled answers, and what further draws take."""
    for n in LABELS:
        for draw in range(DRAWS) if n + LEAST_NEW <= len(answers.correct) else ():
            rng = np.random.default_rng([n, draw])
            yield n, draw, answers.draw_labelled(rng, n), rng


def keep(labelled: pl.DataFrame, new: pl.DataFrame, rates: Sequence[float]) -> list[np.ndarray]:
    """Masks [n] of the `new` answers that tracecal keeps when asked for each of the error rates.

    As `calibrate` and `score` do, without the fits that thresholds do not use. `new` is of
    `AnswerSet.with_inputs`.
    """
    training = make_training_set(labelled, TASK, FitSettings())
    data, masks = describe_answers(training, TASK), []
    ranking = default_ranking(training)
    fits = training.select(ranking).fit_estimators().estimators if ranking else {}
    for rate in rates:
        control, _ = find_guarantees(training, fits, data, FitSettings().with_targets([rate]))
        columns = [f"features.{name}" for name in control.features]
        columns = training.estimators.get(control.ranked_by, columns)
        score = probabilities(new.select(columns), [control.fit])[0]
        decided = np.array([reason is None for reason in undecided(new, columns, data)])
        (entry,) = control.thresholds
        least = math.inf if entry.threshold is None else entry.threshold
        masks.append(decided & (score >= least))
    return masks


def is_broken(wrong: np.ndarray, rate: float) -> bool:
    """Whether more than the error rate of the kept answers is wrong, [kept]."""
    return bool(len(wrong) and wrong.mean() > rate)
