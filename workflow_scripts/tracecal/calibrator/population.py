"""A calibrator's labelled answers as a population that simulations draw from."""

import numpy as np

from tracecal.calibration.populations import LabelledPopulation, normal_scores
from tracecal.calibrator.schema import CalibratedEstimator
from tracecal.errors import InputError


def labelled_population(estimator: CalibratedEstimator, where: str) -> LabelledPopulation:
    """The labelled answers of an estimator; raises `InputError` where its file lacks them."""
    held_out, control = estimator.held_out, estimator.risk_control
    if held_out is None or control is None:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities and folds, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    score = normal_scores(np.array(held_out.probability), np.array(held_out.fold))
    correct = np.array(held_out.correct, dtype=bool)
    return LabelledPopulation.from_labels(
        np.array(held_out.group), score, correct, control.largest_group
    )
