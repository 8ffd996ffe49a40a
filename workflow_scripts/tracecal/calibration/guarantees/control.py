"""The error rates that one estimator of a run guarantees, and why others are missing.

`control_error_rates` takes the estimator's fits, labelled answers and their split, and returns the
guarantees with the risk-coverage curve as plain JSON.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibration.bets import significance_level
from tracecal.calibration.estimator_fits import EstimatorFits
from tracecal.calibration.fits import Fit, as_json, probabilities
from tracecal.calibration.groups import largest_group as choose_largest_group
from tracecal.calibration.guarantees.error_rate import (
    ErrorRateTest,
    GroupedScores,
    find_thresholds,
)
from tracecal.calibration.guarantees.line import find_places

SCOPE = (
    "the share of wrong answers among all that are kept, of new questions drawn as the "
    "labelled ones were; each guarantee holds by itself"
)


def control_error_rates(
    estimator: str,
    fits: EstimatorFits,
    answers: pl.DataFrame,
    split: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
    ungrouped: bool = False,
    largest_group: int | None = None,
) -> dict[str, Any]:
    """Find the thresholds whose error rates one estimator guarantees.

    The calibration part of the split fixes the ranking, and its evaluation part tests thresholds.

    Parameters
    ----------
    estimator : str
        The estimator's id.
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
        Answers of larger groups are neither tested nor kept. By default the smallest size for which
        larger groups hold at most a fifth of the answers.

    Returns
    -------
    dict
        JSON values. `thresholds` has a row per error rate; without a threshold it says the `reason`
        and the number of groups that would be `enough`. `groups` is the number of tested groups,
        `larger_groups` the share of answers in larger ones, `about` the scope of the guarantees and
        `risk_coverage` the curve of the tested answers. `ranked_by`, `features` and `fit` say what
        ranks; `split`, `confidence` and `largest_group` repeat what was used.
    """
    number = int(split["split"].min())
    split = split.filter(split=number)
    sizes = np.bincount(split["rank"])
    if ungrouped:
        largest_group = 1
    elif largest_group is None:
        largest_group = choose_largest_group(sizes[sizes > 0])
    fit = fits.splits[number]
    ranked = _rank(fits.features, fit, split.join(answers, on="example_id", validate="1:1"))
    is_tested = pl.col("part") == "evaluation"
    parts = ranked.filter(is_tested), ranked.filter(~is_tested)
    labelled, unlabelled = (_grouped_scores(part, sizes) for part in parts)
    wrong = ~parts[0]["correct"].to_numpy()
    tests = find_thresholds(
        labelled,
        wrong,
        unlabelled,
        error_rates,
        significance_level(confidence),
        largest_group,
    )
    return {
        "ranked_by": estimator,
        "features": list(fits.features),
        "fit": as_json(fit),
        "split": number,
        "confidence": confidence,
        **describe_tests(tests, labelled, wrong, sizes, largest_group),
    }


def describe_tests(
    tests: Sequence[ErrorRateTest],
    labelled: GroupedScores,
    wrong: np.ndarray,
    sizes: np.ndarray,
    largest_group: int,
) -> dict[str, Any]:
    """Return the JSON values of the `labelled` answers' tests; `sizes` are those of all groups."""
    tested = (labelled.size <= largest_group) & ~np.isnan(labelled.score)
    larger = float(sizes[sizes > largest_group].sum() / sizes.sum())
    return {
        "groups": labelled.select(tested).n_groups,
        "largest_group": largest_group,
        "larger_groups": round(larger, 4),
        "about": SCOPE if larger == 0 else f"{SCOPE}; {describe_cap(largest_group)}",
        "thresholds": [as_row(test) for test in tests],
        "risk_coverage": risk_coverage(labelled.score[tested], wrong[tested]),
    }


def _rank(features: Sequence[str], fit: Fit, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the probability of a fit, in the order of groups; NaN without all features."""
    rows = rows.sort("rank", "example_id")
    (score,) = probabilities(rows.select(features), [fit])
    return rows.with_columns(score=pl.Series(score, dtype=pl.Float64))


def _grouped_scores(rows: pl.DataFrame, sizes: np.ndarray) -> GroupedScores:
    """Return the scores of `rows`; `sizes` are all groups' sizes by rank."""
    group = rows["rank"].to_numpy()
    return GroupedScores(rows["score"].to_numpy(), group, sizes[group])


def describe_cap(largest_group: int) -> str:
    """Say which groups' answers are never kept."""
    if largest_group == 1:
        return "answers of groups of several are never kept"
    return f"answers of groups of more than {largest_group} are never kept"


def as_row(test: ErrorRateTest) -> dict[str, Any]:
    """Return the JSON values of a test, with counts if it has a threshold."""
    n_kept, wrong = (test.kept, test.wrong) if test.guaranteed else (0, 0)
    return {
        "error_rate": test.error_rate,
        "tested_rate": test.tested_rate,
        "threshold": test.threshold,
        "n": test.n,
        "kept": n_kept,
        "wrong": wrong,
        "allowed": test.allowed if test.guaranteed else None,
        "coverage": n_kept / test.n if n_kept else 0.0,
        "error": wrong / n_kept if n_kept else None,
        "enough": test.enough,
        "reason": test.reason,
    }


def risk_coverage(score: np.ndarray, wrong: np.ndarray) -> list[tuple[float, float]]:
    """The share of answers kept and the error rate among them, at up to ten thresholds.

    The thresholds keep a tenth of the answers, two tenths, and so on; tied ones are merged.
    """
    places = find_places(score, wrong)
    tenths = np.ceil(places.n * np.arange(1, 11) / 10)
    chosen = np.unique(np.searchsorted(places.kept, tenths)) if places.n else []
    n_kept, n_wrong = places.kept[chosen], places.wrong[chosen]
    return [
        *zip(
            (n_kept / places.n).round(4).tolist(), (n_wrong / n_kept).round(4).tolist(), strict=True
        )
    ]
