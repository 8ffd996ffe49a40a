"""Risk control: the error rates that one estimator guarantees, and why others are missing.

1. `control_risk` takes an estimator's fits, labelled answers and their split, and returns the
   guarantees with the risk-coverage curve as plain JSON.
2. Where a target has no threshold, `explain_failure` says why in a sentence.
3. `groups_needed` forecasts how many groups of answers would have been enough.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibration.bets import Evidence, min_groups, significance_level
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.guarantee import (
    find_guarantees,
    resolve_largest_group,
    threshold_sequence,
)
from tracecal.calibration.guarantees.control import SCOPE
from tracecal.calibration.guarantees.line import GROWTH, STEPS
from tracecal.calibration.rated_answers import LabelledAnswers, split_answers


def control_risk(
    fits: EstimatorFits,
    answers: pl.DataFrame,
    split: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
    ungrouped: bool = False,
    largest_group: int | None = None,
    forecast: bool = True,
) -> dict[str, Any]:
    """Find the thresholds whose error rates one estimator guarantees.

    Thresholds are ordered on the calibration part of the split and tested on its evaluation part.

    Parameters
    ----------
    fits : EstimatorFits
        The estimator's fits.
    answers : polars.DataFrame
        `example_id`, `correct` and the estimator's features.
    split : polars.DataFrame
        `example_id`, `split`, `rank` (the random order of groups) and `part` ('calibration' or
        'evaluation'). The split with the lowest number is used.
    error_rates : sequence of float
        Target error rates.
    confidence : float
        Confidence of each guarantee.
    ungrouped : bool
        Whether every answer of the task is its own group.
    largest_group : int, optional
        The number of answers that a group counts as at most: answers of larger groups are weighted
        down. By default the size of the largest calibration group.
    forecast : bool
        Whether to forecast `groups_needed` where a guarantee is missing. This takes longer than all
        the rest.

    Returns
    -------
    dict
        JSON values. `thresholds` has a row per error rate; without a threshold it says the `reason`
        and the number of groups that would be `enough`. `groups` is the number of tested groups,
        `about` the scope of the guarantees and `risk_coverage` the curve of the tested answers.
        `split`, `confidence` and `largest_group` repeat what was used.
    """
    number = int(split["split"].min())
    calibration, evaluation = split_answers(
        fits.splits[number], list(fits.features), answers, split.filter(split=number)
    )
    level = significance_level(confidence)
    largest_group = resolve_largest_group(calibration, ungrouped, largest_group)
    parts = calibration, evaluation
    thresholds = []
    for guarantee in find_guarantees(*parts, error_rates, level, ungrouped, largest_group):
        rate, needed, reason = guarantee.error_rate, None, None
        if guarantee.threshold is None:
            if forecast:
                needed = groups_needed(*parts, rate, level, ungrouped, largest_group)
            reason = explain_failure(*parts, rate, level, needed, largest_group, forecast)
        thresholds.append(asdict(guarantee) | {"enough": needed, "reason": reason})
    return {
        "split": number,
        "confidence": confidence,
        "groups": evaluation.n_groups,
        "largest_group": largest_group,
        "about": SCOPE,
        "thresholds": thresholds,
        "risk_coverage": risk_coverage(evaluation, largest_group),
    }


def groups_needed(
    calibration: LabelledAnswers,
    evaluation: LabelledAnswers,
    error_rate: float,
    level: float,
    ungrouped: bool = False,
    largest_group: int | None = None,
) -> int | None:
    """Forecast how many groups like the tested ones would be enough for a guarantee.

    The tested groups are repeated, a quarter more at each step, until the first threshold to test
    passes; None if it fails even with 14.6 times the groups (GROWTH to the power of STEPS). The
    parameters are those of `find_guarantees`.
    """
    largest_group = resolve_largest_group(calibration, ungrouped, largest_group)
    n_groups = evaluation.n_groups
    for step in range(1, STEPS + 1) if n_groups else ():
        size = math.ceil(n_groups * GROWTH**step)
        repeated = np.arange(size) % n_groups
        first = threshold_sequence(calibration, size, error_rate, level, largest_group)[:1]
        evidence = Evidence.from_answers(
            calibration, evaluation, first, error_rate, ungrouped, largest_group
        )
        if evidence.wrong.sum() >= error_rate * evidence.kept.sum():
            continue  # too many errors at this threshold; larger numbers may start at another
        enlarged = replace(evidence, kept=evidence.kept[repeated], wrong=evidence.wrong[repeated])
        if enlarged.passes(error_rate, level).any():
            return size
    return None


def explain_failure(
    calibration: LabelledAnswers,
    evaluation: LabelledAnswers,
    error_rate: float,
    level: float,
    needed: int | None,
    largest_group: int = 1,
    forecast: bool = True,
) -> str:
    """Say in a sentence why there is no guarantee; `needed` is the forecast of `groups_needed`."""
    n_groups = evaluation.n_groups
    if not len(calibration.probability) or not n_groups:
        return "no answer has been tested"
    fewest, weight = min_groups(error_rate, level), evaluation.group_weights(largest_group).sum()
    if n_groups < fewest:
        return (
            f"needs at least {fewest} tested groups even if every answer is correct, has {n_groups}"
        )
    if weight < fewest:
        return (
            f"needs about {fewest} tested groups of {largest_group} answers even if every answer "
            f"is correct; the {n_groups} tested ones, most of them smaller, count as "
            f"{weight:.1f}: label more, or state a smaller risk_control.largest_group"
        )
    first = threshold_sequence(calibration, n_groups, error_rate, level, largest_group)[0]
    is_kept = evaluation.probability >= first
    n_wrong = int((is_kept & ~evaluation.correct).sum())
    observed = f"{n_wrong} of the {is_kept.sum()} most confident answers tested first are incorrect"
    if not forecast:
        return f"{observed}, which does not show an error rate of at most {error_rate:g}"
    if needed is None:
        return f"{observed}, too many for an error rate of {error_rate:g}"
    return f"{observed}, too few answers to tell; if more groups are like these, {needed} will do"


def risk_coverage(evaluation: LabelledAnswers, largest_group: int) -> list[tuple[float, float]]:
    """The share of answers kept and the error rate among them, at up to ten thresholds.

    The thresholds keep a tenth of the answers, two tenths, and so on; tied ones are merged. Groups
    are weighted as in the guarantees.
    """
    ranked = -np.sort(-evaluation.probability)
    if not len(ranked):
        return []
    indices = np.ceil(len(ranked) * np.arange(1, 11) / 10).astype(int) - 1
    thresholds = np.unique(ranked[indices])[::-1]
    kept_weight = evaluation.kept_weight(thresholds, largest_group).sum(axis=0)
    coverage = kept_weight / evaluation.group_weights(largest_group).sum()
    risk = evaluation.wrong_weight(thresholds, largest_group).sum(axis=0) / kept_weight
    return [*zip(coverage.round(4).tolist(), risk.round(4).tolist(), strict=True)]
