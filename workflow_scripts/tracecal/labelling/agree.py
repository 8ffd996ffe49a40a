"""The agreement of two people's labels of the same answers: share of equal verdicts and kappa."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from tracecal.answers.answers import Source, answers_in
from tracecal.answers.reading import Reading
from tracecal.calibration import resampling
from tracecal.calibration.settings import SEED
from tracecal.errors import InputError

RESAMPLES, CONFIDENCE_LEVEL = 1000, 0.95
# Pseudo-questions for each pair of verdicts. Without them an interval of two people who agree on
# all answers would run from 100 % to 100 %.
PSEUDO_COUNT = 0.5
# A value and the ends of its interval; None where it is undefined.
Interval = tuple[float, float, float] | tuple[None, None, None]


@dataclass(frozen=True)
class Agreement:
    """The agreement of two people on the `n` answers that both judged.

    Attributes
    ----------
    n : int
        Answers with a verdict by both.
    share, kappa : tuple of float
        The share of equal verdicts and Cohen's kappa, each with the ends of its interval; None
        where undefined.
    n_unpaired : int
        Answers with a verdict by one person or by none.
    disagreements : polars.DataFrame
        `example_id` and both verdicts of the answers with different verdicts.
    """

    n: int
    share: Interval
    kappa: Interval
    n_unpaired: int
    disagreements: pl.DataFrame

    def __str__(self) -> str:
        return format_agreement(self)


def agree(
    answers: Source, second: Source, *, seed: int = SEED, reading: Reading | None = None
) -> Agreement:
    """Compare two people's labels of the same answers.

    Parameters
    ----------
    answers : path, frame or rows
        Answers with the first person's labels (``correct``), in any format that `read_answers`
        reads.
    second : path, frame or rows
        The same answers, matched by id, with the second person's labels.
    seed : int
        Seed of the resampled questions, for the intervals.
    reading : Reading, optional
        How to read both.

    Returns
    -------
    Agreement
        The share of equal verdicts and Cohen's kappa with their intervals, and the answers on which
        the two disagree. Its text is what ``tracecal agree`` prints.

    Raises
    ------
    InputError
        If no answer has a label by both.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.agree("labelled.jsonl", "labelled.jsonl").share[0]
    1.0
    """
    first_frame, second_frame = (answers_in(file, reading).frame for file in (answers, second))
    return measure_agreement(first_frame, second_frame, seed)


def measure_agreement(first: pl.DataFrame, second: pl.DataFrame, seed: int) -> Agreement:
    """Compare the labels of two frames (columns of `RECORDS`), joined by id.

    Intervals resample questions. Raises `InputError` where no answer has a label in both.
    """
    columns = ["example_id", "correct"]
    group = pl.coalesce("group_id", "prompt", "example_id").alias("group")
    pairs = first.select(*columns, group).join(
        second.select(columns), on="example_id", suffix="_second", how="full", coalesce=True
    )
    judged = pairs.drop_nulls(["correct", "correct_second"]).sort("example_id")
    if not judged.height:
        raise InputError("no answer has a verdict in both files: their ids or labels differ.")
    a, b = judged["correct"].to_numpy(), judged["correct_second"].to_numpy()
    observed = _share_and_kappa(a, b, np.ones((1, judged.height)))
    share, kappa = _intervals(observed, _resampled(a, b, judged["group"], seed))
    return Agreement(
        judged.height,
        share,
        kappa,
        pairs.height - judged.height,
        judged.filter(pl.col("correct") != pl.col("correct_second")).drop("group"),
    )


def _resampled(
    a: np.ndarray, b: np.ndarray, group: pl.Series, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`_share_and_kappa` of resampled questions, with the pseudo-questions among them."""
    pseudo_a, pseudo_b = [False, False, True, True], [False, True, False, True]
    counts = resampling.draw_counts(group.to_list(), seed, RESAMPLES)
    pseudo_groups = [f"unseen {number}" for number in range(4)]
    pseudo_counts = resampling.draw_counts(pseudo_groups, seed, RESAMPLES)
    weight = PSEUDO_COUNT * len(group) / group.n_unique()
    counts = np.hstack([counts, weight * pseudo_counts])
    return _share_and_kappa(np.append(a, pseudo_a), np.append(b, pseudo_b), counts)


def _intervals(
    observed: tuple[np.ndarray, np.ndarray], resampled: tuple[np.ndarray, np.ndarray]
) -> Iterator[Interval]:
    """Each observed value with the ends of its interval, widened to contain it."""
    for (value,), resamples in zip(observed, resampled, strict=True):
        low, high, _ = resampling.interval(resamples, CONFIDENCE_LEVEL)
        if np.isnan(value):
            yield None, None, None
        else:
            yield float(value), float(min(low, value)), float(max(high, value))


def _share_and_kappa(
    a: np.ndarray, b: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The share of equal verdicts and kappa by `counts` [resamples, n]; NaN if undefined.

    Kappa is (share - chance) / (1 - chance), where chance is the agreement of two people who give
    the same shares of verdicts independently (Cohen 1960).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        total = counts.sum(axis=1)
        share = counts @ (a == b) / total
        right_a, right_b = counts @ a / total, counts @ b / total
        chance = right_a * right_b + (1 - right_a) * (1 - right_b)
        kappa = np.where(chance < 1, (share - chance) / (1 - chance), np.nan)
    return share, kappa


def format_agreement(agreement: Agreement) -> str:
    """Format the agreement and the disagreements as lines of text."""
    lines = [
        f"{agreement.n} answers judged by both ({agreement.n_unpaired} others by one or none)",
        f"equal verdicts: {_format_interval(agreement.share, '.1%')}",
        f"Cohen's kappa: {_format_interval(agreement.kappa, '.3f')}",
    ]
    words = {True: "right", False: "wrong"}
    lines += [
        f"  {example_id}: {words[first]}, {words[second]}"
        for example_id, first, second in agreement.disagreements.iter_rows()
    ]
    return "\n".join(lines)


def _format_interval(interval: Interval, form: str) -> str:
    value, low, high = interval
    if value is None:
        return "undefined: both gave one verdict to all"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"
