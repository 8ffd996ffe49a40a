"""Which label a guaranteed error rate needs next, and whether the guarantee stands."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibration.bets import significance_level
from tracecal.calibration.groups import group_answers
from tracecal.errors import InputError
from tracecal.io.digests import hash_of
from tracecal.io.randomness import seeded
from tracecal.labelling.sequential import (
    NoMoreLabels,
    Population,
    draw_test_order,
    search_threshold,
)


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
            group = group_answers(answers)["group_id"].rank("dense").to_numpy().astype(int) - 1
            most = wanted.largest_group or int(np.bincount(group).max())
        order = draw_test_order(group, wanted.population, most, seeded(wanted.seed, "pick"))
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

        level = significance_level(self._wanted.confidence)
        found = search_threshold(
            self._tested, wrong, self._wanted.error_rate, level, self._wanted.population
        )
        kept = np.inf if found.threshold is None else found.threshold
        return self.settings | {
            "threshold": found.threshold,
            "coverage": float((self._score >= kept).mean()),
            "tested": found.tested,
            "ended": found.ended,
            "labels": len(looked_at),
            "next": needed[0] if needed else None,
        }
