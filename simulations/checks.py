"""Does `tracecal check` call a true guarantee contradicted, or a false one fitting, too often?

Answers are wrong exactly as often as guaranteed, the worst case of a true guarantee, or exactly as
often as the rate to rule out. Questions may have several answers, and those with many are wrong more
often; one answer of each counts. Answers that are compared with the calibration's are drawn like these.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from simulations.claims import Claim
from simulations.guarantees import GroupPopulation, one_of_each
from tracecal.calibrator.schema import Reference
from tracecal.monitoring.batch import Batch
from tracecal.monitoring.check import find_unlike
from tracecal.statistics.rate_test import KeptAnswers

LEVEL = 0.05  # of the check; labels and alarms share it
RATES = {0.05: 0.075, 0.2: 0.3, 0.5: 0.75}  # guaranteed and ruled out
NUMBERS = (10, 60, 300)  # questions
SIZES = (1, 2, 5)
RISKS = np.array([0.6, 1.0, 1.4])  # by size, in units of the rate: 1 on average over questions
REFERENCES = (30, 300)  # answers of the calibration


def draw_kept(rng: np.random.Generator, n: int, error_rate: float, repeats: bool) -> KeptAnswers:
    """Labelled kept answers, one of each of about four fifths of `n` questions."""
    sizes, risks = (SIZES, RISKS) if repeats else ((1,), np.ones(1))
    risk_of = dict(zip(sizes, risks, strict=True))
    population = GroupPopulation(
        n,
        sizes,
        lambda _, size: np.minimum(error_rate * np.vectorize(risk_of.get)(size), 1),
        error_rate,
        correlation=0.5,
    )
    answers = one_of_each(population.draw(rng, n), rng)
    is_labelled = rng.random(n) < 0.8
    return KeptAnswers(int(is_labelled.sum()), int(answers.wrong[is_labelled].sum()))


def label_claims(runs: int) -> Iterator[Claim]:
    """Labels alone."""
    cells = [
        (rate, excluded, n, repeats)
        for rate, excluded in RATES.items()
        for n in NUMBERS
        for repeats in (False, True)
        if not repeats or excluded * RISKS.max() < 1
    ]
    for seed, (rate, excluded, n, repeats) in enumerate(cells):
        rng = np.random.default_rng(seed)
        which = "questions that repeat" if repeats else "questions"
        true = [draw_kept(rng, n, rate, repeats) for _ in range(runs)]
        broken = sum(kept.contradicts(rate, LEVEL / 2) for kept in true)
        claim = f"check: {n} {which}: a true guarantee of {rate:g} is not contradicted"
        yield Claim(claim, runs, broken, LEVEL / 2, cells=2 * len(cells))
        false = [draw_kept(rng, n, excluded, repeats) for _ in range(runs)]
        broken = sum(kept.rules_out(excluded, LEVEL) for kept in false)
        claim = f"check: {n} {which}: an error rate of {excluded:g} is not ruled out"
        yield Claim(claim, runs, broken, LEVEL, cells=2 * len(cells))


def draw_batch(rng: np.random.Generator, n: int) -> Batch:
    probability = ndtr(rng.normal(size=n))
    return Batch(probability, np.ceil(rng.exponential(20, n)), (probability > 0.6).astype(float))


def claims(runs: int) -> Iterator[Claim]:
    """Labels alone, alarms alone, and both."""
    yield from label_claims(runs)
    for seed, n in enumerate(n for n in NUMBERS for _ in REFERENCES):
        rng, size = np.random.default_rng(1000 + seed), REFERENCES[seed % len(REFERENCES)]
        n_alarms = n_contradicted = 0
        for run in range(runs):
            earlier = draw_batch(rng, size)
            reference = Reference(tuple(earlier.probability), tuple(earlier.length))
            is_unlike = bool(find_unlike(draw_batch(rng, n), reference, LEVEL / 2, f"run {run}"))
            n_alarms += is_unlike
            n_contradicted += is_unlike or draw_kept(rng, n, 0.2, True).contradicts(0.2, LEVEL / 2)
        name = f"check: {n} new answers like {size} of the calibration"
        yield Claim(f"{name}: no alarm", runs, n_alarms, LEVEL / 2)
        yield Claim(f"{name}, a true guarantee: no exit 3", runs, n_contradicted, LEVEL)
