"""The agreement of people's labels of the same answers: share of equal verdicts and kappa."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from tracecal.answers.answers import Source, answers_in
from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.answers.votes import read_votes
from tracecal.errors import InputError
from tracecal.fits.fit_settings import SEED
from tracecal.statistics import resampling
from tracecal.statistics.percentages import percent

RESAMPLES, CONFIDENCE_LEVEL = 1000, 0.95
# Pseudo-questions for each pair of verdicts. Without them an interval of two people who agree on
# all answers would run from 100 % to 100 %.
PSEUDO_COUNT = 0.5
# A value and the ends of its interval; None where it is undefined.
Interval = tuple[float, float, float] | tuple[None, None, None]


@dataclass(frozen=True)
class Agreement:
    """The agreement of people on the `n` answers that two or more judged.

    Attributes
    ----------
    n : int
        Answers with verdicts by two people or more.
    share, kappa : tuple of float
        The share of equal verdicts and Cohen's kappa, over all pairs of people (Conger 1980), each
        with the ends of its interval; None where undefined.
    n_unpaired : int
        Answers with a verdict by one person or by none.
    disagreements : polars.DataFrame
        `example_id` and both verdicts of the answers with different verdicts; of a table of
        several people also who gave them.
    """

    n: int
    share: Interval
    kappa: Interval
    n_unpaired: int
    disagreements: pl.DataFrame

    def __str__(self) -> str:
        has_names = "who" in self.disagreements.columns
        judges = "two or more" if has_names else "both"
        lines = [
            f"{self.n} answers judged by {judges} ({self.n_unpaired} others by one or none)",
            f"equal verdicts: {_format_interval(self.share, lambda share: percent(share, 1))}",
            f"Cohen's kappa: {_format_interval(self.kappa, '{:.3f}'.format)}",
        ]
        for row in self.disagreements.rows(named=True):
            by = (f" by {row['who']}", f" by {row['who_second']}") if has_names else ("", "")
            verdicts = ("right" if row[name] else "wrong" for name in ("correct", "correct_second"))
            judged = ", ".join(map("".join, zip(verdicts, by, strict=True)))
            lines.append(f"  {row['example_id']}: {judged}")
        return "\n".join(lines)


def agree(
    answers: Source,
    second: Source | None = None,
    *,
    seed: int = SEED,
    reading: Reading | None = None,
) -> Agreement:
    """Compare people's labels of the same answers.

    They are in two files, or in one table of several people's verdicts: --who names its column of
    people.

    Parameters
    ----------
    answers : path, frame or rows
        Answers with the first person's labels (``correct``), in any format that `read_answers`
        reads; or the path of a table of verdicts.
    second : path, frame or rows, optional
        The same answers, matched by id, with the second person's labels.
    seed : int
        Seed of the resampled questions, for the intervals.
    reading : Reading, optional
        How to read both.

    Returns
    -------
    Agreement
        The share of equal verdicts and Cohen's kappa with their intervals, and the answers on which
        people disagree. Its text is what ``tracecal agree`` prints.

    Raises
    ------
    InputError
        If no answer has labels by two people.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.agree("labelled.jsonl", "labelled.jsonl").share[0]
    1.0
    """
    reading = reading or USUAL_READING
    if second is not None:
        frames = [answers_in(file, reading).frame for file in (answers, second)]
        return measure_agreement(frames[0], frames[1], seed)
    if reading.who is None or not isinstance(answers, str | Path):
        raise InputError(
            "only one person's labels are given: give a second file, or a table of several "
            "people's verdicts with the name of the column that says who judged (--who COLUMN)."
        )
    votes = read_votes(answers, reading).votes
    verdicts = pl.DataFrame(
        {
            "example_id": [vote.example_id for vote in votes],
            "correct": [vote.correct is True for vote in votes],
            "group": [vote.example_id for vote in votes],
            "who": [vote.who for vote in votes],
        }
    )
    return _agreement(verdicts.unique(["example_id", "who"], keep="last"), seed)


def measure_agreement(first: pl.DataFrame, second: pl.DataFrame, seed: int) -> Agreement:
    """Compare the labels of two frames (columns of `RECORDS`), joined by id.

    Intervals resample questions. Raises `InputError` where no answer has a label in both.
    """
    group = pl.coalesce("group_id", "prompt", "example_id").alias("group")
    frames = [
        frame.select("example_id", "correct", group, who=pl.lit(person))
        for person, frame in enumerate((first, second))
    ]
    agreement = _agreement(pl.concat(frames), seed)
    return replace(agreement, disagreements=agreement.disagreements.drop("who", "who_second"))


def _agreement(verdicts: pl.DataFrame, seed: int) -> Agreement:
    """The agreement of all pairs of people: `example_id`, `correct`, `group` and `who` in a row."""
    judged = verdicts.drop_nulls("correct")
    pairs = judged.join(judged.drop("group"), on="example_id", suffix="_second")
    pairs = pairs.filter(pl.col("who") < pl.col("who_second"))
    pairs = pairs.sort("example_id", "who", "who_second")
    if not pairs.height:
        raise InputError("no answer has a verdict in both files, or by two people.")
    a, b = pairs["correct"].to_numpy(), pairs["correct_second"].to_numpy()
    people = pairs.select(pl.struct("who", "who_second").rank("dense")).to_series().to_numpy() - 1
    observed = _share_and_kappa(a, b, people, np.ones((1, pairs.height)))
    share, kappa = _intervals(observed, _resampled(a, b, people, pairs["group"], seed))
    n = pairs["example_id"].n_unique()
    columns = ["example_id", "correct", "correct_second", "who", "who_second"]
    return Agreement(
        n,
        share,
        kappa,
        verdicts["example_id"].n_unique() - n,
        pairs.filter(pl.col("correct") != pl.col("correct_second")).select(columns),
    )


def _resampled(
    a: np.ndarray, b: np.ndarray, people: np.ndarray, group: pl.Series, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """`_share_and_kappa` of resampled questions, with the pseudo-questions among them."""
    n_pairs = people.max() + 1
    pseudo_a, pseudo_b = [False, False, True, True], [False, True, False, True]
    counts = resampling.draw_counts(group.to_list(), seed, RESAMPLES)
    pseudo_groups = [f"unseen {number}" for number in range(4)]
    pseudo_counts = resampling.draw_counts(pseudo_groups, seed, RESAMPLES)
    weight = PSEUDO_COUNT * len(group) / group.n_unique() / n_pairs
    counts = np.hstack([counts, np.tile(weight * pseudo_counts, n_pairs)])
    return _share_and_kappa(
        np.append(a, pseudo_a * n_pairs),
        np.append(b, pseudo_b * n_pairs),
        np.append(people, np.repeat(np.arange(n_pairs), 4)),
        counts,
    )


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
    a: np.ndarray, b: np.ndarray, people: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The share of equal verdicts and kappa by `counts` [resamples, n]; NaN if undefined.

    Kappa is (share - chance) / (1 - chance), where chance is the agreement of two people who give
    the same shares of verdicts independently (Cohen 1960), for each of the pairs in `people`.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        total = counts.sum(axis=1)
        share = counts @ (a == b) / total
        chance = np.zeros(len(counts))
        for pair in np.unique(people):
            of_pair = counts[:, people == pair]
            n = of_pair.sum(axis=1)
            right_a, right_b = of_pair @ a[people == pair], of_pair @ b[people == pair]
            equal = right_a * right_b + (n - right_a) * (n - right_b)
            chance += np.where(n > 0, equal / n, 0) / total
        kappa = np.where(chance < 1, (share - chance) / (1 - chance), np.nan)
    return share, kappa


def _format_interval(interval: Interval, form: Callable[[float], str]) -> str:
    ends = [form(number) for number in interval if number is not None]
    return "{} [{}, {}]".format(*ends) if ends else "undefined: all verdicts are equal"
