"""Parts of answers outside the workflow: which there are, their labels and their scores."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import yaml

from tracecal.answers.evaluations import PartLabels
from tracecal.answers.part_spec import KINDS, Parts, leaves
from tracecal.answers.parts import CUT, cut
from tracecal.answers.read import Answers
from tracecal.answers.record import RECORDS, TRACE, Record, with_partial
from tracecal.answers.settings import Reading
from tracecal.calibration.groups import group_answers
from tracecal.calibrator.schema import Fitted, Target
from tracecal.calibrator.scoring import (
    Confidence,
    read_response,
    score_answer,
    score_answers,
    values_of,
)
from tracecal.errors import InputError
from tracecal.estimators.of_traces import need_entropy
from tracecal.io.input_files import read_yaml
from tracecal.io.log import LOGGER
from tracecal.io.settings import parse, unknown

NO_TOKENS = "its tokens are not listed"
UNFITTED = "the calibrator was not fitted on this part: calibrate with --parts that name it"
SCORE = ("probability", "lower", "upper", "keep", "reason")
SHOWN = {"name": "name", "value": "value", "start": "first", "end": "last"}


def given_parts(given: str) -> Parts:
    """The parts that a file or a text states, YAML or JSON; or a JSON Schema, of which they are the
    leaves.

    Raises `InputError`.

    >>> given_parts("json: [capital, address.city]").names
    ('capital', 'address.city')
    """
    try:
        is_file = Path(given).is_file()
    except OSError:  # a text longer than any name
        is_file = False
    try:
        value = read_yaml(given) if is_file else yaml.safe_load(given)
    except yaml.YAMLError as error:
        raise InputError(
            f"--parts: {given[:60]!r} is neither a file nor YAML ({error})."
        ) from error
    where = given if is_file else "--parts"
    if isinstance(value, dict) and not {*KINDS}.intersection(value):
        try:
            value = {"json": _leaves_of(value)}
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"{where}: {error}; state the parts as one of {', '.join(KINDS)}, such as "
                "'json: [capital, currency]', or give a JSON Schema."
            ) from error
    return parse(Parts, value, where)


def _leaves_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The `leaves` of a JSON Schema, by itself or as requests hold one."""
    return leaves(schema.get("schema") or schema.get("json_schema", {}).get("schema") or schema)


def asked_parts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The leaves of the JSON Schema that a request to a server asks its answer to follow, in
    `response_format` or in the `text` of Responses; none where that has none or is no schema.
    """
    text = request.get("text")
    form = text.get("format") if isinstance(text, dict) else request.get("response_format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return ()
    try:
        return Parts(json=_leaves_of(form)).names
    except (AttributeError, TypeError, ValueError):
        return ()


def labelled_parts(answers: Answers, given: str | None) -> tuple[pl.DataFrame, Parts | None]:
    """The answers of a file, or their parts where these are `given` (see `given_parts`)."""
    if given is None:
        if answers.of_parts:
            raise InputError(
                f"{len(answers.of_parts)} answers are labelled by part: say which parts there are "
                "with --parts, such as --parts 'json: [capital, currency]'."
            )
        return answers.frame, None
    parts = given_parts(given)
    return part_answers(answers.frame, parts, answers.of_parts)[0], parts


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
    located, without = cut(answers.filter(traced).drop("partial"), parts)
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


def score_parts(
    answers: pl.DataFrame,
    fitted: Fitted,
    error_rate: Target | None = None,
    task: str | None = None,
    parts: Parts | None = None,
) -> pl.DataFrame:
    """`example_id`, `parts` and `reason`, a row per answer (columns of `RECORDS`), in its order.

    `parts` is a list, in the order of the text, of `name`, `value`, its characters [start, end) in
    the answer, and as in `score_answers` `probability`, `lower`, `upper`, `keep` and `reason`. The
    answer's `reason` says why it has none. `parts` are by default those that the calibrator was
    fitted on; one of another name gets the common curve of all. Raises as `score_answers`.
    """
    fitted.require_parts(True)
    rows, without = part_answers(answers, parts or fitted.fitted_on.parts)
    scored = rows.select("example_id", "parent_id", **SHOWN).hstack(
        score_answers(rows, fitted, error_rate, task).select(SCORE)
    )
    fields = pl.struct(*SHOWN, *SCORE).alias("parts")
    lists = scored.group_by("parent_id", maintain_order=True).agg(fields)
    joined = answers.select("example_id").join(
        lists, left_on="example_id", right_on="parent_id", how="left", maintain_order="left"
    )
    reasons = without.select("example_id", reason="why")
    return joined.join(reasons, on="example_id", how="left", maintain_order="left")


class ScoredPart(NamedTuple):
    """A part of an answer: its name, its value, its characters [start, end) in the answer, and its
    confidence.
    """

    name: str
    value: str
    start: int
    end: int
    confidence: Confidence


def record_parts(
    fitted: Fitted,
    record: Record,
    error_rate: Target | None = None,
    asked: Sequence[str] = (),
) -> tuple[list[ScoredPart], str | None]:
    """The parts of one answer in the order of its text, and why it has none; null where it has.

    They are those that the calibrator was fitted on, and the values of JSON that are `asked` for by
    their paths, whose confidence is unknown. Raises as `score_answer`.
    """
    known = fitted.fitted_on.parts
    further = [name for name in asked if known is None or name not in known.names]
    if not further:
        fitted.require_parts(True)
    lists = {name: getattr(record, name) or (record.partial or {}).get(name) for name in TRACE}
    if lists["surprisal"] is None or record.tokens is None:
        return [], record.lacks or NO_TOKENS
    row = {"example_id": "a", "answer": record.answer or "", "tokens": list(record.tokens)}
    schema = {name: RECORDS[name] for name in row}
    kinds = [known] if known is not None else []
    kinds += [Parts(json=further)] if further else []
    frame = pl.DataFrame([row], schema=schema)
    cuts = [cut(frame, kind) for kind in kinds]
    rows = pl.concat([rows for rows, _ in cuts]).sort("first", "last", maintain_order=True)
    if rows.is_empty():
        return [], cuts[0][1]["why"][0]
    found = []
    for part in rows.iter_rows(named=True):
        place = part["name"], part["value"], part["first"], part["last"]
        if part["part"] in further:
            found.append(ScoredPart(*place, Confidence(None, reason=UNFITTED)))
            continue
        own = slice(part["start"], part["end"])
        surprisal, entropy, lower, upper = (
            None if values is None or None in values[own] else values[own]
            for values in lists.values()
        )
        if surprisal is None or (entropy is None and need_entropy(fitted.inputs)):
            found.append(ScoredPart(*place, Confidence(None, reason=record.lacks)))
            continue
        bounds = lower, upper, record.top_k
        of_part = {"part": part["part"], "also": values_of(record)}
        confidence = score_answer(fitted, surprisal, entropy, error_rate, *bounds, **of_part)
        found.append(ScoredPart(*place, confidence))
    return found, None


def score_response_parts(
    fitted: Fitted,
    response: Any,
    request: Mapping[str, Any] | None = None,
    error_rate: Target | None = None,
    reading: Reading | None = None,
) -> dict[str, Confidence]:
    """By name, such as `address.city`: the confidence of each part of a response, as
    `score_response` takes it; empty where it holds none.

    For a pydantic model calibrate on the leaves of its schema: `--parts` takes what
    `Model.model_json_schema()` gives. Raises as `score_response`.
    """
    reading = reading or Reading()
    record = read_response(fitted, response, request, reading)
    return {one.name: one.confidence for one in record_parts(fitted, record, error_rate)[0]}
