"""Separate files of verdicts, joined to answers by id.

1. `read_labels("labels.csv", reading)` reads whether answers are correct, by their ids: one verdict
   an answer, by the rule of `reading` for those on which people disagree.
2. `with_labels(answers, labels)` replaces the answers' verdicts, and says how many matched.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import polars as pl

from tracecal.answers.reading import USUAL_READING, Reading
from tracecal.answers.votes import Vote, Votes, id_text, read_votes
from tracecal.errors import InputError, some_of
from tracecal.io.log import LOGGER

MOST_ROWS, MOST_DEPTH = 100, 5  # of rows of answers, in which ids are looked for
FEWEST = 3  # people whose majority decides
# What tables change in ids: hyphens, blanks, braces, zeros in front, and ".0" behind numbers.
_CHANGED = re.compile(r"[-_{}\u2010-\u2015\u200b\ufeff\s]|^0+(?=\d)|(?<=\d)\.0+$")


@dataclass(frozen=True)
class Labels:
    """Verdicts by the ids of answers; None where the person is unsure.

    Attributes
    ----------
    votes
        The verdicts as the file holds them, one or several on an answer.
    asked_for
        The ids of the answers whose verdicts 'tracecal label --error-rate' asked for.
    """

    by_id: Mapping[str, bool | None]
    votes: Votes
    asked_for: Set[str] = frozenset()


def read_labels(spec: str | Path | Any, reading: Reading | None = None) -> Labels:
    """Read the verdicts of a file or a frame; rows without one are left out.

    The path may name columns: ``PATH:ID:VERDICT``. Says how many are contested, and what they
    count as. Raises `InputError` where the file holds no verdict, or `read_votes` does.
    """
    reading = reading or USUAL_READING
    votes = read_votes(spec, reading)
    by_id: dict[str, dict[str, Vote]] = {}
    for vote in votes.votes:  # a person's later verdict takes the place of an earlier one
        by_id.setdefault(vote.example_id, {})[vote.who] = vote
    settled = {name: _settled([*of_one.values()], reading) for name, of_one in by_id.items()}
    if reading.contested == "leave-out":
        settled = {name: outcome for name, outcome in settled.items() if outcome[1] is None}
    outcomes = Counter(outcome for _, outcome in settled.values() if outcome)
    n_left_out = len(by_id) - len(settled)
    if n_left_out:
        LOGGER.warning(
            "%s: %d contested: left out, so guarantees hold only for answers on which people agree",
            *(votes.source, n_left_out),
        )
    elif outcomes:
        counts = [f"{n} {outcome}" for outcome, n in sorted(outcomes.items())]
        LOGGER.info("%s: %s", votes.source, "; ".join(counts))
    labels = {name: correct for name, (correct, _) in settled.items()}
    if not labels:
        raise InputError(f"{votes.source} holds no verdict on which people agree.")
    asked_for = {vote.example_id for vote in votes.votes if vote.is_asked_for}
    return Labels(labels, votes, asked_for)


def _settled(votes: Sequence[Vote], reading: Reading) -> tuple[bool | None, str | None]:
    """The verdict on one answer, and how it came about where people disagree.

    A tool's final verdict counts alone, and of the others those who are sure.
    """
    final = [vote for vote in votes if vote.is_final] or votes
    sure = [vote.correct for vote in final if vote.correct is not None]
    n_right = sum(sure)
    if n_right in (0, len(sure)):
        return (bool(n_right) if sure else None), None
    if reading.contested == "majority" and len(sure) >= FEWEST and 2 * n_right != len(sure):
        return 2 * n_right > len(sure), "contested: decided by the majority"
    return False, "contested: counted as wrong"


def with_labels(
    answers: pl.DataFrame, labels: Labels, rows: Iterable[Any] = ()
) -> tuple[pl.DataFrame, str]:
    """Replace the verdicts of answers (columns of `RECORDS`).

    Answers that the file does not hold have none. Returns also a sentence on what matched. Raises
    `InputError` where nothing does, which names the path of the ids in the answers' `rows`.
    """
    ids = answers["example_id"]
    labels = _named_as(labels, ids.to_list())
    matched = [name for name in ids if name in labels.by_id]
    if not matched:
        path = find_id_path(rows, labels.by_id)
        raise InputError(_explain_no_match(labels, set(ids), len(ids), path))
    verdicts = pl.DataFrame(
        {"example_id": matched, "correct": [labels.by_id[name] is True for name in matched]},
        schema={"example_id": pl.String, "correct": pl.Boolean},
    ).with_columns(unsure=pl.Series([labels.by_id[name] is None for name in matched]))
    joined = answers.drop("correct", "unsure").join(
        verdicts, on="example_id", how="left", maintain_order="left"
    )
    joined = joined.with_columns(
        pl.col("unsure").fill_null(False),
        asked_for=pl.when(
            pl.col("correct").is_not_null() & pl.col("example_id").is_in([*labels.asked_for])
        ).then(True),
    ).select(answers.columns)
    return joined, _describe_match(joined, labels)


def _describe_match(answers: pl.DataFrame, labels: Labels) -> str:
    """How many verdicts matched, and which ids on either side did not."""
    labelled = answers.drop_nulls("correct")
    n_wrong = int((~labelled["correct"]).sum())
    n_unsure = int(labelled["unsure"].sum())
    unsure = f", {n_unsure} of them unsure" if n_unsure else ""
    sentence = (
        f"{labels.votes.source}: {labelled.height} of {answers.height} answers have a verdict "
        f"({n_wrong} wrong{unsure})"
    )
    if labels.votes.columns:
        sentence += ", by the columns {} and {}".format(*labels.votes.columns)
    if unlabelled := answers.filter(pl.col("correct").is_null())["example_id"].to_list():
        sentence += f"; {len(unlabelled)} answers have none ({some_of(unlabelled)})"
    present = set(answers["example_id"])
    if unknown := [name for name in labels.by_id if name not in present]:
        sentence += f"; {len(unknown)} verdicts are on no answer ({some_of(unknown)})"
    return sentence


def find_id_path(rows: Iterable[Any], ids: Collection[str]) -> str | None:
    """The path in the first rows at which most different `ids` stand; None for fewer than two.

    >>> find_id_path([{"meta": {"key": "q1"}}, {"meta": {"key": "q2"}}], ["q1", "q2", "q3"])
    'meta.key'
    """
    ids_at_path: dict[str, set[str]] = {}
    for row in islice(rows, MOST_ROWS):
        for path, value in _leaves(row):
            if (example_id := id_text(value)) in ids:
                ids_at_path.setdefault(path, set()).add(example_id)
    path = max(ids_at_path, key=lambda path: len(ids_at_path[path]), default=None)
    return path if path is not None and len(ids_at_path[path]) > 1 else None


def _leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The texts and whole numbers of nested objects, each with its path."""
    if isinstance(value, Mapping) and depth < MOST_DEPTH:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, str | int):
        yield path, value


def _plain(example_id: str) -> str:
    """An id without case, the Unicode form of its letters, and what tables change."""
    return _CHANGED.sub("", unicodedata.normalize("NFC", example_id)).casefold()


def _named_as(labels: Labels, ids: Collection[str]) -> Labels:
    """Labels by the answers' own `ids`, where both differ but for case, hyphens and the like.

    Returned unchanged where one id is equal, or several become alike.
    """
    id_of_plain = {_plain(name): name for name in ids}
    plain = [_plain(name) for name in labels.by_id]
    is_clear = len(id_of_plain) == len(ids) and len({*plain}) == len(plain)
    if (
        not is_clear
        or id_of_plain.keys().isdisjoint(plain)
        or not labels.by_id.keys().isdisjoint(ids)
    ):
        return labels
    LOGGER.info(
        "%s: its ids match the answers' but for case, hyphens, blanks, a number's zeros or a "
        "letter's Unicode form",
        labels.votes.source,
    )
    names = {id: id_of_plain.get(name, id) for name, id in zip(plain, labels.by_id, strict=True)}
    return replace(
        labels,
        by_id={names[id]: label for id, label in labels.by_id.items()},
        asked_for={names[id] for id in labels.asked_for & names.keys()},
    )


def _explain_no_match(
    labels: Labels, ids: Collection[str], n_answers: int, path: str | None
) -> str:
    votes = labels.votes
    sentence = (
        f"{votes.source}: none of its {len(labels.by_id)} ids ({some_of([*labels.by_id])}) is the "
        f"id of one of the {n_answers} answers ({some_of(sorted(ids))})"
    )
    if {*map(_plain, labels.by_id)} & {*map(_plain, ids)}:
        return (
            f"{sentence}: some differ in case, hyphens, outer blanks or the Unicode form of their "
            "letters (NFC or NFD) alone; write them as the answers have them."
        )
    if path is not None:
        return f"{sentence}: they stand in the answers' rows as {path}; add --id {quote(path)}."
    if votes.columns is None:
        return f"{sentence}: give the answers' ids to the labelling tool."
    id_column, verdict_column = votes.columns
    for name in votes.rows[0] if votes.rows else ():
        if any(id_text(row.get(name)) in ids for row in votes.rows):
            id_column = name
            break
    else:
        id_column = "ID"
    spec = quote(f"{votes.source}:{id_column}:{verdict_column}")
    return (
        f"{sentence}: name the columns, as in --labels {spec}, or the path of the answers' ids "
        "with --id."
    )
