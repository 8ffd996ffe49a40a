"""Parts of answers as answers, each with its label and the group of its answer."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.answers.facts import PartLabels
from tracecal.answers.groups import group_answers
from tracecal.answers.parts.cutter import CUT, cut_parts
from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import PARTIAL_TRACE, RECORDS, TRACE
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.io.settings import unknown

NO_TOKENS = "its tokens are not listed"


def part_answers(
    answers: pl.DataFrame, parts: Parts, labels: Mapping[str, PartLabels] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut answers into their parts. Raises `InputError` where a label names no part.

    Parameters
    ----------
    answers
        Columns of `RECORDS`.
    parts
        Which parts there are.
    labels
        By the id of the answer; `correct` is missing for a part without one.

    Returns
    -------
    rows
        The parts, with the columns of `RECORDS` and `CUT`: the id '<answer's id>/<name>', the value
        as `answer`, and the group of the answer. A part has a trace where all its own tokens do.
    without
        The answers without parts: `example_id` and `why`.
    """
    labels = labels or {}
    answers = answers.with_columns(PARTIAL_TRACE)
    groups = group_answers(answers.with_columns(correct=pl.lit(None, pl.Boolean)))
    is_traced = pl.col("surprisal").is_not_null() & pl.col("tokens").is_not_null()
    cut, without = cut_parts(answers.filter(is_traced).drop("partial"), parts)
    rows = cut.drop("group_id").join(
        groups, left_on="parent_id", right_on="example_id", how="left", maintain_order="left"
    )
    correct = [
        _part_correct(row, labels.get(row["parent_id"], PartLabels()))
        for row in rows.select("parent_id", "part", "name", "first", "last").iter_rows(named=True)
    ]
    _require_known_names(labels, parts, rows)
    rows = rows.with_columns(
        example_id=pl.concat_str("parent_id", "name", separator="/"),
        answer="value",
        correct=pl.Series(correct, dtype=pl.Boolean),
        partial=pl.lit(None, RECORDS["partial"]),
    ).with_columns(
        pl.when(~pl.col(name).list.eval(pl.element().is_null()).list.any()).then(name)
        for name in TRACE
    )
    is_incomplete = pl.any_horizontal(pl.col("surprisal", "entropy").is_null())
    rows = rows.with_columns(lacks=pl.when(is_incomplete).then("lacks"))
    untraced = answers.filter(~is_traced).select(
        "example_id", why=pl.coalesce("lacks", pl.lit(NO_TOKENS))
    )
    without = pl.concat([without, untraced])
    if without.height:
        counts = without.group_by("why").len().sort("why").iter_rows()
        reasons = "; ".join(f"{count}: {why}" for why, count in counts)
        LOGGER.warning(
            "%d of %d answers have no parts (%s)", without.height, answers.height, reasons
        )
    return rows.select(*RECORDS, *CUT), without


def _part_correct(row: Mapping[str, Any], labels: PartLabels) -> bool | None:
    """Whether a part is right, by the labels of its answer; None where they do not say.

    Raises `InputError` where they contradict each other.
    """
    verdicts = labels.correct or {}
    correct = verdicts.get(row["name"], verdicts.get(row["part"]))
    if labels.wrong_spans is None:
        return correct
    overlaps = any(start < row["last"] and end > row["first"] for start, end in labels.wrong_spans)
    if correct is overlaps:
        raise InputError(
            f"the labels of the answer {row['parent_id']!r} contradict each other on the part "
            f"{row['name']!r}: 'correct' says {str(correct).lower()}, and 'wrong_spans' the "
            "opposite."
        )
    return not overlaps


def _require_known_names(
    labels: Mapping[str, PartLabels], parts: Parts, rows: pl.DataFrame
) -> None:
    """Raise `InputError` where a label names neither a part that is asked for nor one there is."""
    names = dict.fromkeys([*parts.names, *rows["name"].unique(maintain_order=True)])
    for example_id, part_labels in labels.items():
        if wrong := unknown("part", part_labels.correct or (), names):
            raise InputError(f"the labels of the answer {example_id!r}: {wrong}.")
