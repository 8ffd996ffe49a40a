"""How far two people's labels of the same answers agree."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from tracecal.calibration import resampling
from tracecal.errors import InputError

RESAMPLES, LEVEL = 1000, 0.95
# As many questions of each pair of verdicts are added before resampling: where all agree, resamples
# of them alone say 100 % to 100 %.
UNSEEN = 0.5
# A value and the ends of its interval; null where it is undefined.
Told = tuple[float, float, float] | tuple[None, None, None]


@dataclass(frozen=True)
class Agreement:
    """Over the `n` answers that both judged: the share with equal verdicts and Cohen's kappa, each
    with its interval. `left_out` were judged by one of them or by none;
    `apart` are the answers on which they disagree, `example_id` and both verdicts.
    """

    n: int
    share: Told
    kappa: Told
    left_out: int
    apart: pl.DataFrame

    def __str__(self) -> str:
        return format_agreement(self)


def measure_agreement(first: pl.DataFrame, second: pl.DataFrame, seed: int) -> Agreement:
    """Of two frames of answers (columns of `RECORDS`), joined by id; intervals resample questions.

    Raises `InputError` where no answer has a verdict in both.
    """
    columns = ["example_id", "correct"]
    group = pl.coalesce("group_id", "prompt", "example_id").alias("group")
    both = first.select(*columns, group).join(
        second.select(columns), on="example_id", suffix="_second", how="full", coalesce=True
    )
    judged = both.drop_nulls(["correct", "correct_second"]).sort("example_id")
    if not judged.height:
        raise InputError("no answer has a verdict in both files: their ids or labels differ.")
    a, b = judged["correct"].to_numpy(), judged["correct_second"].to_numpy()
    observed = _measured(a, b, np.ones((1, judged.height)))
    return Agreement(
        judged.height,
        *_with_intervals(observed, _resampled(a, b, judged["group"], seed)),
        both.height - judged.height,
        judged.filter(pl.col("correct") != pl.col("correct_second")).drop("group"),
    )


def _resampled(
    a: np.ndarray, b: np.ndarray, group: pl.Series, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`_measured` of resampled questions, UNSEEN ones of each pair of verdicts among them."""
    first, second = [False, False, True, True], [False, True, False, True]
    drawn = resampling.draw_counts(group.to_list(), seed, RESAMPLES)
    added = resampling.draw_counts([f"unseen {place}" for place in range(4)], seed, RESAMPLES)
    counts = np.hstack([drawn, UNSEEN * len(group) / group.n_unique() * added])
    return _measured(np.append(a, first), np.append(b, second), counts)


def _with_intervals(
    observed: tuple[np.ndarray, np.ndarray], resampled: tuple[np.ndarray, np.ndarray]
) -> Iterator[Told]:
    """Each observed value with the ends of its interval, which contains it."""
    for (value,), drawn in zip(observed, resampled, strict=True):
        low, high, _ = resampling.interval(drawn, LEVEL)
        known = tuple(map(float, (value, min(low, value), max(high, value))))
        yield (None, None, None) if np.isnan(value) else known


def _measured(a: np.ndarray, b: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The share of equal verdicts and kappa by answers' `counts` [resamples, n]; NaN if undefined.

    Kappa is (share - chance) / (1 - chance), with the agreement that two people who give as many
    verdicts of each kind would reach by chance (Cohen 1960).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        total = counts.sum(axis=1)
        share = counts @ (a == b) / total
        right, other = counts @ a / total, counts @ b / total
        chance = right * other + (1 - right) * (1 - other)
        kappa = np.where(chance < 1, (share - chance) / (1 - chance), np.nan)
    return share, kappa


def format_agreement(found: Agreement) -> str:
    """The agreement and the answers on which they disagree, as lines of text."""
    lines = [
        f"{found.n} answers judged by both ({found.left_out} others by one or none)",
        f"equal verdicts: {_interval(found.share, '.1%')}",
        f"Cohen's kappa: {_interval(found.kappa, '.3f')}",
    ]
    words = {True: "right", False: "wrong"}
    lines += [
        f"  {example}: {words[one]}, {words[other]}"
        for example, one, other in found.apart.iter_rows()
    ]
    return "\n".join(lines)


def _interval(values: Told, form: str) -> str:
    value, low, high = values
    if value is None:
        return "undefined: both gave one verdict to all"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"
