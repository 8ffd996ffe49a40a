"""The parts of answers, as answers of their own."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tracecal.answers.parts.cutter import CUT, cut_parts
from tracecal.answers.parts.labels import PartLabels
from tracecal.answers.parts.parts import Parts, read_parts
from tracecal.answers.read import Answers
from tracecal.answers.record import RECORDS, TRACE, with_partial
from tracecal.calibration.groups import group_answers
from tracecal.errors import InputError
from tracecal.io.log import LOGGER
from tracecal.io.settings import unknown

NO_TOKENS = "its tokens are not listed"


def labelled_parts(answers: Answers, given: str | None) -> tuple[pl.DataFrame, Parts | None]:
    """The answers of a file, or their parts where these are `given` (see `read_parts`)."""
    if given is None:
        if answers.part_labels:
            raise InputError(
                f"{len(answers.part_labels)} answers are labelled by part: say which parts there "
                "are with --parts, such as --parts 'json: [capital, currency]'."
            )
        return answers.frame, None
    parts = read_parts(given)
    return part_answers(answers.frame, parts, answers.part_labels)[0], parts


def part_answers(
    answers: pl.DataFrame, parts: Parts, labels: Mapping[str, PartLabels] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The parts of answers (columns of `RECORDS`) as answers of their own, and the answers without
    any, `example_id` and `why`.

    A part has a trace where its own tokens have, whatever the others of its answer lack. Its row
    has the columns of `RECORDS`, with its value as `answer` and its group that of its
    answer, and those of `CUT`; its id is '<answer's id>/<name>'. `labels` are by the answer's id;
    without one `correct` is null. Raises `InputError` where a label is of no part.
    """
    answers = with_partial(answers)
    traced = pl.col("surprisal").is_not_null() & pl.col("tokens").is_not_null()
    located, without = cut_parts(answers.filter(traced).drop("partial"), parts)
    groups = group_answers(answers.with_columns(correct=pl.lit(None, pl.Boolean)))
    rows = located.drop("group_id").join(
        groups, left_on="parent_id", right_on="example_id", how="left", maintain_order="left"
    )
    correct = [
        _verdict(row, (labels or {}).get(row["parent_id"], PartLabels()))
        for row in rows.select("parent_id", "part", "name", "first", "last").iter_rows(named=True)
    ]
    _require_known(labels or {}, parts, rows)
    made = rows.with_columns(
        example_id=pl.concat_str("parent_id", "name", separator="/"),
        answer="value",
        correct=pl.Series(correct, dtype=pl.Boolean),
        partial=pl.lit(None, RECORDS["partial"]),
    )
    made = made.with_columns(
        pl.when(~pl.col(name).list.eval(pl.element().is_null()).list.any()).then(name)
        for name in TRACE
    )
    lacking = pl.any_horizontal(pl.col("surprisal", "entropy").is_null())
    made = made.with_columns(lacks=pl.when(lacking).then("lacks"))
    untraced = answers.filter(~traced).select(
        "example_id", why=pl.coalesce("lacks", pl.lit(NO_TOKENS))
    )
    without = pl.concat([without, untraced])
    if without.height:
        reasons = without.group_by("why").len().sort("why").iter_rows()
        told = "; ".join(f"{count}: {why}" for why, count in reasons)
        LOGGER.warning("%d of %d answers have no parts (%s)", without.height, answers.height, told)
    return made.select(*RECORDS, *CUT), without


def _verdict(row: Mapping[str, Any], labels: PartLabels) -> bool | None:
    """Whether a part is right, by the labels of its answer; null where they do not say. Raises
    `InputError` where they contradict each other.
    """
    told = labels.correct or {}
    named = told.get(row["name"], told.get(row["part"]))
    if labels.wrong_spans is None:
        return named
    touched = any(start < row["last"] and end > row["first"] for start, end in labels.wrong_spans)
    if named is touched:
        raise InputError(
            f"the labels of the answer {row['parent_id']!r} contradict each other on the part "
            f"{row['name']!r}: 'correct' says {str(named).lower()}, and 'wrong_spans' the opposite."
        )
    return not touched


def _require_known(labels: Mapping[str, PartLabels], parts: Parts, rows: pl.DataFrame) -> None:
    """Raise `InputError` where a label's name is neither asked for nor that of a part there is."""
    known = dict.fromkeys([*parts.names, *rows["name"].unique(maintain_order=True)])
    for name, told in labels.items():
        if wrong := unknown("part", told.correct or (), known):
            raise InputError(f"the labels of the answer {name!r}: {wrong}.")
