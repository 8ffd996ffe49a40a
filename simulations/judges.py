"""What does a judge's verdict beside the trace bring with 100 labels, and what does a bad one cost?

Log ridge alone and with a verdict (`--also`) are fitted on a third of the labels, as `calibrate` does,
and thresholds are tested on the others. The judge is right or wrong whatever the trace says: useful
(Cohen's kappa of .6 with the labels), useless (drawn blindly as often as the useful one says "right"),
or inverse (the opposite of the useful one). Its weight is at least 0. Of each fit the Brier score, the
share kept and the true error rate among the kept are expectations over a reference, without drawing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.special import expit

from simulations.claims import Claim
from tracecal.calibration.bets import significance_level
from tracecal.calibration.few_labels import fit_ridge
from tracecal.calibration.guarantee import find_guarantees
from tracecal.calibration.rated_answers import LabelledAnswers
from tracecal.calibrator.schema import DEFAULT
from tracecal.estimators.registry import ESTIMATORS
from tracecal.estimators.trace_inputs import compute_inputs

CONFIDENCE, RATE, LABELS, SHARE = 0.9, 0.2, 100, 0.35
KAPPA = 0.6
POOL = 6000
COLUMNS = next(one.inputs for one in ESTIMATORS if one.id == DEFAULT)
NAMES = [name.split(".", 1)[1] for name in COLUMNS]
# Log odds of a right answer by how uncertain its trace is: .65 are right and the AUROC is .89 at best,
# and .76 and .67.
POPULATIONS = {"strong trace": (4.0, 4.0), "weak trace": (2.2, 1.2)}


@dataclass(frozen=True)
class Answers:
    """Features of traces [n, d] and the chance that each answer is right [n]."""

    x: np.ndarray
    right: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, level: float, slope: float) -> "Answers":
        risk, length = rng.gamma(2.0, 0.4, POOL), rng.integers(1, 13, POOL)
        of_token = np.repeat(risk, length) / 2
        ends = np.cumsum(length)[:-1]
        lists = {
            name: pl.Series([one.tolist() for one in np.split(rng.gamma(shape, of_token), ends)])
            for name, shape in (("surprisal", 1.5), ("entropy", 2.0))
        }
        frame = pl.DataFrame({"example_id": np.arange(POOL).astype(str), **lists})
        typed = frame.cast({name: pl.List(pl.Float32) for name in lists})
        found = compute_inputs(typed, COLUMNS).select(COLUMNS).to_numpy()
        return cls(found, expit(level - slope * risk))


def says_right(kind: str, share: float) -> tuple[float, float]:
    """The chance that a judge says "right" of a right and of a wrong answer, where a `share` of all
    are right.
    """

    def kappa(hits: float) -> float:
        said = share * hits + (1 - share) * (1 - hits)
        by_chance = share * said + (1 - share) * (1 - said)
        return (hits - by_chance) / (1 - by_chance)

    hits = brentq(lambda one: kappa(one) - KAPPA, 0.5, 1)
    blind = share * hits + (1 - share) * (1 - hits)
    chances = {"useful": (hits, 1 - hits), "useless": (blind, blind), "inverse": (1 - hits, hits)}
    return chances[kind]


@dataclass(frozen=True)
class Outcome:
    """Of one fit: its Brier score, the share kept (0: nothing guaranteed) and the error rate there."""

    brier: float
    kept: float
    wrong: float


def outcome(
    pool: Answers, reference: Answers, chances: tuple[float, float] | None, seed: int
) -> Outcome:
    """Of Log ridge on LABELS answers of `pool`, with a judge of these `chances` or alone (null)."""
    rng = np.random.default_rng(seed)  # the same answers and labels whatever the judge
    rows = rng.choice(len(pool.x), LABELS, replace=False)
    x, correct = pool.x[rows], rng.random(LABELS) < pool.right[rows]
    luck = rng.random(LABELS)
    names = NAMES
    if chances is not None:
        verdict = luck < np.where(correct, *chances)
        x, names = np.column_stack([x, verdict]), [*NAMES, "judge"]
    first = round(SHARE * LABELS)
    (fit,) = fit_ridge([(x[:first], correct[:first])], names)
    seen, tested = (
        LabelledAnswers(np.arange(len(correct[part])), fit.predict(x[part]), correct[part])
        for part in (slice(first), slice(first, None))
    )
    (found,) = find_guarantees(seen, tested, [RATE], significance_level(CONFIDENCE))
    brier = kept = wrong = 0.0
    for verdict in (0, 1) if chances is not None else (1,):
        of_right, of_wrong = chances if chances is not None else (1.0, 1.0)
        p_right = reference.right * (of_right if verdict else 1 - of_right)
        p_wrong = (1 - reference.right) * (of_wrong if verdict else 1 - of_wrong)
        own = reference.x
        if chances is not None:
            own = np.column_stack([own, np.full(len(own), verdict)])
        probability = fit.predict(own)
        brier += (p_right * (1 - probability) ** 2 + p_wrong * probability**2).mean()
        if found.threshold is not None:
            keeps = probability >= found.threshold
            kept += ((p_right + p_wrong) * keeps).mean()
            wrong += (p_wrong * keeps).mean()
    return Outcome(brier, kept, wrong / kept if kept else 0.0)


def outcomes(population: str, runs: int, seed: int) -> dict[str, list[Outcome]]:
    """By the kind of judge, 'none' without one, an outcome of each run."""
    rng = np.random.default_rng(seed)
    pool, reference = (Answers.drawn(rng, *POPULATIONS[population]) for _ in range(2))
    share = float(reference.right.mean())
    judges = {kind: says_right(kind, share) for kind in ("useful", "useless", "inverse")}
    return {
        kind: [outcome(pool, reference, chances, run) for run in range(runs)]
        for kind, chances in ({"none": None} | judges).items()
    }


def told(values: np.ndarray) -> str:
    """A mean with the reach of its 95 % interval."""
    return f"{values.mean():.3f}±{1.96 * values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def claims(runs: int) -> Iterator[Claim]:
    """That guarantees hold, that a useful judge lowers the Brier score with nearly every set of
    labels, and that a useless and an inverse one hardly raise it.
    """
    for seed, population in enumerate(POPULATIONS):
        found = outcomes(population, runs, seed)
        alone = np.array([one.brier for one in found["none"]])
        for kind, of_runs in found.items():
            kept = np.array([one.kept for one in of_runs])
            broken = sum(one.wrong > RATE for one in of_runs)
            what = f"error rate ≤ {RATE:g}: {population}, judge {kind}, keeps {told(kept)}"
            yield Claim(what, runs, broken, 1 - CONFIDENCE)
        for kind, much in (("useful", 0.0), ("useless", 0.02), ("inverse", 0.002)):
            more = np.array([one.brier for one in found[kind]]) - alone
            what = f"Brier score at most {much:g} above alone: {population}, {kind}, {told(more)}"
            yield Claim(what, runs, int((more > much).sum()), 0.05)
