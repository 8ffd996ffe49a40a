"""The search for a guaranteed error rate with as few labels as possible.

1. Make a `LabelSearch` of answers and a target error rate.
2. Label the answer that its state names as ``next``, until there is none.
3. The last state holds the ``threshold``: of the answers from it on, at most the target error rate
   are wrong, with the stated confidence.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.answers import Source
from tracecal.answers.groups import group_answers
from tracecal.answers.reading import Reading
from tracecal.calibrator.calibrator import Calibrator
from tracecal.errors import InputError
from tracecal.explorer.page_answers import PageAnswers, load_page_answers
from tracecal.fits.fit_settings import SEED, stated_shares
from tracecal.guarantees import sequential
from tracecal.guarantees.line import significance_level
from tracecal.io.digests import hash_of
from tracecal.io.files import read_json, write_json
from tracecal.io.randomness import seeded
from tracecal.statistics.percentages import confidence_text, percent, rate_text

# Where no estimator is named or recommended, the first of these that the answers have decides.
PREFERRED = ("trace_plus", "trace", "len_norm_logp")
# The record before the first search.
NO_SEARCH: Mapping[str, Any] = {"labels": 0, "joint_confidence": 1.0, "tried": ()}


class LabelSearch:
    """Ask only for the labels that a guaranteed error rate needs.

    Of the answers whose score reaches a threshold at most `error_rate` are wrong, with
    `confidence`. The search finds the threshold that keeps most answers. The labelled answers are
    no random sample: do not calibrate on them.

    Parameters
    ----------
    answers : path, frame or rows
        Answers in any format that `read_answers` reads; their labels are ignored.
    error_rate : float
        Largest share of wrong answers among those kept.
    calibrator : path or Calibrator, optional
        Calibrator whose probabilities replace the scores.
    estimator : str, optional
        Estimator that decides; by default the recommended one, or TRACE+.
    confidence : float
        Confidence of the guarantee.
    population : {"finite", "further"}
        Guarantee for the answers of the file, or for further ones like them, of which each question
        counts once.
    seed : int
        Seed of the order of asking.
    task : str, optional
        Task of the answers; by default as their file states it.
    parts : path or mapping, optional
        Parts to judge by themselves, as in `Calibrator.score`.
    record_file : path, optional
        JSON file for the state, written before it is returned. It lists all searches on the same
        labels: give it where you try several seeds, rates or scores, as the best of several
        guarantees is less certain than each.
    reading : Reading, optional
        How to read the answers.

    Raises
    ------
    InputError
        If a setting is out of range, or the answers lack the score.

    Examples
    --------
    >>> import tracecal
    >>> answers = tracecal.read_answers("labelled.jsonl")
    >>> truth = dict(answers.select("example_id", "correct").iter_rows())
    >>> search, labels = tracecal.LabelSearch(answers, 0.5, calibrator="C.json"), {}
    >>> while (example_id := search.state(labels)["next"]) is not None:
    ...     labels[example_id] = truth[example_id]
    >>> len(labels) <= 120
    True
    """

    def __init__(
        self,
        answers: Source | PageAnswers,
        error_rate: float,
        *,
        calibrator: str | Path | Calibrator | None = None,
        estimator: str | None = None,
        confidence: float = 0.9,
        population: sequential.PopulationKind = "finite",
        seed: int = SEED,
        task: str | None = None,
        parts: str | Path | Mapping[str, Any] | None = None,
        record_file: str | Path | None = None,
        reading: Reading | None = None,
    ) -> None:
        stated_shares("--error-rate", [error_rate])
        stated_shares("--confidence", [confidence])
        page = load_page_answers(answers, calibrator, task, parts, reading)
        recommended = None if page.fitted_on is None else page.fitted_on.estimator
        estimator, scores = deciding_scores(page.data, estimator, recommended)
        by_id = page.judged.with_columns(score=pl.Series(scores, dtype=pl.Float64))
        by_id = by_id.sort("example_id")
        ids, score = by_id["example_id"].to_list(), by_id["score"].fill_null(-np.inf).to_numpy()
        group = np.arange(len(ids))
        if population == "further":
            group = group_answers(page.judged)["group_id"].rank("dense").to_numpy().astype(int) - 1
        order = sequential.draw_test_order(group, seeded(seed, "pick"))
        self._target = error_rate, significance_level(confidence), population
        self._score = score
        self._test_ids, self._test_scores = [ids[index] for index in order], score[order]
        self.settings = {
            "estimator": estimator,
            "error_rate": error_rate,
            "confidence": confidence,
            "population": population,
            "seed": seed,
            "scores": hash_of(json.dumps([ids, score.tolist()])),
        }
        self._file = None if record_file is None else Path(record_file)
        self._history = earlier_searches(self._file, self.settings) if self._file else {}

    def state(self, labels: Mapping[str, bool | None]) -> dict[str, Any]:
        """Say how the search stands.

        Parameters
        ----------
        labels : mapping of str to bool or None
            Whether answers are correct, by id; None counts as wrong. Labels that the search does
            not need are ignored.

        Returns
        -------
        dict
            The content of ``.promise.json``: the guaranteed ``threshold`` (None: none), the share
            of answers that it keeps (``coverage``), how many ``labels`` were used, and which answer
            to label ``next`` (None: the search has ended).

        Examples
        --------
        >>> import tracecal
        >>> search = tracecal.LabelSearch("labelled.jsonl", 0.5, calibrator="C.json")
        >>> search.state({})["labels"]
        0
        """
        used_ids: set[str] = set()
        missing: list[str] = []

        def is_wrong(index: int) -> bool:
            example_id = self._test_ids[index]
            if example_id not in labels:
                missing.append(example_id)
                raise sequential.NoMoreLabels
            used_ids.add(example_id)
            return labels[example_id] is not True

        result = sequential.search_threshold(self._test_scores, is_wrong, *self._target)
        threshold = np.inf if result.threshold is None else result.threshold
        state = self.settings | {
            "threshold": result.threshold,
            "coverage": float((self._score >= threshold).mean()),
            "tested": result.tested,
            "ended": result.ended,
            "labels": len(used_ids),
            "next": missing[0] if missing else None,
            **self._history,
        }
        if self._file is not None:
            write_json(state, self._file)
        return state


def deciding_scores(
    data: Mapping[str, Any], estimator: str | None, recommended: str | None = None
) -> tuple[str, list[float | None]]:
    """The estimator that decides, and its probability of each answer, or score without one.

    `data` are those of `PageAnswers.page_data`, `recommended` is the calibrator's own estimator.
    Raises `InputError` where the answers lack it.
    """
    columns = data["answers"]
    preferred = (recommended, *PREFERRED) if recommended else PREFERRED
    for name in [estimator] if estimator else preferred:
        for kind in ("probability", "score"):
            values = columns[kind].get(name, [])
            if any(value is not None for value in values):
                return name, values
    available = ", ".join(columns["score"]) or "none"
    raise InputError(
        f"the answers have no score of {estimator or ' or '.join(PREFERRED)}; there is "
        f"{available}: choose one with --estimator, or give answers with log-probabilities."
    )


def earlier_searches(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The earlier searches in a record that have used labels (`tried`) with other `settings`.

    The best of several guarantees is less certain than each, so `joint_confidence` is that with
    which all of them hold at once. Raises `InputError` where `path` is another file.
    """
    try:
        last = read_json(path) if path.exists() else {**NO_SEARCH}
        searches = [*last.pop("tried"), last]
        del last["joint_confidence"]
        earlier = [
            search
            for search in searches
            if search["labels"] and any(search[name] != settings[name] for name in settings)
        ]
        doubt = 1 - settings["confidence"] + sum(1 - search["confidence"] for search in earlier)
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a record as this 'tracecal label' writes it: move it away, or name "
            "another --output."
        ) from error
    return {"joint_confidence": round(max(0.0, 1 - doubt), 12), "tried": earlier}


def describe_record(record: Mapping[str, Any]) -> str:
    """Say in a sentence how a search stands, from its record."""
    clauses, answers = ["nothing is guaranteed"], "this file's answers"
    if record["population"] != "finite":
        answers = "further answers like this file's (each question counts once)"
    if record["threshold"] is not None:
        clauses = [
            f"guaranteed: at most {rate_text(record['error_rate'])} are wrong among the "
            f"{percent(record['coverage'], 1)} of {answers} that score {record['threshold']:.4g} "
            f"or more {confidence_text(record['confidence'])}"
        ]
    if earlier := record.get("tried"):
        clauses.append(
            f"search {len(earlier) + 1} on these labels: the guarantees of all hold together with "
            f"at least {percent(record['joint_confidence'], 1)} confidence"
        )
    if record["next"] is not None:
        clauses.append(f"now tested: from {record['tested']:.4g} on")
    elif record["ended"] == "failed":
        clauses.append(f"from {record['tested']:.4g} on too many are wrong")
    else:
        clauses.append("no threshold is left to test")
    return "; ".join(clauses)
