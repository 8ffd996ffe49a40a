"""What it saves to stop an answer early whose first tokens already say that it will not be kept.

An answer is stopped after k tokens where its probability there is below one threshold; of those
generated in full, answers are kept whose final probability reaches another. Both thresholds come
from the calibration part of a split. Without stops the half with the largest final probability is
kept; of the rules that keep as many, with no larger an error rate among them, the one that stops
most answers is taken. It is measured on the evaluation part, where the share kept and the error
rate may differ from those without stops, by as much as SAVINGS tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.analyse.bootstrap import draw_counts, draw_splits, mean_over_splits
from tracecal.calibrate.metrics import ratio

KEPT = 0.5
# Rules that stop so many more of the answers of a calibration part are compared.
STEP = 0.02
# The share of all tokens that are not generated, the share of the answers that are kept less what
# it is without stops, and the same of the error rate among those kept.
SAVINGS = ("saved", "kept_change", "error_change")


@dataclass(frozen=True)
class Held:
    """A task's answers: `correct` [n], who `calibrates` [splits, n], how often each split counts in
    the sample and the resamples [splits, 1 + resamples], and by split how often each answer is
    drawn where it does, `counts` [those, n].
    """

    correct: np.ndarray
    calibrates: np.ndarray
    in_resample: np.ndarray
    counts: Sequence[np.ndarray]

    @classmethod
    def of(
        cls, answers: pl.DataFrame, splits: pl.DataFrame, task: str, seed: int, resamples: int
    ) -> "Held":
        """`answers` has `example_id` (sorted), `group_id` and `correct`; `splits` also `part`."""
        calibration = splits.filter(part="calibration").partition_by("split", as_dict=True)
        ids = answers["example_id"]
        drawn = draw_counts(answers["group_id"].to_list(), seed, resamples)
        counts = np.vstack([np.ones(len(answers)), drawn])
        in_resample = draw_splits(len(calibration), task, seed, resamples)
        return cls(
            answers["correct"].to_numpy(),
            np.array(
                [ids.is_in(calibration[key]["example_id"].implode()) for key in sorted(calibration)]
            ),
            in_resample,
            [counts[used] for used in in_resample > 0],
        )


class Rule(NamedTuple):
    """Answers are stopped `below` an early probability and kept from the final one `least`, or
    from `usual` where none are stopped.
    """

    below: float
    least: float
    usual: float


def rule(early: np.ndarray, final: np.ndarray, correct: np.ndarray) -> Rule:
    """The rule that stops most answers of a calibration part, arrays [n], n >= 1."""
    n = len(correct)
    kept = max(1, round(KEPT * n))
    usual = float(np.sort(final)[-kept])
    allowed = (~correct[final >= usual]).mean()
    stops = np.unique(np.arange(STEP * n, n - kept + 1, max(STEP * n, 1)).astype(int))
    # A row for each number of stops. With ties fewer are stopped than meant, and more may be kept.
    below = np.sort(early)[stops, None]
    last = np.where(early >= below, final, -np.inf)
    least = np.sort(last)[:, -kept, None]
    held = last >= least
    good = np.flatnonzero((held & ~correct).sum(axis=1) / held.sum(axis=1) <= allowed)
    if not len(good):
        return Rule(-np.inf, usual, usual)
    return Rule(float(below[good[-1], 0]), float(least[good[-1], 0]), usual)


def savings(
    early: np.ndarray,
    final: np.ndarray,
    lengths: np.ndarray,
    seen: np.ndarray,
    held: Held,
) -> dict[str, np.ndarray]:
    """SAVINGS of one estimator, [1 + resamples]: of the sample and of each resample.

    `early` and `final` are its probabilities [splits, n] after `seen` tokens and at the end;
    `lengths` and `seen` [n] count tokens.
    """
    found = np.full((len(SAVINGS), *held.in_resample.shape), np.nan)
    for split, calibrates in enumerate(held.calibrates):
        own, last = early[split], final[split]
        known = np.isfinite(own) & np.isfinite(last)
        fitted, tested = known & calibrates, known & ~calibrates
        if not fitted.any():
            continue
        below, least, usual = rule(own[fitted], last[fitted], held.correct[fitted])
        own, last, wrong, length = own[tested], last[tested], ~held.correct[tested], lengths[tested]
        stopped, before = own < below, last >= usual
        kept = ~stopped & (last >= least)
        summed = [stopped * (length - seen[tested]), length, kept, kept & wrong]
        summed += [before, before & wrong, np.ones_like(length)]
        columns = np.zeros((len(tested), len(summed)))
        columns[tested] = np.column_stack(summed)
        left, tokens, kept, kept_wrong, before, before_wrong, n = (held.counts[split] @ columns).T
        found[:, split, held.in_resample[split] > 0] = [
            ratio(left, tokens),
            ratio(kept - before, n),
            ratio(kept_wrong, kept) - ratio(before_wrong, before),
        ]
    return {
        metric: mean_over_splits(values, held.in_resample)
        for metric, values in zip(SAVINGS, found, strict=True)
    }
