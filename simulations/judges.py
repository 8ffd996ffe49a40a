"""What does a judge's verdict beside the trace gain with 100 labels, and what does a bad one cost?

Log ridge is fitted on all labels, alone and with a verdict (`--also`); the fit on a fifth of them ranks,
and thresholds are tested on the other labels, as `calibrate` does. The judge's errors are independent of the trace. It is
useful (Cohen's kappa of .6 with the labels), useless (says "right" blindly, as often as the useful
one), or inverse (the opposite of the useful one); its weight is at least 0. The Brier score, the share
kept and the true error rate of the kept answers are expectations over a reference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.special import expit

from simulations.claims import Claim
from tracecal.answers.groups import FIT_SHARE
from tracecal.calibrator.catalogue import LOG_RIDGE
from tracecal.estimators.features import compute_inputs
from tracecal.estimators.registry import ESTIMATORS
from tracecal.fits.regression import fit_ridge
from tracecal.guarantees.error_rate import lowered, threshold_by_line
from tracecal.guarantees.line import significance_level

CONFIDENCE, RATE, LABELS = 0.9, 0.2, 100
KAPPA = 0.6
POOL = 6000
COLUMNS = next(entry.inputs for entry in ESTIMATORS if entry.id == LOG_RIDGE)
NAMES = [name.split(".", 1)[1] for name in COLUMNS]
# Level and slope of the log odds of a right answer over the trace's uncertainty. They give an accuracy
# of .65 and an AUROC of at most .89, and of .76 and .67.
POPULATIONS = {"strong trace": (4.0, 4.0), "weak trace": (2.2, 1.2)}


@dataclass(frozen=True)
class JudgedAnswers:
    """Features of traces [n, d], and the chance that each answer is right [n]."""

    x: np.ndarray
    right: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, level: float, slope: float) -> "JudgedAnswers":
        risk, length = rng.gamma(2.0, 0.4, POOL), rng.integers(1, 13, POOL)
        token_risk = np.repeat(risk, length) / 2
        ends = np.cumsum(length)[:-1]
        lists = {
            name: pl.Series(
                [values.tolist() for values in np.split(rng.gamma(shape, token_risk), ends)]
            )
            for name, shape in (("surprisal", 1.5), ("entropy", 2.0))
        }
        frame = pl.DataFrame({"example_id": np.arange(POOL).astype(str), **lists})
        typed = frame.cast({name: pl.List(pl.Float32) for name in lists})
        x = compute_inputs(typed, COLUMNS).select(COLUMNS).to_numpy()
        return cls(x, expit(level - slope * risk))


def approval_rates(kind: str, accuracy: float) -> tuple[float, float]:
    """The chances that a judge says "right" about a right and about a wrong answer."""

    def kappa(hits: float) -> float:
        approved = accuracy * hits + (1 - accuracy) * (1 - hits)
        chance = accuracy * approved + (1 - accuracy) * (1 - approved)
        return (hits - chance) / (1 - chance)

    hits = brentq(lambda rate: kappa(rate) - KAPPA, 0.5, 1)
    blind = accuracy * hits + (1 - accuracy) * (1 - hits)
    chances = {"useful": (hits, 1 - hits), "useless": (blind, blind), "inverse": (1 - hits, hits)}
    return chances[kind]


@dataclass(frozen=True)
class Outcome:
    """The Brier score of a fit, the share kept (0: no guarantee), and the error rate of the kept."""

    brier: float
    coverage: float
    error_rate: float


def simulate_outcome(
    pool: JudgedAnswers,
    reference: JudgedAnswers,
    approval: tuple[float, float] | None,
    seed: int,
) -> Outcome:
    """Fit Log ridge on LABELS answers of `pool`, with a judge's `approval_rates` or alone (None)."""
    rng = np.random.default_rng(seed)  # the same answers and labels whatever the judge
    rows = rng.choice(len(pool.x), LABELS, replace=False)
    x, correct = pool.x[rows], rng.random(LABELS) < pool.right[rows]
    luck = rng.random(LABELS)
    names = NAMES
    if approval is not None:
        verdict = luck < np.where(correct, *approval)
        x, names = np.column_stack([x, verdict]), [*NAMES, "judge"]
    n_fit = round(FIT_SHARE * LABELS)
    (fit,) = fit_ridge([(x[:n_fit], correct[:n_fit])], names)
    (final,) = fit_ridge([(x, correct)], names)
    score, level = fit.predict(x[n_fit:]), significance_level(CONFIDENCE)
    test = threshold_by_line(score, ~correct[n_fit:], RATE, level)
    threshold = lowered(np.array(test.guaranteed))[-1] if test.guaranteed else np.inf
    brier = coverage = errors = 0.0
    for verdict in (0, 1) if approval is not None else (1,):
        approves_right, approves_wrong = approval if approval is not None else (1.0, 1.0)
        p_right = reference.right * (approves_right if verdict else 1 - approves_right)
        p_wrong = (1 - reference.right) * (approves_wrong if verdict else 1 - approves_wrong)
        x = reference.x
        if approval is not None:
            x = np.column_stack([x, np.full(len(x), verdict)])
        probability = final.predict(x)
        brier += (p_right * (1 - probability) ** 2 + p_wrong * probability**2).mean()
        is_kept = fit.predict(x) >= threshold
        coverage += ((p_right + p_wrong) * is_kept).mean()
        errors += (p_wrong * is_kept).mean()
    return Outcome(brier, coverage, errors / coverage if coverage else 0.0)


def simulate_outcomes(population: str, runs: int, seed: int) -> dict[str, list[Outcome]]:
    """Return the outcomes of all runs by the kind of judge, 'none' without one."""
    rng = np.random.default_rng(seed)
    pool, reference = (JudgedAnswers.draw(rng, *POPULATIONS[population]) for _ in range(2))
    accuracy = float(reference.right.mean())
    judges = {kind: approval_rates(kind, accuracy) for kind in ("useful", "useless", "inverse")}
    return {
        kind: [simulate_outcome(pool, reference, approval, run) for run in range(runs)]
        for kind, approval in ({"none": None} | judges).items()
    }


def format_mean(values: np.ndarray) -> str:
    """Format a mean with half the width of its 95 % interval."""
    return f"{values.mean():.3f}±{1.96 * values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def claims(runs: int) -> Iterator[Claim]:
    """Guarantees hold; a useful judge lowers the Brier score, and a bad one hardly raises it."""
    for seed, population in enumerate(POPULATIONS):
        outcomes = simulate_outcomes(population, runs, seed)
        alone = np.array([outcome.brier for outcome in outcomes["none"]])
        for kind, by_run in outcomes.items():
            coverage = format_mean(np.array([outcome.coverage for outcome in by_run]))
            broken = sum(outcome.error_rate > RATE for outcome in by_run)
            claim = f"error rate ≤ {RATE:g}: {population}, judge {kind}, keeps {coverage}"
            yield Claim(claim, runs, broken, 1 - CONFIDENCE)
        for kind, limit in (("useful", 0.0), ("useless", 0.02), ("inverse", 0.002)):
            excess = np.array([outcome.brier for outcome in outcomes[kind]]) - alone
            change = f"{population}, {kind}, {format_mean(excess)}"
            claim = f"Brier score at most {limit:g} above alone: {change}"
            yield Claim(claim, runs, int((excess > limit).sum()), 0.05)
