"""Which answers to label, their groups, labels that decide, and how far two people's agree."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tracecal.answers.read import OF_TRACES
from tracecal.calibration import resampling
from tracecal.calibration.guarantees import error_level, sufficing
from tracecal.errors import InputError
from tracecal.io.checksums import hash_of
from tracecal.io.files import read_json, write_json
from tracecal.io.randomness import seeded

# A trace of fewer different numbers may equal another question's by chance.
TELLING = 3
TRACE = ("answer", "surprisal", "entropy")


def grouped(answers: pl.DataFrame) -> pl.DataFrame:
    """`example_id` and `group_id` of answers (columns of `RECORDS`).

    Answers with equal group ids, prompts or traces are of one group, whose id is that of its first
    answer by id. Raises `InputError` where equal answers to one question differ in `correct`.
    """
    keyed = answers.sort("example_id").with_columns(trace=_trace_keys(answers.sort("example_id")))
    for same in (["prompt", "answer"], ["trace"]):
        _require_agreement(keyed.drop_nulls(same), same)
    n = keyed.height
    edges = [np.empty((2, 0), dtype=np.int64)]
    for column in ("group_id", "prompt", "trace"):
        known = keyed.select(column, place=pl.int_range(n)).drop_nulls(column)
        first = known.select(first=pl.col("place").min().over(column), place="place")
        edges.append(first.to_numpy().T)
    first, second = np.concatenate(edges, axis=1)
    linked = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
    component = pl.Series(connected_components(linked, directed=False)[1])
    return keyed.select("example_id", group_id=pl.col("example_id").min().over(component))


def _trace_keys(answers: pl.DataFrame) -> pl.Series:
    """A text that is equal for equal traces; null where these may be equal by chance."""
    numbers = pl.concat_list("surprisal", pl.col("entropy").fill_null([])).list.n_unique()
    key = pl.struct(TRACE).struct.json_encode()
    telling = pl.col("surprisal").is_not_null() & (numbers >= TELLING)
    return answers.select(pl.when(telling).then(key)).to_series()


def _require_agreement(answers: pl.DataFrame, same: list[str]) -> None:
    split = answers.filter(pl.col("correct").n_unique().over(same) > 1).sort(*same, "example_id")
    if split.height:
        first = split.filter(pl.struct(same) == pl.struct(same).first())
        right, wrong = (first.filter(correct=value)["example_id"][0] for value in (True, False))
        raise InputError(
            f"the same answer to the same question is labelled correct in {right!r} and incorrect "
            f"in {wrong!r}: correct the labels, or leave both rows out."
        )


# Which answers to label: drawn at random, groups whole, in an order that may be cut anywhere.


def random_order(answers: pl.DataFrame, seed: int) -> pl.DataFrame:
    """`example_id` and `place` of answers (columns of `RECORDS`), in a seeded order of groups.

    `place` counts the groups from 0; those of the first k places are a simple random sample of k
    groups, for every k. Groups are those of `grouped`, their answers are in the order of their ids,
    and the order of `answers` does not matter.
    """
    groups = grouped(answers)
    names = groups["group_id"].unique().sort()
    place = np.argsort(seeded(seed, "pick").permutation(len(names)))
    return groups.select(
        "example_id", place=pl.col("group_id").replace_strict(names, place, return_dtype=pl.Int64)
    ).sort("place", "example_id")


def picked(answers: pl.DataFrame, number: int, seed: int) -> list[str]:
    """The ids of the answers in the first groups of `random_order` that hold `number` of them, in
    that order.

    Raises `InputError` where there are fewer answers than `number`.
    """
    if not 1 <= number <= answers.height:
        raise InputError(
            f"--number {number}: the file holds {answers.height} answers; ask for 1 to "
            f"{answers.height}."
        )
    order = random_order(answers, seed)
    last = order["place"][number - 1]
    return order.filter(pl.col("place") <= last)["example_id"].to_list()


def with_metadata(row: Mapping[str, Any], metadata: Mapping[str, str]) -> dict[str, Any]:
    """A row with what its file says of all its rows, as traces do, so that it can stand alone."""
    if not metadata.get("schema_version"):
        return dict(row)
    stated = OF_TRACES | ({"model": metadata["model"]} if metadata.get("model") else {})
    return {**stated, **{name: value for name, value in row.items() if value is not None}}


def as_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as JSON Lines. Raises `InputError` where a value has no JSON."""
    try:
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    except TypeError as error:
        raise InputError(
            f"a row cannot be written as JSON ({error}): leave that column out of the file."
        ) from error


# How far two people's labels of the same answers agree.


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


# A guaranteed error rate from labels that are asked for one after the other, where they decide.


Population = Literal["finite", "further"]
START, STEP, ENOUGH = 0.08, 0.04, 1.5
GUESS, PRIOR = 0.4, 20.0
# The share of answers set aside for thresholds.
ASIDE = 0.1


@dataclass(frozen=True)
class Found:
    """The last threshold that passed, null where none did.

    `ended` is why no further threshold passed, `tested` the last one that was tested.
    """

    threshold: float | None
    tested: float | None
    ended: Literal["passed", "failed", "labels"]


class NoMoreLabels(Exception):
    """A label is needed and cannot be had."""


def order_of_tests(
    group: np.ndarray, population: Population, most: int, rng: np.random.Generator
) -> np.ndarray:
    """The places of the answers to test, in random order.

    `group` [answers] numbers their groups from 0, of which one counts with at most `most` answers.
    """
    if population == "finite":
        return rng.permutation(len(group))
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    enters = rng.random(len(sizes)) * most < sizes
    by_group = np.argsort(group, kind="stable")
    one_each = by_group[np.cumsum(sizes) - sizes + rng.integers(sizes)]
    return one_each[order[enters[order]]]


def search(
    score: np.ndarray,
    wrong: Callable[[int], bool],
    error_rate: float,
    level: float,
    population: Population,
) -> Found:
    """The most inclusive threshold that passes.

    `score` [answers] is in the order of `order_of_tests`; minus infinity stands for none. `wrong`
    says whether the answer at a place of it is wrong. It is called for those that a test needs, in
    the order in which it needs them, and may raise `NoMoreLabels`.
    """
    aside, start, known = 0, START, score
    if population == "further":
        aside = math.ceil(ASIDE * len(score))
        tested = max(len(score) - aside, 1)
        start, known = max(START, ENOUGH * sufficing(error_rate, level) / tested), score[:aside]
    passed = at = None
    for at in _thresholds(known, start):
        kept = np.flatnonzero(score[aside:] >= at) + aside
        try:
            passes = _passes(kept, wrong, error_rate, level, population)
        except NoMoreLabels:
            return Found(passed, at, "labels")
        if not passes:
            return Found(passed, at, "failed")
        passed = at
    return Found(passed, at, "passed")


def _thresholds(scores: np.ndarray, start: float) -> list[float]:
    """Quantiles of the scores, falling, that keep shares of `start`, `start` + STEP and so on to 1.

    No threshold keeps an answer without a score.
    """
    ranked = np.sort(scores)[::-1]
    # The last step may round to a little more than 1.
    shares = np.append(np.arange(start, 1.0, STEP), 1.0).clip(max=1)
    found = ranked[np.ceil(shares * len(ranked)).astype(int) - 1] if len(ranked) else ranked
    return np.unique(found[np.isfinite(found)])[::-1].tolist()


def _passes(
    kept: np.ndarray,
    wrong: Callable[[int], bool],
    rate: float,
    level: float,
    population: Population,
) -> bool:
    """Whether wealth reaches 1 / level, or it is known that the rate is kept."""
    n, errors, wealth = len(kept), 0, 1.0
    for k, answer in enumerate(kept):
        m = (n * rate - errors) / (n - k) if population == "finite" else rate
        if m >= 1:
            return True  # were all others wrong, it would be kept
        if m <= 0:
            return False  # the errors known are too many already
        guess = (PRIOR * GUESS * rate + errors) / (PRIOR + k)
        bet = min(max(m - guess, 0.0) / (m * (1 - m)), 1 / (1 - m))
        found = bool(wrong(int(answer)))
        wealth *= 1 - bet * (found - m)
        errors += found
        if wealth >= 1 / level:
            return True
    return population == "finite" and n > 0 and errors <= n * rate


# Which label a guaranteed error rate needs next, and whether the guarantee stands.


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is correct; null where the one who labels it is unsure."""

    correct: bool | None
    note: str = ""


@dataclass(frozen=True)
class Wanted:
    """A guarantee to look for: at most `error_rate` of the answers kept by `estimator` are wrong.

    `largest_group` is how many answers of a question count at most, among 'further' answers; null:
    as many as the largest of the file has. Raises `InputError` for settings out of range.
    """

    estimator: str
    error_rate: float
    confidence: float
    population: Population
    largest_group: int | None
    seed: int

    def __post_init__(self) -> None:
        for name, value in (
            ("--error-rate", self.error_rate),
            ("--confidence", self.confidence),
        ):
            if not 0 < value < 1:
                raise InputError(f"{name} {value:g}: expected a number between 0 and 1.")
        if self.largest_group is not None and self.population == "finite":
            raise InputError(
                "--largest-group is for --population further: how the answers of this file are "
                "grouped does not matter to a guarantee about them."
            )
        if self.largest_group is not None and self.largest_group < 1:
            raise InputError(f"--largest-group {self.largest_group}: expected 1 or more.")


class LabelQuery:
    """Asks for the labels of `search`; a verdict that is unsure counts as wrong."""

    def __init__(
        self, answers: pl.DataFrame, scores: Sequence[float | None], wanted: Wanted
    ) -> None:
        """For answers (columns of `RECORDS`) with `scores`."""
        scored = answers.with_columns(score=pl.Series(scores, dtype=pl.Float64)).sort("example_id")
        group, most = np.zeros(scored.height, dtype=int), None
        if wanted.population == "further":
            group = grouped(answers)["group_id"].rank("dense").to_numpy().astype(int) - 1
            most = wanted.largest_group or int(np.bincount(group).max())
        order = order_of_tests(group, wanted.population, most, seeded(wanted.seed, "pick"))
        self._wanted = wanted
        self._score = scored["score"].fill_null(-np.inf).to_numpy()
        self._ids, self._tested = scored["example_id"][order].to_list(), self._score[order]
        exact = json.dumps([scored["example_id"].to_list(), self._score.tolist()])
        self.settings = asdict(wanted) | {"largest_group": most, "scores": hash_of(exact)}

    def record(self, given: Mapping[str, Verdict]) -> dict[str, Any]:
        """The settings and what stands by the verdicts so far, as plain JSON.

        `labels` is how many of them were looked at, `next` the answer whose label is needed next.
        """
        looked_at: set[str] = set()
        needed: list[str] = []

        def wrong(answer: int) -> bool:
            example = self._ids[answer]
            if example not in given:
                needed.append(example)
                raise NoMoreLabels
            looked_at.add(example)
            return given[example].correct is not True

        level = error_level(self._wanted.confidence)
        found = search(self._tested, wrong, self._wanted.error_rate, level, self._wanted.population)
        kept = np.inf if found.threshold is None else found.threshold
        return self.settings | {
            "threshold": found.threshold,
            "coverage": float((self._score >= kept).mean()),
            "tested": found.tested,
            "ended": found.ended,
            "labels": len(looked_at),
            "next": needed[0] if needed else None,
        }


class Recorded:
    """A query whose record is on disk before it is answered, with all that was tried before.

    The record holds `tried`, the records of other searches that have looked at labels, and
    `joint_confidence`: that this search's guarantee and all of theirs hold.
    """

    def __init__(self, query: LabelQuery, path: Path) -> None:
        """Raises `InputError` where `path` is another's file."""
        self._query, self.path = query, path
        try:
            tried = [one for one in _searches(path) if one["labels"] and not self._is_own(one)]
            doubt = 1 - query.settings["confidence"] + sum(1 - one["confidence"] for one in tried)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} is not a record as this 'tracecal label' writes it: move it away, or name "
                "another --output."
            ) from error
        self._of_all = {"joint_confidence": round(max(0.0, 1 - doubt), 12), "tried": tried}

    def _is_own(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this search, at whatever number of labels."""
        return all(record[name] == value for name, value in self._query.settings.items())

    def record(self, given: Mapping[str, Verdict]) -> dict[str, Any]:
        """What stands by the verdicts so far, with all that was tried; it is on disk."""
        record = self._query.record(given) | self._of_all
        write_json(record, self.path)
        return record

    def ask(self, given: Mapping[str, Verdict]) -> tuple[str | None, str]:
        """The answer to label next, null where the search has ended, and how it stands."""
        record = self.record(given)
        return record["next"], f"{len(given)} labelled; {said(record)}"


def _searches(path: Path) -> list[dict[str, Any]]:
    """The records of all searches that are stored, the first that was tried first."""
    if not path.exists():
        return []
    last = read_json(path)
    earlier = last.pop("tried")
    del last["joint_confidence"]
    return [*earlier, last]


def said(record: Mapping[str, Any]) -> str:
    """How a search stands, by its record."""
    parts = ["nothing is guaranteed"]
    if record["threshold"] is not None:
        parts = [
            f"guaranteed: at most {record['error_rate']:.0%} are incorrect among the "
            f"{record['coverage']:.1%} of {_whom(record)} from {record['threshold']:.4g} on "
            f"({record['confidence']:.0%} confidence)"
        ]
    if record["tried"]:
        parts.append(
            f"search {len(record['tried']) + 1} on these labels: whoever chooses among them has at "
            f"least {record['joint_confidence']:.0%} confidence"
        )
    if record["next"] is not None:
        parts.append(f"now tested: from {record['tested']:.4g} on")
    elif record["ended"] == "failed":
        parts.append(f"from {record['tested']:.4g} on too many are incorrect")
    else:
        parts.append("no threshold is left to test")
    return "; ".join(parts)


def _whom(record: Mapping[str, Any]) -> str:
    if record["population"] == "finite":
        return "this file's answers"
    most = record["largest_group"]
    counts = "" if most == 1 else f", a question counting with at most {most} of them,"
    return f"further answers like this file's{counts}"
