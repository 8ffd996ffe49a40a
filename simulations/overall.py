"""Does an overall error rate hold, and do looks at growing labels, through the product?

`claims` draws single answers of fourteen populations, most of which just miss the rate; `group_claims`
questions with several answers, one of which counts; `look_claims` calibrates again and again on growing
labels that tell nothing, where every guarantee is false.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

from simulations.claims import Claim
from simulations.guarantees import MISS, REFERENCE, REPEATS, one_of_each, weights
from support.labelled_answers import answers
from tracecal.calibrator.answer_ranking import choose_ranking, default_ranking, rank_answers
from tracecal.calibrator.fitting import describe_answers, with_look
from tracecal.calibrator.guarantee import find_guarantees
from tracecal.calibrator.schema import CalibrationData, ErrorRateControl
from tracecal.calibrator.training_set import make_training_set
from tracecal.fits.fit_settings import FitSettings
from tracecal.guarantees.error_rate import allowed_errors, overall_threshold

LEVEL = 0.1
RATES, LABELS, QUESTIONS = (0.02, 0.05, 0.1, 0.2), (20, 40, 60, 100, 400), (40, 100, 300)
PLACES = (np.arange(50_000) + 0.5) / 50_000  # that stand for the truth
# Looks: labels of each, the error rate of all answers, and the target that they miss.
LOOKS, RISK, TARGET = (60, 130, 300), 0.202, 0.2


@dataclass(frozen=True)
class RankedPopulation:
    """Answers at random places from 0 to 1, with their risks and scores there.

    Attributes
    ----------
    risk : callable
        The probability of being wrong at places [n].
    score : callable
        The scores there.
    scored : float
        The share of answers that have a score.
    """

    risk: Callable[[np.ndarray], np.ndarray]
    score: Callable[[np.ndarray], np.ndarray] = lambda place: place
    scored: float = 1.0

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores of answers, NaN without one, and whether each is wrong."""
        place = rng.random(n)
        score = np.where(rng.random(n) < self.scored, self.score(place), np.nan)
        return score, rng.random(n) < self.risk(place)

    def overall_error(self, threshold: float) -> float:
        """The share of all answers that reach the threshold and are wrong."""
        return self.scored * float((self.risk(PLACES) * (self.score(PLACES) >= threshold)).mean())


def populations(rate: float) -> dict[str, RankedPopulation]:
    """Fourteen populations, most of which just miss the rate somewhere."""

    def constant(risk: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda place: np.full(len(place), risk)

    missed = rate * MISS
    return {
        "a little above throughout": RankedPopulation(constant(rate + 0.002)),
        "a twentieth above throughout": RankedPopulation(constant(rate / 0.95)),
        "wrong only at the bottom": RankedPopulation(lambda u: (u < 1.05 * rate).astype(float)),
        "wrong way round": RankedPopulation(lambda u: np.minimum(1, 2 * MISS * rate * u)),
        "a strong score": RankedPopulation(lambda u: expit(4 - 12 * u)),
        "70 % tied at the top": RankedPopulation(constant(missed), lambda u: np.minimum(u, 0.3)),
        "a tie that just misses": RankedPopulation(
            lambda u: np.where(u > 0.5, min(1, 2 * missed), 0.5),
            lambda u: np.minimum(u, 0.5),
        ),
        "ten atoms": RankedPopulation(lambda u: 1 - u, lambda u: np.floor(10 * u) / 10),
        "one value": RankedPopulation(constant(missed), lambda u: np.full(len(u), 0.5)),
        "all wrong": RankedPopulation(constant(1.0)),
        "a spike on top": RankedPopulation(lambda u: np.where(u > 1 - missed, 1.0, 0.02)),
        "waves": RankedPopulation(lambda u: np.clip(missed * (1 + np.sin(25 * u)), 0, 1)),
        "a fifth without a score": RankedPopulation(constant(missed / 0.8), scored=0.8),
        "unsure ones count as wrong": RankedPopulation(
            lambda u: np.clip(missed / 2 + missed * (u > 0.5), 0, 1)
        ),
    }


def count_broken(population: RankedPopulation, rate: float, n: int, runs: int, seed: int) -> int:
    """Count the draws of `n` labels whose threshold lets more wrong answers leave."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(runs):
        threshold = overall_threshold(*population.draw(rng, n), rate, LEVEL)
        broken += threshold is not None and population.overall_error(threshold) > rate
    return broken


def claims(runs: int) -> Iterator[Claim]:
    """Each population, rate and number of labels with which a guarantee is possible."""
    cells = [
        (name, rate, n)
        for rate in RATES
        for name in populations(rate)
        for n in LABELS
        if allowed_errors(n, rate, LEVEL) >= 0
    ]
    for seed, (name, rate, n) in enumerate(cells):
        broken = count_broken(populations(rate)[name], rate, n, runs, seed)
        yield Claim(f"of all ≤ {rate:g}, {n} labels: {name}", runs, broken, LEVEL, len(cells))


def group_claims(runs: int) -> Iterator[Claim]:
    """Questions with several answers: each question once, at the rate that all just miss."""
    cells = [(name, n) for name in REPEATS for n in QUESTIONS]
    for seed, (name, n) in enumerate(cells):
        population, rng = REPEATS[name], np.random.default_rng(seed)
        log = population.draw(rng, REFERENCE)
        risk = log.risk * weights(log, "questions") / REFERENCE
        score, rate, broken = ndtr(log.score), float(risk.sum()) / MISS, 0
        for _ in range(runs):
            drawn = one_of_each(population.draw(rng, n), rng)
            threshold = overall_threshold(ndtr(drawn.score), drawn.wrong, rate, LEVEL)
            broken += threshold is not None and risk[score >= threshold].sum() > rate
        claim = f"of all, just missed, {n} questions: {name}"
        yield Claim(claim, runs, broken, LEVEL, len(cells))


def calibrate_again(
    frame: pl.DataFrame, looks: int | None, earlier: CalibrationData | None
) -> tuple[ErrorRateControl, CalibrationData]:
    """What `calibrate` guarantees on the labels of a look, and its description."""
    settings = FitSettings().with_targets([TARGET], [TARGET])
    training = make_training_set(frame, "t", settings)
    data = describe_answers(training, "t")
    data, level = with_look(data, training.records, 1 - LEVEL, looks, earlier)
    settings = settings.with_confidence(1 - level)
    name = default_ranking(training) if len(frame) >= 100 else None
    fits = training.select(name).fit_estimators().estimators if name else {}
    ranking = choose_ranking(training, fits)
    answers = rank_answers(training, ranking)
    return find_guarantees(ranking, answers, settings.risk_control), data


def look_repeatedly(looks: int | None, run: int) -> tuple[bool, bool]:
    """Whether any look gives a false error rate of the kept, and a false overall error rate.

    No score tells, so that each threshold for the kept is false; one for all is where it lets
    nearly all answers leave.
    """
    rng = np.random.default_rng([run, looks or 0])
    frame = answers(LOOKS[-1], seed=run).with_columns(
        correct=pl.Series(rng.random(LOOKS[-1]) >= RISK)
    )
    earlier, ever = None, np.zeros(2, dtype=bool)
    for n in LOOKS:
        control, earlier = calibrate_again(frame.head(n), looks, earlier)
        (kept,), (overall,) = control.thresholds, control.overall
        ever |= [kept.threshold is not None, overall.coverage * RISK > TARGET]
    return bool(ever[0]), bool(ever[1])


def look_claims(runs: int) -> Iterator[Claim]:
    """Three looks that are planned, and three that are not: each costs as much as the first."""
    tries = max(5, runs // 13)
    for looks, allowed in ((len(LOOKS), LEVEL), (None, len(LOOKS) * LEVEL)):
        broken = np.sum([look_repeatedly(looks, run) for run in range(tries)], axis=0)
        plan = f"{len(LOOKS)} looks, {'planned' if looks else 'not planned'}"
        for what, count in zip(("of the kept", "of all"), broken.tolist(), strict=True):
            yield Claim(f"no rate {what} of {plan} is false", tries, count, allowed)
