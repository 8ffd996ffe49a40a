"""Which label a promised error rate needs next, and whether the promise stands."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.calibrate.asking import NoMoreLabels, Pool, Population, Promise, promise
from tracecal.calibrate.evidence import error_level
from tracecal.errors import InputError
from tracecal.toolkit.pick import random_order
from tracecal.toolkit.verdicts import Verdict

# Whose scores decide where no estimator is named, the first that the answers have.
PREFERRED = ("trace_plus", "trace", "len_norm_logp")
WHOM = {"finite": "of this file's answers", "further": "of answers like this file's"}


def scores(data: Mapping[str, Any], estimator: str | None) -> tuple[str, list[float | None]]:
    """The estimator that decides, and each answer's probability by it, or score without one.

    `data` are those of `shown.page_data`. Raises `InputError` where the answers lack it.
    """
    columns = data["answers"]
    for name in [estimator] if estimator else PREFERRED:
        for kind in ("probability", "score"):
            values = columns[kind].get(name, [])
            if any(value is not None for value in values):
                return name, values
    known = ", ".join(columns["score"]) or "none"
    raise InputError(
        f"the answers have no score of {estimator or ' or '.join(PREFERRED)}; there is {known}: "
        "choose one with --estimator, or give answers with log-probabilities."
    )


class Asking:
    """Asks for the labels of `calibrate.asking`; a verdict that is unsure counts as wrong."""

    def __init__(
        self,
        answers: pl.DataFrame,
        scores: Sequence[float | None],
        error_rate: float,
        confidence: float,
        population: Population,
        seed: int,
    ) -> None:
        """For answers (columns of `RECORDS`) with `scores`. Raises `InputError` where a rate is not
        between 0 and 1.
        """
        for name, value in (("--error-rate", error_rate), ("--confidence", confidence)):
            if not 0 < value < 1:
                raise InputError(f"{name} {value:g}: expected a number between 0 and 1.")
        self._rate, self._confidence, self._population = error_rate, confidence, population
        own = pl.DataFrame(
            {"example_id": answers["example_id"], "score": pl.Series(scores, dtype=pl.Float64)}
        )
        ordered = random_order(answers, seed).join(own, on="example_id", maintain_order="left")
        self._ids = ordered["example_id"].to_list()
        score = ordered["score"].fill_null(-np.inf).to_numpy()
        self._pool = Pool(ordered["place"].to_numpy(), score)

    def found(self, given: Mapping[str, Verdict]) -> tuple[Promise, str | None]:
        """What stands by the verdicts so far, and the answer whose label is needed next."""
        needed: list[str] = []

        def wrong(answer: int) -> bool:
            example = self._ids[answer]
            if example not in given:
                needed.append(example)
                raise NoMoreLabels
            return given[example].correct is not True

        level = error_level(self._confidence)
        stands = promise(self._pool, wrong, self._rate, level, self._population)
        return stands, needed[0] if needed else None

    def ask(self, given: Mapping[str, Verdict]) -> tuple[str | None, str]:
        """The answer to label next, null where the search has ended, and how it stands."""
        stands, example = self.found(given)
        promised = "nothing is promised"
        if stands.threshold is not None:
            promised = (
                f"promised: at most {self._rate:.0%} are incorrect among the {stands.coverage:.1%} "
                f"{WHOM[self._population]} from {stands.threshold:.4g} on "
                f"({self._confidence:.0%} confidence)"
            )
        if example is not None:
            more = f"now tested: from {stands.tested:.4g} on"
        elif stands.ended == "failed":
            more = f"from {stands.tested:.4g} on too many are incorrect"
        else:
            more = "no threshold is left to test"
        return example, f"{len(given)} labelled; {promised}; {more}"

    def stored(self, given: Mapping[str, Verdict], estimator: str) -> dict[str, Any]:
        """The promise as plain JSON."""
        stands, _ = self.found(given)
        return {
            "estimator": estimator,
            "threshold": stands.threshold,
            "coverage": stands.coverage,
            "error_rate": self._rate,
            "confidence": self._confidence,
            "population": self._population,
            "labels": len(given),
            "ended": stands.ended,
        }
