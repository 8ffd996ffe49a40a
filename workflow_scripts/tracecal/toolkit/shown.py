"""Answers of a file as the explorer's page shows those of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.explore.answers import HELD_OUT, PROBABILITY, SCORE, TASK, TRACE
from tracecal.explore.choose import choose_answers
from tracecal.explore.contents import contents
from tracecal.features.operators import WINDOW, window_start
from tracecal.jobs.progress import LOGGER
from tracecal.logs.asked import asked
from tracecal.logs.read import Answers
from tracecal.registry.estimators import ESTIMATORS, entries
from tracecal.toolkit.agree import fingerprints, open_questions, require_same_kind
from tracecal.toolkit.fitted import Fitted, from_stored
from tracecal.toolkit.inputs import KNOWN, OF_FEATURES, OF_TRACES, first_tokens, inputs

UNKNOWN = "unknown model"


def fits(stored: Mapping[str, Any], where: str) -> dict[str, Fitted]:
    """A calibrator's fits that need only a trace, by estimator."""
    names = [one.id for one in ESTIMATORS if one.id in stored and {*one.inputs} <= {*KNOWN}]
    return {name: from_stored(stored, name, where) for name in names}


def page_data(
    answers: Answers,
    name: str,
    calibrators: Mapping[str, Fitted],
    number: int | None = None,
    seed: int = 0,
    task: str | None = None,
) -> dict[str, Any]:
    """The data of a page (see `contents`) that shows a file's answers, read with their rows.

    `name` is the file's; at most `number` answers are chosen at random. Without `calibrators` there
    are scores and no probabilities. Raises `InputError` where the answers are not of the
    calibrators' kind.
    """
    frame = _texts(answers, name)
    few = number is not None and number < frame.height
    chosen = choose_answers(frame, number, seed) if few else frame
    places = pl.DataFrame({"example_id": frame["example_id"]}).with_row_index("place")
    records = answers.frame[chosen.join(places, on="example_id", maintain_order="left")["place"]]
    chosen = chosen.hstack(_confidence(records, calibrators, task))
    estimators = [one for one in entries(ESTIMATORS) if PROBABILITY + one["id"] in chosen.columns]
    models = {model: model for model in chosen["model"].unique()}
    tasks = {task: task for task in chosen["task"].unique()}
    return contents(chosen, estimators, models, tasks, name, frame.height, split=None)


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
        peak=window_start(pl.col("entropy"), WINDOW).cast(pl.Int32),
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
    """For each estimator its probability, that of an answer with a label that the calibrator was
    not fitted on, and its score, a row per record.
    """
    # A calibrator's fits are of one model, task and set of labels.
    known_labels: tuple[str, ...] = ()
    first = None
    for fitted in list(calibrators.values())[:1]:
        known_labels, first = fitted.fitted_on.answers, fitted.fitted_on.first
        require_same_kind(records, fitted.fitted_on, task)
        for warning in open_questions(records, fitted.fitted_on):
            LOGGER.warning("%s", warning)
    seen = fingerprints(records).is_in(list(known_labels)).fill_null(False)
    judged = records["correct"].is_not_null() & ~seen
    nothing = pl.repeat(None, records.height, dtype=pl.Float64, eager=True)
    known = inputs(first_tokens(records, first))
    columns = {}
    for name in calibrators or [*OF_TRACES, *OF_FEATURES]:
        probability = _probabilities(known, calibrators[name]) if calibrators else nothing
        score = known[f"scores.{name}"] if f"scores.{name}" in known.columns else nothing
        if probability.count() or score.count():
            columns[PROBABILITY + name] = probability
            columns[HELD_OUT + name] = probability.set(~judged, None)
            columns[SCORE + name] = score
    return pl.DataFrame(columns)


def _probabilities(known: pl.DataFrame, fitted: Fitted) -> pl.Series:
    """The probability of each row of `inputs`; null where one of the estimator's is."""
    x = known.select(fitted.inputs)
    defined = x.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    places = defined.arg_true()
    values = pl.Series([None] * known.height, dtype=pl.Float64)
    if len(places):
        values = values.scatter(places, fitted.final.predict(x.filter(defined).to_numpy(order="c")))
    return values
