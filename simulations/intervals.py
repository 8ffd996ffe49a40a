"""Do the intervals of improvements, and those of two people's agreement, cover what they estimate?

In a population nineteen baselines and TRACE+ (eight features, fitted) observe, with noise, the hidden
strength that decides whether an answer is right. Each run draws a task and goes through the whole
chain: random splits, fits, pick_baselines, metrics, the paired bootstrap. The true difference is the mean over
the runs, each with its splits, fits and pick_baselines, so that the number of splits per resample is tested,
too. A claim is broken if the interval misses the true difference, or one of nineteen that hold at
once does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit

from simulations.claims import MISSED, Claim
from trace_workflow.analyses.averages import averages
from trace_workflow.analyses.comparisons import comparisons
from trace_workflow.analyses.gains import gains
from trace_workflow.analyses.improvements import improvements
from tracecal.answers.groups import FIT_SHARE
from tracecal.calibrator.recommendation import measure_quality
from tracecal.calibrator.training_set import TrainingSet
from tracecal.estimators.estimator import PICKED, TRACE_PLUS
from tracecal.fits.fit_settings import FitSettings
from tracecal.fits.predictions import calibrate_all, pick_baselines, with_picked
from tracecal.labelling.agree import measure_agreement
from tracecal.statistics.metrics import all_metrics
from tracecal.statistics.ranking_metrics import single_auroc
from tracecal.statistics.resampling import RESAMPLED_METRICS, resample_metrics
from tracecal.statistics.splits import make_splits

SPLITS, RESAMPLES, LEVEL = 20, 200, 0.95
STUDIES = {"main": {"model": "m", "tasks": ["t"]}}
BASELINES = [f"b{number:02}" for number in range(19)]
FEATURES = [f"features.f{number}" for number in range(8)]
INPUTS = {name: [f"scores.{name}"] for name in BASELINES} | {TRACE_PLUS: FEATURES}
NOISE = {
    "equal": np.ones(19),
    "spread": np.linspace(1, 4, 19),
    "one best": np.append(0.7, np.full(18, 2.0)),
}
# The noise of TRACE+'s features, relative to the best baseline's.
TRACE_NOISE = {"equal": 1.0, "better": 0.5, "worse": 1.6}


@dataclass(frozen=True)
class TaskPopulation:
    """Tasks with `groups` of the `sizes`, equally frequent; `noise` and `trace` are keys of NOISE and
    TRACE_NOISE.
    """

    groups: int
    sizes: tuple[int, ...]
    noise: str
    trace: str

    def __str__(self) -> str:
        sizes = "-".join(str(size) for size in sorted({self.sizes[0], self.sizes[-1]}))
        return f"{self.groups} groups of {sizes}, {self.noise} baselines, {self.trace} TRACE+"

    def draw(self, rng: np.random.Generator) -> pl.DataFrame:
        """Draw answers; a group has 70 % of the variance of everything in common."""
        group = np.repeat(np.arange(self.groups), rng.choice(self.sizes, self.groups))

        def normal() -> np.ndarray:
            single = rng.normal(size=len(group))
            return np.sqrt(0.7) * rng.normal(size=self.groups)[group] + np.sqrt(0.3) * single

        strength, common = normal(), normal()
        sds = NOISE[self.noise]
        scores = {
            f"scores.{name}": strength + sd * np.sqrt(0.5) * (common + normal())
            for name, sd in zip(BASELINES, sds, strict=True)
        }
        sd = sds.min() * TRACE_NOISE[self.trace]
        features = {
            name: strength + sd * np.sqrt(0.5) * (common + np.sqrt(8) * normal())
            for name in FEATURES
        }
        return pl.DataFrame(
            {
                "example_id": [f"{number:05}" for number in range(len(group))],
                "group_id": group.astype(str),
                "correct": rng.uniform(size=len(group)) < expit(2 * strength),
                **scores,
                **features,
            }
        )


SINGLE, SEVERAL = (1,), (1, 2, 3, 4, 5)
POPULATIONS = (
    TaskPopulation(60, SINGLE, "equal", "equal"),
    TaskPopulation(60, SEVERAL, "spread", "better"),
    TaskPopulation(60, SINGLE, "one best", "worse"),
    TaskPopulation(300, SEVERAL, "equal", "better"),
    TaskPopulation(300, SINGLE, "spread", "worse"),
    TaskPopulation(300, SINGLE, "one best", "equal"),
    TaskPopulation(1000, SINGLE, "equal", "worse"),
    TaskPopulation(1000, SINGLE, "spread", "equal"),
    TaskPopulation(1000, SINGLE, "one best", "better"),
)


def compare(answers: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Compare TRACE+ with baselines on one task: `metric`, `against`, `difference`, `low`, `high`.

    `against` is 'picked', 'named' (the first baseline), or a baseline whose interval holds with those
    of all others at once.
    """
    splits = make_splits(answers.select("example_id", "group_id"), "t", seed, SPLITS, 0.35)
    predictions, calibrators = calibrate_all(answers, splits, INPUTS, "platt")
    picked = pick_baselines(answers, splits, INPUTS, calibrators, BASELINES)
    predictions = with_picked(predictions, picked)
    scores = answers.select("example_id", *(pl.col(f"scores.{n}").alias(n) for n in BASELINES))
    scope = {"model": "m", "task": "t", "estimators": [*INPUTS, PICKED]}
    judged, numbers = answers.select("example_id", "correct"), list(range(SPLITS))
    measured = all_metrics(predictions, judged, scores, splits=numbers, ece_bins=15, **scope)
    grouped = answers.select("example_id", "group_id", "correct")
    resampled = resample_metrics(
        predictions, grouped, scores, seed=seed, resamples=RESAMPLES, **scope
    )
    gained = gains(averages(measured, STUDIES), BASELINES, BASELINES[0])
    single = improvements(gained, resampled, BASELINES[0], STUDIES, LEVEL).filter(
        pl.col("against") != "oracle", pl.col("metric").is_in(RESAMPLED_METRICS), task="t"
    )
    joint = comparisons(resampled, BASELINES, STUDIES, LEVEL).filter(task="t")
    columns = ("metric", "difference", "low", "high")
    return pl.concat(
        [
            single.select("against", *columns),
            joint.select(pl.col("baseline").alias("against"), *columns),
        ]
    )


def count_broken(population: TaskPopulation, runs: int) -> pl.DataFrame:
    """Count the `broken` runs by `metric` and kind of interval (`against`)."""
    rng = np.random.default_rng(population.groups + len(population.noise))
    differences = pl.concat(
        compare(population.draw(rng), seed).with_columns(run=pl.lit(seed)) for seed in range(runs)
    )
    truth = pl.col("difference").mean().over("metric", "against")
    outside = (truth < pl.col("low")) | (truth > pl.col("high"))
    kind = pl.col("against").replace(BASELINES, ["all baselines at once"] * len(BASELINES))
    missed = differences.with_columns(outside=outside).with_columns(against=kind)
    by_run = missed.group_by("metric", "against", "run").agg(pl.col("outside").any())
    return by_run.group_by("metric", "against").agg(broken=pl.sum("outside"))


def claims(runs: int, populations: Sequence[TaskPopulation] = POPULATIONS) -> Iterator[Claim]:
    """Large populations get fewer runs, as theirs take longer."""
    for population in populations:
        tries = max(runs // 10, runs * 6 // population.groups)
        counts = count_broken(population, tries).sort("metric", "against")
        for metric, against, broken in counts.select("metric", "against", "broken").iter_rows():
            claim = f"interval, {against}, {metric}: {population}"
            yield Claim(claim, tries, broken, MISSED)


def draw_near_equal(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one-token answers, most of them nearly 1, and whether the answers are right."""
    doubt = rng.normal(size=n)
    return -np.exp(2 * doubt - 6), rng.random(n) < expit(2.6 - 1.6 * doubt)


def draw_noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores that say nothing."""
    return rng.normal(size=n), rng.random(n) < 0.8


def rankings(runs: int, labels: Sequence[int] = (100, 300)) -> Iterator[Claim]:
    """`tracecal calibrate`: how often the interval of its AUROC misses the score's."""
    for number, draw in enumerate((draw_near_equal, draw_noise)):
        score, correct = draw(np.random.default_rng(99), 400_000)
        truth = single_auroc(score, correct)
        for n in labels:
            rng, broken = np.random.default_rng([number, n]), 0
            for run in range(runs):
                score, correct = draw(rng, n)
                ids = [f"{index:05}" for index in range(n)]
                frame = pl.DataFrame({"example_id": ids, "group_id": ids, "correct": correct})
                sides = np.where(rng.random(n) < FIT_SHARE, "fit", "test")
                columns = {"scores.x": score, "rank": rng.permutation(n), "side": sides}
                frame = frame.with_columns(pl.DataFrame(columns))
                none = frame.clear()
                data = TrainingSet(none, frame, {"x": ["scores.x"]}, none, n, "questions", "platt")
                settings = FitSettings(seed=run, bootstrap={"resamples": RESAMPLES})
                (row,) = measure_quality(data, data.cross_fitted(), settings).rows(named=True)
                broken += not row["auroc_low"] <= truth <= row["auroc_high"]
            name = draw.__doc__.splitlines()[0].split(",")[0].rstrip(".").lower()
            yield Claim(f"interval, AUROC of one score: {n} labels, {name}", runs, broken, MISSED)


SIZES = ((20, 1), (60, 1), (200, 1), (200, 5))  # answers, and how many answers a question has
# How often two people give equal verdicts, and how often the first one says 'right'.
RATERS = [(0.8, 0.6), (0.95, 0.6), (0.95, 0.9), (0.98, 0.7)]


def draw_raters(
    rng: np.random.Generator, n: int, size: int, equal: float, right: float
) -> list[pl.DataFrame]:
    """Draw both people's labels; the answers of a question share their verdicts."""
    question = np.arange(n) // size
    first = (rng.random(n) < right)[question]
    verdicts = (first, first ^ (rng.random(n) >= equal)[question])
    names = {"example_id": np.arange(n).astype(str), "group_id": question.astype(str)}
    answers = pl.DataFrame(names).with_columns(prompt=pl.lit(None, pl.String))
    return [answers.with_columns(correct=labels) for labels in verdicts]


def agreements(runs: int, sizes: Sequence[tuple[int, int]] = SIZES) -> Iterator[Claim]:
    """`tracecal agree`: how often its intervals miss the share of equal verdicts, and kappa."""
    for n, size in sizes:
        for equal, right in RATERS:
            rng, broken = np.random.default_rng([n, size]), np.zeros(2, dtype=int)
            second_right = right * equal + (1 - right) * (1 - equal)
            chance = right * second_right + (1 - right) * (1 - second_right)
            truth = (equal, (equal - chance) / (1 - chance))
            for run in range(runs):
                agreement = measure_agreement(*draw_raters(rng, n, size, equal, right), run)
                intervals = (agreement.share, agreement.kappa)
                for number, (interval, true) in enumerate(zip(intervals, truth, strict=True)):
                    value, low, high = interval
                    broken[number] += value is not None and not low <= true <= high
            for name, count in zip(("share", "kappa"), broken.tolist(), strict=True):
                claim = f"interval, agreement of {n} answers, {size} a question, {equal:g} equal"
                yield Claim(f"{claim}, {right:g} right: {name}", runs, count, MISSED)
