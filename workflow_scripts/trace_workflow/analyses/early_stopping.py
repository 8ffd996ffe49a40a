"""The tokens that early stops save: a rule from the calibration part, measured on other answers.

1. `ResampledAnswers.of` draws the resamples of a task's answers and splits.
2. `stopping_rule` finds, on a calibration part, the rule that stops most answers.
3. `savings` measures that rule on the other answers, in the sample and in every resample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from tracecal.calibration.ranking import ratio
from tracecal.calibration.resampling import draw_counts, draw_splits, mean_over_splits

KEPT_SHARE = 0.5
# Each rule stops this larger share of the calibration part than the rule before it.
STEP = 0.02
# The share of all tokens saved, and the changes, against no stops, in the share of kept answers and
# in their error rate.
SAVINGS = ("saved", "kept_change", "error_change")


@dataclass(frozen=True)
class ResampledAnswers:
    """A task's answers in the sample and in its resamples.

    `correct` [n], whether an answer `calibrates` [splits, n], the weight of each split
    [splits, 1 + resamples], and by split the weights of answers in its resamples, `counts`
    [resamples of the split, n].
    """

    correct: np.ndarray
    calibrates: np.ndarray
    split_counts: np.ndarray
    counts: Sequence[np.ndarray]

    @classmethod
    def of(
        cls, answers: pl.DataFrame, splits: pl.DataFrame, task: str, seed: int, resamples: int
    ) -> "ResampledAnswers":
        """`answers` has `example_id` (sorted), `group_id` and `correct`; `splits` also `part`."""
        calibration = splits.filter(part="calibration").partition_by("split", as_dict=True)
        ids = answers["example_id"]
        resampled = draw_counts(answers["group_id"].to_list(), seed, resamples)
        counts = np.vstack([np.ones(len(answers)), resampled])
        split_counts = draw_splits(len(calibration), task, seed, resamples)
        return cls(
            answers["correct"].to_numpy(),
            np.array(
                [ids.is_in(calibration[key]["example_id"].implode()) for key in sorted(calibration)]
            ),
            split_counts,
            [counts[is_used] for is_used in split_counts > 0],
        )


class StoppingRule(NamedTuple):
    """Thresholds of an early stop.

    Answers with an early probability below `early` are stopped; of the others, answers with a final
    probability of at least `final` are kept. Without stops the threshold is `final_without_stops`.
    """

    early: float
    final: float
    final_without_stops: float


def stopping_rule(early: np.ndarray, final: np.ndarray, correct: np.ndarray) -> StoppingRule:
    """The rule that stops most answers of a calibration part without more errors among kept ones.

    The arguments are probabilities and labels [n], n >= 1.
    """
    n = len(correct)
    n_kept = max(1, round(KEPT_SHARE * n))
    without_stops = float(np.sort(final)[-n_kept])
    error_rate = (~correct[final >= without_stops]).mean()
    stops = np.unique(np.arange(STEP * n, n - n_kept + 1, max(STEP * n, 1)).astype(int))
    # A row per number of stops. Ties may stop fewer and keep more answers than planned.
    early_thresholds = np.sort(early)[stops, None]
    remaining = np.where(early >= early_thresholds, final, -np.inf)
    final_thresholds = np.sort(remaining)[:, -n_kept, None]
    is_kept = remaining >= final_thresholds
    error_rates = (is_kept & ~correct).sum(axis=1) / is_kept.sum(axis=1)
    allowed = np.flatnonzero(error_rates <= error_rate)
    if not len(allowed):
        return StoppingRule(-np.inf, without_stops, without_stops)
    best = allowed[-1]
    return StoppingRule(
        float(early_thresholds[best, 0]), float(final_thresholds[best, 0]), without_stops
    )


def savings(
    early: np.ndarray,
    final: np.ndarray,
    lengths: np.ndarray,
    prefix_lengths: np.ndarray,
    answers: ResampledAnswers,
) -> dict[str, np.ndarray]:
    """SAVINGS of an estimator in the sample and in each resample, [1 + resamples].

    `early` and `final` are its probabilities [splits, n] after a prefix and at the end; `lengths`
    and `prefix_lengths` [n] count tokens.
    """
    values = np.full((len(SAVINGS), *answers.split_counts.shape), np.nan)
    for split, calibrates in enumerate(answers.calibrates):
        defined = np.isfinite(early[split]) & np.isfinite(final[split])
        fitted, tested = defined & calibrates, defined & ~calibrates
        if not fitted.any():
            continue
        rule = stopping_rule(early[split, fitted], final[split, fitted], answers.correct[fitted])
        wrong, n_tokens = ~answers.correct[tested], lengths[tested]
        stopped = early[split, tested] < rule.early
        is_kept = ~stopped & (final[split, tested] >= rule.final)
        kept_without = final[split, tested] >= rule.final_without_stops
        columns = np.zeros((len(tested), 7))
        columns[tested] = np.column_stack(
            [
                stopped * (n_tokens - prefix_lengths[tested]),
                n_tokens,
                is_kept,
                is_kept & wrong,
                kept_without,
                kept_without & wrong,
                np.ones_like(n_tokens),
            ]
        )
        unspent, spent, n_kept, kept_errors, n_kept_without, errors_without, n = (
            answers.counts[split] @ columns
        ).T
        values[:, split, answers.split_counts[split] > 0] = [
            ratio(unspent, spent),
            ratio(n_kept - n_kept_without, n),
            ratio(kept_errors, n_kept) - ratio(errors_without, n_kept_without),
        ]
    return {
        metric: mean_over_splits(by_split, answers.split_counts)
        for metric, by_split in zip(SAVINGS, values, strict=True)
    }
