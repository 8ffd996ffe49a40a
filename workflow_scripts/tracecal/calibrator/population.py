"""A calibrator's labelled answers as a population that simulations draw from.

`forecast_labels(held_out, error_rate, confidence, of_parts)` is the number that `calibrate`,
`score`, `plan` and the report print.
"""

import numpy as np

from tracecal.calibration.forecast import (
    MIN_QUESTIONS,
    MOST,
    POWER,
    doubling_sizes,
    questions_needed,
    simulate_draws,
    summarise_draws,
)
from tracecal.calibration.guarantees.parts import PARTS_NEED
from tracecal.calibration.populations import LabelledPopulation, normal_scores
from tracecal.calibration.settings import SEED
from tracecal.calibrator.schema import (
    CalibratedEstimator,
    ErrorRateControl,
    ErrorRateThreshold,
    HeldOut,
)
from tracecal.errors import InputError, require_threads

DRAWS = 25  # of each number of labels, for each error rate that a calibrator does not guarantee


def labelled_population(estimator: CalibratedEstimator, where: str) -> LabelledPopulation:
    """Return an estimator's labelled answers; raises `InputError` if its file lacks them."""
    require_threads()
    held_out, control = estimator.held_out, estimator.risk_control
    if held_out is None or control is None:
        raise InputError(
            f"{where} does not hold its labelled answers' probabilities and folds, as those of "
            "'tracecal calibrate' do: calibrate with it, or give --accuracy and --auroc."
        )
    return population_of(held_out, control.most_parts is not None)


def population_of(held_out: HeldOut, of_parts: bool) -> LabelledPopulation:
    """Make the population of labelled answers, ranked within their folds: one of each question."""
    score = normal_scores(np.array(held_out.probability), np.array(held_out.fold))
    group, correct = np.array(held_out.group), np.array(held_out.correct, dtype=bool)
    if not of_parts:
        _, first = np.unique(group, return_index=True)  # answers stand in the order of their hashes
        group, score, correct = group[first], score[first], correct[first]
    return LabelledPopulation.from_labels(group, score, correct, of_parts)


def forecast_labels(
    held_out: HeldOut, error_rate: float, confidence: float, of_parts: bool = False
) -> int | None:
    """Forecast the number of labelled questions that guarantee an error rate with POWER.

    Simulates like `tracecal plan`, with fewer draws; None if MOST questions are not enough.
    """
    population = population_of(held_out, of_parts)
    sizes = doubling_sizes(MIN_QUESTIONS, MOST)
    simulated = simulate_draws(population, sizes, DRAWS, error_rate, confidence, SEED)
    needed = questions_needed(POWER, summarise_draws(simulated))
    return None if needed is None else int(float(f"{needed:.1e}"))


def with_forecasts(control: ErrorRateControl, held_out: HeldOut) -> ErrorRateControl:
    """Add to each error rate without a threshold how many labels would be enough.

    There is no forecast if unlabelled answers are too few, or no answer has a probability.
    """
    thresholds = [
        entry
        if entry.threshold is not None or not held_out.probability or _needs_answers(entry)
        else _with_forecast(entry, held_out, control)
        for entry in control.thresholds
    ]
    return control.model_copy(update={"thresholds": tuple(thresholds)})


def _needs_answers(entry: ErrorRateThreshold) -> bool:
    return entry.reason is not None and entry.reason.startswith(PARTS_NEED)


def _with_forecast(
    entry: ErrorRateThreshold, held_out: HeldOut, control: ErrorRateControl
) -> ErrorRateThreshold:
    terms = entry.error_rate, control.confidence, control.most_parts is not None
    enough = forecast_labels(held_out, *terms)
    what = (
        f"{MOST:,} labelled questions like these would not be enough"
        if enough is None
        else f"about {enough:,} labelled questions like these would be enough"
    )
    return entry.model_copy(update={"enough": enough, "reason": f"{entry.reason}; {what}"})
