"""Answers of a file as the explorer's page shows those of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.read import Answers
from tracecal.calibration.part_answers import part_answers
from tracecal.calibrator.schema import (
    Fitted,
    fingerprints,
    from_stored,
    open_questions,
    require_same_kind,
)
from tracecal.errors import InputError
from tracecal.estimators.entry import entries
from tracecal.estimators.registry import ESTIMATORS, LOG_RIDGE_ALSO, OF_FILES
from tracecal.estimators.trace_inputs import (
    FEATURE_SCORES,
    LIST_SCORES,
    TRACE_INPUTS,
    compute_inputs,
)
from tracecal.explorer.contents import (
    ANSWER,
    HELD_OUT,
    OF_PARENT,
    PEAK,
    PLACE,
    PROBABILITY,
    SCORE,
    TASK,
    TRACE,
    choose_answers,
    contents,
)
from tracecal.io.log import LOGGER

ASKED = {
    "language": pl.String,
    "question": pl.String,
    "context": pl.String,
    "references": pl.List(pl.String),
    "distractors": pl.List(pl.String),
}
QUESTION = ("question", "input", "query", "instruction", "prompt", "messages")
CONTEXT = ("context", "passage")
REFERENCES = ("references", "reference", "target", "answers", "gold", "solution", "solutions")


def asked(rows: Sequence[Mapping[str, Any]], prompts: Iterable[str | None]) -> pl.DataFrame:
    """The columns of `ASKED`, a row per row of a file.

    A question that no field holds is the last message of the user that was sent, or the prompt;
    an empty text where there is neither. Of a part of an answer it ends with the part's name.
    References are empty where there are none.
    """
    return pl.DataFrame(
        [_asked(row, prompt) for row, prompt in zip(rows, prompts, strict=True)], schema=ASKED
    )


def _asked(row: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    places = [
        row,
        *filter(_is_object, (_within(row, "response", "body"), _within(row, "response"))),
    ]
    places += filter(_is_object, (row.get("doc"), row.get("metadata")))
    request = _within(row, "request", "body") or row.get("request")
    questions = [*_values(places, QUESTION), *_values(filter(_is_object, [request]), QUESTION)]
    question = next(filter(None, map(_words, questions)), None) or prompt or ""
    if _is_text(row.get("part")):
        question += f"\nPart: {row['part']}"
    return {
        "language": next(filter(_is_text, _values(places, ["language"])), None),
        "question": question,
        "context": next(filter(_is_text, _values(places, CONTEXT)), None),
        "references": next(filter(None, map(_question_texts, _values(places, REFERENCES))), []),
        "distractors": next(
            filter(None, map(_question_texts, _values(places, ["distractors"]))), []
        ),
    }


def _values(places: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[Any]:
    return [place[name] for place in places for name in names if place.get(name) is not None]


def _within(row: Any, *path: str) -> Any:
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


def _words(value: Any) -> str | None:
    """A text, or that of the user's last message in a list of them."""
    if isinstance(value, str):
        return value
    for message in reversed(value) if isinstance(value, list) else ():
        if _is_object(message) and message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list) else [content]
            texts = [part.get("text") if _is_object(part) else part for part in parts]
            return "\n".join(filter(_is_text, texts)) or None
    return None


def _question_texts(value: Any) -> list[str]:
    """The texts of a reference, or of a list of them; numbers as they are written."""
    values = value if isinstance(value, list) else [value]
    return [str(one) for one in values if isinstance(one, str | int | float)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


UNKNOWN = "unknown model"


def fits(stored: Mapping[str, Any], where: str) -> dict[str, Fitted]:
    """A calibrator's fits that need only a trace, by estimator."""
    of_trace = [one.id for one in ESTIMATORS if {*one.inputs} <= {*TRACE_INPUTS}]
    names = [name for name in (*of_trace, LOG_RIDGE_ALSO.id) if name in stored]
    return {name: from_stored(stored, name, where) for name in names}


def unseen(
    calibrators: Mapping[str, Fitted], predicted: pl.DataFrame, records: pl.DataFrame
) -> dict[str, Fitted]:
    """The fits, each with the probabilities `predicted` (`Labelled.cross_fitted`) of the answers
    that it was fitted on, whose records these are.
    """
    named = records.select("example_id", answer=fingerprints(records)).drop_nulls("answer")
    rows = predicted.join(named, on="example_id").select("estimator", "answer", "probability")
    held_out: dict[str, dict[str, float]] = {}
    for estimator, answer, probability in rows.iter_rows():
        held_out.setdefault(estimator, {})[answer] = probability
    return {
        name: replace(fitted, held_out=held_out.get(name, {}))
        for name, fitted in calibrators.items()
    }


def page_data(
    answers: Answers,
    name: str,
    calibrators: Mapping[str, Fitted],
    number: int | None = None,
    seed: int = 0,
    task: str | None = None,
    parts: Parts | None = None,
) -> dict[str, Any]:
    """The data of a page (see `contents`) that shows a file's answers, read with their rows; or the
    `parts` of them, each within its answer.

    `name` is the file's; at most `number` answers or parts are chosen at random. Without
    `calibrators` there are scores and no probabilities. Raises `InputError` where the answers are
    not of the calibrators' kind, or none has a part.
    """
    records, frame, parents = answers.frame, _texts(answers, name), None
    if parts is not None:
        records = part_answers(records, parts, answers.part_labels)[0]
        if records.is_empty():
            raise InputError(f"{name}: no answer holds the parts that --parts states.")
        frame, parents = _parts(records, frame), frame
    few = number is not None and number < frame.height
    chosen = choose_answers(frame, number, seed) if few else frame
    places = pl.DataFrame({"example_id": frame["example_id"]}).with_row_index("place")
    records = records[chosen.join(places, on="example_id", maintain_order="left")["place"]]
    chosen = chosen.hstack(_confidence(records, calibrators, task))
    if parents is not None:
        parents = parents.filter(pl.col("example_id").is_in(chosen["parent_id"].implode()))
        parents = parents.select(*ANSWER, *OF_PARENT, "peak")
    estimators = [one for one in entries(OF_FILES) if PROBABILITY + one["id"] in chosen.columns]
    models = {model: model for model in chosen["model"].unique().sort()}
    tasks = {task: task for task in chosen["task"].unique().sort()}
    total = frame.height
    use = next((one.fitted_on.estimator for one in calibrators.values()), None)
    return contents(
        chosen, estimators, models, tasks, name, total, split=None, parents=parents, use=use
    )


def _parts(records: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """What the page shows of parts (`part_answers`) of the answers of `frame` (`_texts`)."""
    own = records.select(
        "example_id",
        "parent_id",
        "start",
        "end",
        "tokens",
        "surprisal",
        "entropy",
        "correct",
        "value",
        part="name",
    )
    of_answer = frame.drop("tokens", "surprisal", "entropy", "correct", "prediction", "peak")
    joined = own.join(
        of_answer,
        left_on="parent_id",
        right_on="example_id",
        validate="m:1",
        maintain_order="left",
    )
    told = joined.with_columns(prediction="value", peak=PEAK, parent_task="task")
    return told.select(*[one for one in frame.columns if one != "peak"], "peak", *PLACE)


def _texts(answers: Answers, name: str) -> pl.DataFrame:
    """What the page shows of each answer besides its confidence, as `read_answers` of a run."""
    frame = answers.frame
    # Of tokens without texts only the numbers are shown; a text without numbers is one token.
    tokens = (
        pl.when(pl.col("tokens").is_not_null())
        .then("tokens")
        .when(pl.col("surprisal").is_not_null())
        .then(pl.col("surprisal").list.eval(pl.element().cast(pl.String).str.head(0)))
        .otherwise(pl.concat_list(pl.col("answer").fill_null("")))
    )
    about = asked(answers.rows, frame["prompt"])
    told = frame.hstack(about).with_columns(
        pl.col("group_id").fill_null(pl.col("example_id")),
        pl.col("model").fill_null(UNKNOWN),
        pl.col("prompt").fill_null(""),
        task=pl.lit(answers.metadata.get("task") or Path(name).stem),
        tokens=tokens,
        peak=PEAK,
    )
    spelled = pl.col("tokens").list.join("")
    told = told.with_columns(
        prediction=pl.coalesce("answer", spelled), error_kind=pl.lit(None, pl.String)
    )
    plain = dict.fromkeys(["model", "task", *TRACE, *TASK, "prediction", "correct", "error_kind"])
    return told.select(*plain, "peak")


def _confidence(
    records: pl.DataFrame, calibrators: Mapping[str, Fitted], task: str | None
) -> pl.DataFrame:
    """For each estimator its probability, that of an answer with a label by a fit that had not seen
    it, and its score, a row per record.

    Of an answer that the calibrator was fitted on both are `Fitted.held_out`; where it is not there
    the second is null.
    """
    # A calibrator's fits are of one model, task and set of labels.
    known_labels: tuple[str, ...] = ()
    for fitted in list(calibrators.values())[:1]:
        known_labels = fitted.fitted_on.answers
        fitted.require_parts("part" in records.columns)
        require_same_kind(records, fitted.fitted_on, task)
        for warning in open_questions(records, fitted.fitted_on):
            LOGGER.warning("%s", warning)
    own = fingerprints(records)
    seen = own.is_in(list(known_labels)).fill_null(False)
    judged = records["correct"].is_not_null()
    if seen.any() and not any(fitted.held_out for fitted in calibrators.values()):
        LOGGER.warning(
            "the calibrator was fitted on %d of the answers, and holds no probability of them by a "
            "fit that had not seen them: charts leave them out. Calibrate again to change that",
            seen.sum(),
        )
    nothing = pl.repeat(None, records.height, dtype=pl.Float64, eager=True)
    further = dict.fromkeys(name for one in calibrators.values() for name in one.inputs)
    known = compute_inputs(records, dict.fromkeys([*TRACE_INPUTS, *further]))
    parts = records["part"] if "part" in records.columns else nothing
    columns = {}
    for name in calibrators or [*LIST_SCORES, *FEATURE_SCORES]:
        probability = held_out = nothing
        if calibrators:
            fitted = calibrators[name]
            unseen = own.replace_strict(fitted.held_out, default=None, return_dtype=pl.Float64)
            probability = _probabilities(known, fitted, parts)
            held_out = probability.zip_with(~seen, unseen)
            probability = probability.zip_with(held_out.is_null(), held_out)
        score = known[f"scores.{name}"] if f"scores.{name}" in known.columns else nothing
        if probability.count() or score.count():
            columns[PROBABILITY + name] = probability
            columns[HELD_OUT + name] = held_out.set(~judged, None)
            columns[SCORE + name] = score
    return pl.DataFrame(columns)


def _probabilities(known: pl.DataFrame, fitted: Fitted, parts: pl.Series) -> pl.Series:
    """The probability of each row of `compute_inputs`; null where one of the estimator's is."""
    x = known.select(fitted.inputs)
    defined = x.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    places = defined.arg_true()
    values = pl.Series([None] * known.height, dtype=pl.Float64)
    if len(places):
        own = fitted.with_part(x.filter(defined).to_numpy(order="c"), parts.filter(defined))
        values = values.scatter(places, fitted.final.predict(own))
    return values


# Whose scores decide where no estimator is named or recommended, the first that the answers have.
PREFERRED = ("trace_plus", "trace", "len_norm_logp")


def scores(
    data: Mapping[str, Any], estimator: str | None, recommended: str | None = None
) -> tuple[str, list[float | None]]:
    """The estimator that decides, and each answer's probability by it, or score without one.

    `data` are those of `shown.page_data`, `recommended` is the estimator of a calibrator's file.
    Raises `InputError` where the answers lack it.
    """
    columns = data["answers"]
    preferred = (recommended, *PREFERRED) if recommended else PREFERRED
    for name in [estimator] if estimator else preferred:
        for kind in ("probability", "score"):
            values = columns[kind].get(name, [])
            if any(value is not None for value in values):
                return name, values
    known = ", ".join(columns["score"]) or "none"
    raise InputError(
        f"the answers have no score of {estimator or ' or '.join(PREFERRED)}; there is {known}: "
        "choose one with --estimator, or give answers with log-probabilities."
    )
