"""How far two people's labels of the same answers agree."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from tracecal.analyse import bootstrap
from tracecal.errors import InputError

RESAMPLES, LEVEL = 1000, 0.95


@dataclass(frozen=True)
class Agreement:
    """Over the `n` answers that both judged: the share with equal verdicts and Cohen's kappa, each
    with its interval; null where it is undefined. `left_out` were judged by one of them or by none;
    `apart` are the answers on which they disagree, `example_id` and both verdicts.
    """

    n: int
    share: tuple[float, float | None, float | None]
    kappa: tuple[float | None, float | None, float | None]
    left_out: int
    apart: pl.DataFrame


def agreement(first: pl.DataFrame, second: pl.DataFrame, seed: int) -> Agreement:
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
    drawn = bootstrap.draw_counts(judged["group"].to_list(), seed, RESAMPLES)
    counts = np.vstack([np.ones(judged.height), drawn])
    share, kappa = _measured(a, b, counts)
    return Agreement(
        judged.height,
        (float(share[0]), *bootstrap.interval(share[1:], LEVEL)[:2]),
        (_defined(kappa[0]), *bootstrap.interval(kappa[1:], LEVEL)[:2]),
        both.height - judged.height,
        judged.filter(pl.col("correct") != pl.col("correct_second")).drop("group"),
    )


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


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def told(found: Agreement) -> str:
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


def _interval(values: tuple[float | None, float | None, float | None], form: str) -> str:
    value, low, high = values
    if value is None:
        return "undefined: both gave one verdict to all"
    if low is None or high is None:
        return f"{value:{form}}"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"
