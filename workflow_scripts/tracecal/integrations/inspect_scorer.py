"""A scorer of Inspect: the confidence of each answer, and how good these confidences are.

Inspect finds it as `tracecal/confidence`, by the package's entry point. In a task of your own it
stands after the scorer that judges: `scorer=[match(), confidence(calibrator="C.json")]`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from tracecal.answers.reading import Reading
from tracecal.answers.row import read_row
from tracecal.answers.verdict import parse_verdict
from tracecal.calibrator.predictor import Predictor, load_predictor
from tracecal.calibrator.scoring import Confidence, require_kind, score_record
from tracecal.calibrator.trace_kinds import is_among, vocabulary_for
from tracecal.errors import InputError, WrongRow
from tracecal.fits.fit_settings import Calibration
from tracecal.io.settings import parse
from tracecal.statistics.probability_metrics import brier, ece
from tracecal.statistics.ranking_metrics import single_auroc

# The columns of a score's value. `seen`: the calibrator was fitted on this very answer.
VALUE = {"probability": pl.Float64, "correct": pl.Boolean, "keep": pl.Boolean, "seen": pl.Boolean}
N_BINS = Calibration().ece_bins


def metric_of(name: str, compute: Callable[[pl.DataFrame], float]) -> Metric:
    """Make Inspect's metric of this name from a function of all epochs' scores."""

    @metric(name=name, scores="unreduced")
    def make_metric() -> Metric:
        def value(scores: list[SampleScore]) -> Value:
            return compute(pl.DataFrame([each.score.value for each in scores], schema=VALUE))

        return value

    return make_metric()


def on_judged(
    compute: Callable[[np.ndarray, np.ndarray], float | None],
) -> Callable[[pl.DataFrame], float]:
    """Compute a metric of probability and correctness [n] on the unseen answers that have both.

    NaN where the metric is undefined.
    """

    def value(scores: pl.DataFrame) -> float:
        judged = scores.filter(~pl.col("seen")).drop_nulls(["probability", "correct"])
        if not judged.height:
            return math.nan
        result = compute(judged["probability"].to_numpy(), judged["correct"].to_numpy())
        return math.nan if result is None else float(result)

    return value


def coverage(scores: pl.DataFrame) -> float:
    """Return the share of unseen answers that is kept; NaN where nothing is guaranteed.

    Answers without confidence count as not kept.
    """
    keep = scores.filter(~pl.col("seen"))["keep"]
    return keep.sum() / len(keep) if keep.count() else math.nan


def kept_error(scores: pl.DataFrame) -> float:
    """Return the share incorrect of the kept answers with a verdict; NaN without any."""
    correct = scores.filter("keep")["correct"].drop_nulls()
    return 1 - correct.sum() / len(correct) if len(correct) else math.nan


def n_missing(column: str) -> Callable[[pl.DataFrame], float]:
    """Count the answers without a value in a column."""
    return lambda scores: scores[column].null_count()


MEASURES: dict[str, Callable[[pl.DataFrame], float]] = {
    "auroc": on_judged(single_auroc),
    "brier": on_judged(lambda proba, y_true: brier(proba[None], y_true[None])[0]),
    "ece": on_judged(lambda proba, y_true: ece(proba[None], y_true[None], N_BINS)[0]),
    "coverage": coverage,
    "kept_error": kept_error,
    "without_confidence": n_missing("probability"),
    "without_verdict": n_missing("correct"),
    "seen": lambda scores: scores["seen"].sum(),
}


@scorer(metrics=[metric_of(name, compute) for name, compute in MEASURES.items()])
def confidence(
    calibrator: str,
    error_rate: float | None = None,
    correctness: str | None = None,
    estimator: str | None = None,
    model: str | None = None,
    vocabulary: int | None = None,
    stop_token: str = "auto",
    processed: str | bool = "auto",
) -> Scorer:
    """Score the probability that an answer is correct, by its log-probabilities.

    Parameters
    ----------
    calibrator : path
        The calibrator's file.
    error_rate : float, optional
        Target error rate of the answers to keep.
    correctness : str, optional
        The scorer whose verdict counts; by default the only other one.
    estimator, model, vocabulary, stop_token, processed
        See ``tracecal score``.

    Raises
    ------
    InputError
        Where the calibrator does not fit the answers, or it is ambiguous whose verdict counts.
    """
    predictor = load_predictor(calibrator, estimator)
    if error_rate is not None:
        predictor.require_tested(error_rate)
    options = {
        "format": "inspect",
        "model": model,
        "vocabulary": vocabulary_for(predictor.fitted_on, vocabulary),
        "stop_token": stop_token,
        # Inspect's command reads yes and no as YAML, as true and false.
        "processed": {True: "yes", False: "no"}.get(processed, processed),
    }
    reading = parse(Reading, options, "the scorer's options")

    async def score(state: TaskState, target: Target) -> Score:
        scored, is_seen = score_sample(state, predictor, error_rate, reading)
        correct, no_verdict = verdict_of(state.scores or {}, correctness)
        reasons = [reason for reason in (scored.reason, no_verdict) if reason]
        for reason in reasons:
            predictor.warn_once(reason)
        return Score(
            value={
                "probability": scored.probability,
                "correct": correct,
                "keep": scored.keep,
                "seen": is_seen,
            },
            explanation="; ".join(reasons) or None,
            metadata={"lower": scored.lower, "upper": scored.upper},
        )

    return score


def score_sample(
    state: TaskState, predictor: Predictor, error_rate: float | None, reading: Reading
) -> tuple[Confidence, bool]:
    """Return the confidence of a sample's answer, and whether the calibrator was fitted on it.

    The confidence is that of ``tracecal score`` on the same log: what is unknown of the calibrator
    or the answers is a warning.
    """
    sent = state.input
    if not isinstance(sent, str):  # as a log holds it
        sent = [message.model_dump(exclude_none=True) for message in sent]
    row = {
        "id": state.sample_id,
        "epoch": state.epoch,
        "input": sent,
        "request": generation_settings(state),
        "output": state.output.model_dump(),
    }
    try:
        record = read_row(row, reading)
    except WrongRow as error:
        return Confidence(None, reason=str(error)), False
    require_kind(record, predictor)
    scored, _ = score_record(predictor, record, error_rate)
    return scored, is_among(record, predictor.labelled)


def generation_settings(state: TaskState) -> dict[str, Any]:
    """Return the settings that a sample's answer was generated with; empty where unknown."""
    for event in reversed(transcript().events):
        if isinstance(event, ModelEvent) and event.output.choices == state.output.choices:
            return event.config.model_dump(exclude_none=True)
    return {}


def verdict_of(
    scores: Mapping[str, Score], correctness: str | None
) -> tuple[bool | None, str | None]:
    """Return whether another scorer calls the answer correct, and why there is no verdict.

    Raises `InputError` where it is ambiguous whose verdict counts.
    """
    verdicts = {
        name: score.value
        for name, score in scores.items()
        if not (isinstance(score.value, Mapping) and VALUE.keys() <= score.value.keys())
    }
    if not verdicts:
        return None, "no scorer has judged it: put one before this one"
    first = next(iter(verdicts))
    is_ambiguous = correctness is None and len(verdicts) > 1
    if is_ambiguous or (correctness is not None and correctness not in verdicts):
        problem = "several scorers judge the answers"
        if correctness:
            problem = f"there is no scorer {correctness!r}"
        raise InputError(
            f"{problem} (they are {', '.join(verdicts)}): name the one whose verdict counts, such "
            f"as correctness={first}."
        )
    try:
        return parse_verdict(verdicts[correctness or first]), None
    except WrongRow as error:
        return None, str(error)
