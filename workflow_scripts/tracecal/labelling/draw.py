"""A random draw of answers to label.

`pick` draws whole groups of answers, so that answers to one question are labelled together.
`random_order` orders all groups; its first k groups are a simple random sample for every k, so a
larger draw continues a smaller one.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.answers import TRACES_READING, Source, frame_of, read_chosen
from tracecal.answers.groups import group_answers, question_keys
from tracecal.answers.reading import Reading
from tracecal.errors import InputError
from tracecal.fits.fit_settings import SEED, Unit
from tracecal.io.log import LOGGER
from tracecal.io.randomness import seeded
from tracecal.io.regular_files import write_text

# What is said where answers are to fewer questions, by the unit that is drawn.
REPEATS: Mapping[Unit, str] = {
    "questions": "{answers:,} answers to {questions:,} questions: questions are drawn, each counts "
    "once; --unit answers draws answers, for a promise about traffic",
    "answers": "{answers:,} answers to {questions:,} questions: answers are drawn one by one; "
    "calibrate with --unit answers, too",
}


def pick(
    answers: Source,
    number: int,
    *,
    output: str | Path | None = None,
    unit: Unit = "questions",
    seed: int = SEED,
    reading: Reading | None = None,
) -> pl.DataFrame:
    """Draw answers to label at random.

    Answers to one question are drawn together. Label the rows from the first on: you may stop
    after any number of questions, and a larger draw continues a smaller one.

    Parameters
    ----------
    answers : path, frame or rows
        Answers in any format that `read_answers` reads.
    number : int
        How many answers to draw, at least.
    output : path, optional
        JSON Lines file for the drawn rows, unchanged.
    unit : {"questions", "answers"}
        What is drawn: questions with all their answers, or single answers for `calibrate` with the
        same ``unit``.
    seed : int
        Seed of the draw.
    reading : Reading, optional
        How to read the answers.

    Returns
    -------
    polars.DataFrame
        The drawn rows, as `read_answers` returns them.

    Raises
    ------
    InputError
        If there are fewer answers than `number`.

    Examples
    --------
    >>> import tracecal
    >>> tracecal.pick("labelled.jsonl", 20)["example_id"].n_unique()
    20
    """
    source, _ = read_chosen(
        answers,
        reading,
        lambda every: draw_answers(every.frame, number, seed, unit),
        lambda some: [some["group_id"], *question_keys(some)],
        keep_rows=output is not None,
    )
    if output is not None:
        rows = [add_metadata(row, source.metadata) for row in source.rows]
        write_text(to_json_lines(rows), output)
    return frame_of(source)


def random_order(answers: pl.DataFrame, seed: int, unit: Unit = "questions") -> pl.DataFrame:
    """Order answers (columns of `RECORDS`) at random, whole groups: `example_id` and `place`.

    `place` counts the groups (`group_answers`) from 0. The groups of the first k places are a
    simple random sample, for every k. Answers of a group stand in the order of their ids; the order
    of `answers` has no effect. With `unit` "answers" each answer is its own group.
    """
    groups = group_answers(answers)
    n_questions = groups["group_id"].n_unique()
    if n_questions < answers.height:
        LOGGER.info("%s", REPEATS[unit].format(answers=answers.height, questions=n_questions))
    if unit == "answers":
        groups = groups.with_columns(group_id="example_id")
    names = groups["group_id"].unique().sort()
    places = np.argsort(seeded(seed, "pick").permutation(len(names)))
    return groups.select(
        "example_id", place=pl.col("group_id").replace_strict(names, places, return_dtype=pl.Int64)
    ).sort("place", "example_id")


def draw_answers(
    answers: pl.DataFrame, number: int, seed: int, unit: Unit = "questions"
) -> list[str]:
    """Return the ids of the first groups of `random_order` that hold `number` answers, in order.

    Raises `InputError` where there are fewer answers than `number`.
    """
    if not 1 <= number <= answers.height:
        raise InputError(
            f"--number {number}: the file holds {answers.height} answers; ask for 1 to "
            f"{answers.height}."
        )
    order = random_order(answers, seed, unit)
    last_place = order["place"][number - 1]
    return order.filter(pl.col("place") <= last_place)["example_id"].to_list()


def add_metadata(row: Mapping[str, Any], metadata: Mapping[str, str]) -> dict[str, Any]:
    """Add to a row what its file of traces states once for all rows, so that it stands alone."""
    if not metadata.get("schema_version"):
        return dict(row)
    stated = TRACES_READING | ({"model": metadata["model"]} if metadata.get("model") else {})
    return {**stated, **{name: value for name, value in row.items() if value is not None}}


def to_json_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as JSON Lines. Raises `InputError` where a value has no JSON."""
    try:
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    except TypeError as error:
        raise InputError(
            f"a row cannot be written as JSON ({error}): leave that column out of the file."
        ) from error
