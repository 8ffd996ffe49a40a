"""What tracecal keeps of the other answers when some of a set are labelled."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from benchmarks.real_sets import AnswerSet
from tracecal.calibrator.answer_ranking import choose_ranking, default_ranking, rank_answers
from tracecal.calibrator.guarantee import find_guarantees
from tracecal.calibrator.schema import ErrorRateControl
from tracecal.calibrator.trace_kinds import has_usual_entropies, usual_entropies
from tracecal.calibrator.training_set import make_training_set
from tracecal.fits.fit_settings import FitSettings

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
    settings = [FitSettings().with_targets([rate]) for rate in rates]
    controls, score = guarantee(labelled, new, settings)
    thresholds = [control.thresholds[0].threshold for control in controls]
    return [score >= (math.inf if at is None else at) for at in thresholds]


def guarantee(
    labelled: pl.DataFrame, new: pl.DataFrame, settings: Sequence[FitSettings]
) -> tuple[list[ErrorRateControl], np.ndarray]:
    """What `calibrate` guarantees by each of the settings, and the scores [n] of `new` answers.

    A score is NaN without a decision.
    """
    training = make_training_set(labelled, TASK, FitSettings())
    name = default_ranking(training)
    fits = training.select(name).fit_estimators().estimators if name else {}
    ranking = choose_ranking(training, fits)
    answers = rank_answers(training, ranking)
    controls = [find_guarantees(ranking, answers, each.risk_control) for each in settings]
    is_usual = has_usual_entropies(new, *usual_entropies(training.records))
    return controls, ranking.decided_score(new.with_columns(has_usual_entropies=is_usual))


def is_broken(wrong: np.ndarray, rate: float) -> bool:
    """Whether more than the error rate of the kept answers is wrong, [kept]."""
    return bool(len(wrong) and wrong.mean() > rate)
