"""Which answers to label: drawn at random, groups whole, in an order that may be cut anywhere."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tracecal.answers.read import TRACES_READING
from tracecal.calibration.groups import group_answers
from tracecal.errors import InputError
from tracecal.io.randomness import seeded


def random_order(answers: pl.DataFrame, seed: int) -> pl.DataFrame:
    """`example_id` and `place` of answers (columns of `RECORDS`), in a seeded order of groups.

    `place` counts the groups from 0; those of the first k places are a simple random sample of k
    groups, for every k. Groups are those of `grouped`, their answers are in the order of their ids,
    and the order of `answers` does not matter.
    """
    groups = group_answers(answers)
    names = groups["group_id"].unique().sort()
    place = np.argsort(seeded(seed, "pick").permutation(len(names)))
    return groups.select(
        "example_id", place=pl.col("group_id").replace_strict(names, place, return_dtype=pl.Int64)
    ).sort("place", "example_id")


def draw_answers(answers: pl.DataFrame, number: int, seed: int) -> list[str]:
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


def add_metadata(row: Mapping[str, Any], metadata: Mapping[str, str]) -> dict[str, Any]:
    """A row with what its file says of all its rows, as traces do, so that it can stand alone."""
    if not metadata.get("schema_version"):
        return dict(row)
    stated = TRACES_READING | ({"model": metadata["model"]} if metadata.get("model") else {})
    return {**stated, **{name: value for name, value in row.items() if value is not None}}


def to_json_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as JSON Lines. Raises `InputError` where a value has no JSON."""
    try:
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    except TypeError as error:
        raise InputError(
            f"a row cannot be written as JSON ({error}): leave that column out of the file."
        ) from error
