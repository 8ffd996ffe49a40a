"""An estimator's guarantees, with what they need where they fail."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import polars as pl

from tracecal.calibration.bets import Evidence, min_groups, significance_level
from tracecal.calibration.fits import from_json
from tracecal.calibration.guarantee import (
    Guarantee,
    find_guarantees,
    resolve_largest_group,
    threshold_sequence,
)
from tracecal.calibration.rated_answers import LabelledAnswers, split_answers

# How `enough` searches: STEPS times, with a quarter more groups each time.
GROWTH, STEPS = 1.25, 12


def groups_needed(
    seen: LabelledAnswers,
    tested: LabelledAnswers,
    error_rate: float,
    level: float,
    single: bool = False,
    largest: int | None = None,
) -> int | None:
    """About how many groups like the tested ones would have sufficed for a guarantee.

    The tested groups are repeated, a quarter more each time, until the first threshold for that
    number passes; None where 14 times as many are too few. Arguments as of `guarantee`.
    """
    most = resolve_largest_group(seen, single, largest)
    for step in range(1, STEPS + 1) if tested.groups else ():
        size = math.ceil(tested.groups * GROWTH**step)
        repeated = np.arange(size) % tested.groups
        first = threshold_sequence(seen, size, error_rate, level, most)[:1]
        evidence = Evidence.of(seen, tested, first, error_rate, single, most)
        if evidence.wrong.sum() >= error_rate * evidence.kept.sum():
            continue  # no number of such groups suffices
        enlarged = replace(evidence, kept=evidence.kept[repeated], wrong=evidence.wrong[repeated])
        if enlarged.passes(error_rate, level).any():
            return size
    return None


def explain_failure(
    seen: LabelledAnswers,
    tested: LabelledAnswers,
    error_rate: float,
    level: float,
    suffice: int | None,
    most: int = 1,
    forecast: bool = True,
) -> str:
    """Why there is no guarantee, in one sentence; `suffice` is that of `enough`, which was not
    asked without `forecast`. A group counts with at most `most` answers.
    """
    if not len(seen.probability) or not tested.groups:
        return "no answer has been tested"
    fewest, weights = min_groups(error_rate, level), tested.weights(most).sum()
    if tested.groups < fewest:
        return (
            f"needs at least {fewest} tested groups even if every answer is correct, "
            f"has {tested.groups}"
        )
    if weights < fewest:
        return (
            f"needs about {fewest} tested groups of {most} answers even if every answer is "
            f"correct; the {tested.groups} tested ones, most of them smaller, count as "
            f"{weights:.1f}: label more, or state a smaller risk_control.largest_group"
        )
    first = threshold_sequence(seen, tested.groups, error_rate, level, most)[0]
    kept = tested.probability >= first
    wrong = int((kept & ~tested.correct).sum())
    found = f"{wrong} of the {kept.sum()} most confident answers tested first are incorrect"
    if not forecast:
        return f"{found}, which does not show an error rate of at most {error_rate:g}"
    if suffice is None:
        return f"{found}, too many for an error rate of {error_rate:g}"
    return f"{found}, too few answers to tell; if more groups are like these, {suffice} will do"


def control_risk(
    fits: Mapping[str, Mapping],
    answers: pl.DataFrame,
    splits: pl.DataFrame,
    error_rates: Sequence[float],
    confidence: float,
    single: bool = False,
    together: int = 1,
    largest: int | None = None,
    forecast: bool = True,
) -> dict[str, object]:
    """The guarantees of one estimator as plain JSON, for the fit of the first split.

    `fits` is its entry of the calibrators. `answers` holds `example_id`, `correct` and its
    features; `splits` holds `example_id`, `split`, `rank` (of the group) and `part`. `single` says
    that the task declares no groups. `groups` is the number of tested groups, of which each counts
    with at most `largest_group` answers: `largest`, or the size of the calibration part's largest
    where that is null. Where there is no threshold, `reason` says why and `enough` is that of the
    function, null without `forecast`: it takes longer than all the rest. Each of the other splits
    would have had a threshold of its own, which holds as much by itself: `other_splits` counts
    them, `other_thresholds` those with one, whose median and ends follow. `risk_coverage` is that
    of the tested answers, and `about` says what the guarantees are about.
    """
    numbers = sorted(splits["split"].unique())
    level = significance_level(confidence, together)
    by_split = [
        split_answers(
            from_json(fits["splits"][str(number)]),
            list(fits["features"]),
            answers,
            splits.filter(split=number),
        )
        for number in numbers
    ]
    seen, tested = by_split[0]
    most = resolve_largest_group(seen, single, largest)
    every = [find_guarantees(*pair, error_rates, level, single, largest) for pair in by_split]
    thresholds = []
    for found, *others in zip(*every, strict=True):
        rate, missing = found.error_rate, found.threshold is None
        suffice = None
        if missing and forecast:
            suffice = groups_needed(seen, tested, rate, level, single, largest)
        why = (
            explain_failure(seen, tested, rate, level, suffice, most, forecast) if missing else None
        )
        thresholds.append(asdict(found) | {"enough": suffice, "reason": why} | _of_others(others))
    return {
        "split": int(numbers[0]),
        "confidence": confidence,
        "together": together,
        "groups": tested.groups,
        "largest_group": most,
        "about": describe_scope(together),
        "thresholds": thresholds,
        "risk_coverage": risk_coverage(tested, most),
    }


def describe_scope(together: int) -> str:
    """What guarantees are about that hold `together`."""
    each = "each guarantee holds by itself" if together == 1 else f"{together} hold together"
    return (
        "the share of wrong answers among all that are kept, of new questions drawn as the "
        f"labelled ones were; {each}"
    )


def risk_coverage(tested: LabelledAnswers, most: int) -> list[tuple[float, float]]:
    """The share kept and the share wrong of the kept, at thresholds that keep about a tenth of the
    answers, two tenths, and so on; groups count as in the guarantees, with at most `most` answers.
    """
    ranked = -np.sort(-tested.probability)
    if not len(ranked):
        return []
    places = -(-len(ranked) * np.arange(1, 11) // 10) - 1
    thresholds = np.unique(ranked[places])[::-1]
    kept = tested.kept(thresholds, most).sum(axis=0)
    share = kept / tested.weights(most).sum()
    wrong = tested.wrong(thresholds, most).sum(axis=0) / kept
    return [*zip(share.round(4).tolist(), wrong.round(4).tolist(), strict=True)]


def _of_others(others: Sequence[Guarantee]) -> dict[str, float | int | None]:
    """What the guarantees of the other splits look like."""
    found = [one.threshold for one in others if one.threshold is not None]
    return {
        "other_splits": len(others),
        "other_thresholds": len(found),
        "lowest_threshold": min(found, default=None),
        "median_threshold": float(np.median(found)) if found else None,
        "highest_threshold": max(found, default=None),
        "median_coverage": float(np.median([one.coverage for one in others])) if others else None,
    }
