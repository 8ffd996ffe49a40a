"""Answers of a file with what a page shows of them.

1. `load_page_answers` reads the answers, with the fits of a calibrator if there is one.
2. `PageAnswers.page_data` gives the data of a page that shows them.
3. `PageAnswers.rows_to_judge` gives what a person labels: the answers, or their parts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tracecal.answers.answers import Answers, Source, answers_in, read_chosen
from tracecal.answers.facts import find_question, question_fields
from tracecal.answers.parts.part_answers import part_answers
from tracecal.answers.parts.parts import Parts
from tracecal.answers.reading import Reading
from tracecal.calibrator.calibrator import Calibrator, calibrator_in, parts_in
from tracecal.calibrator.guarantee_text import USUAL_RATE
from tracecal.calibrator.predictor import Predictor
from tracecal.calibrator.schema import CalibrationData
from tracecal.calibrator.scoring import score_answers
from tracecal.errors import InputError
from tracecal.estimators.estimator import entries
from tracecal.estimators.registry import OF_FILES
from tracecal.explorer.confidences import confidence_columns, trace_predictors
from tracecal.explorer.explorer_contents import (
    ANSWER,
    OF_PARENT,
    PEAK,
    PLACE,
    PROBABILITY,
    TASK,
    TRACE,
    choose_answers,
    contents,
    kept_share,
)
from tracecal.fits.fit_settings import SEED
from tracecal.statistics.percentages import rate_text

UNKNOWN_MODEL = "unknown model"
QUESTIONS: dict[str, pl.DataType | type[pl.DataType]] = {
    "language": pl.String,
    "question": pl.String,
    "context": pl.String,
    "references": pl.List(pl.String),
    "distractors": pl.List(pl.String),
}


@dataclass(frozen=True)
class PageAnswers:
    """Answers with their rows, and what a page shows of them.

    `fits` are a calibrator's by estimator, none without one. With `parts` these are shown by
    themselves. `total` is how many answers there are, where these were drawn from more.
    """

    answers: Answers
    fits: Mapping[str, Predictor]
    task: str | None
    parts: Parts | None
    total: int | None = None

    @property
    def fitted_on(self) -> CalibrationData | None:
        """What the calibrator was fitted on."""
        return next((fit.fitted_on for fit in self.fits.values()), None)

    @property
    def guaranteed_rate(self) -> float | None:
        """The error rate, of those that the calibrator guarantees, nearest to the usual one."""
        name = None if self.fitted_on is None else self.fitted_on.estimator
        if name is None or name not in self.fits:
            return None
        thresholds = self.fits[name].thresholds.items()
        rates = [
            rate for rate, least in thresholds if least is not None and isinstance(rate, float)
        ]
        return min(rates, key=lambda rate: (abs(rate - USUAL_RATE), rate), default=None)

    def kept_share(
        self, data: Mapping[str, Any], error_rate: float | None
    ) -> dict[str, Any] | None:
        """The `decision` of a page with this data, all of labelled answers; None: no guarantee."""
        control = self.fits[data["use"]].control
        if error_rate is None or control is None:
            return None
        guarantee = control.targets[error_rate].model_dump() | {"confidence": control.confidence}
        return kept_share(guarantee, data["answers"]["held_out"].get(data["use"], ()))

    def page_data(
        self, number: int | None = None, error_rate: float | None = None
    ) -> dict[str, Any]:
        """The data of a page that shows at most `number` answers or parts, drawn at random.

        With an `error_rate` it says which of them the calibrator keeps. Raises `InputError` where
        the answers are not of the calibrator's kind, or none has a part.
        """
        texts, parents = self.texts, None
        if self.parts is not None:
            if self.judged.is_empty():
                raise InputError(f"{self.name}: no answer holds the parts that --parts states.")
            texts, parents = part_texts(self.judged, texts), texts
        answers = texts
        if number is not None and number < texts.height:
            answers = choose_answers(texts, number, SEED)
        places = pl.DataFrame({"example_id": texts["example_id"]}).with_row_index("row")
        rows = answers.join(places, on="example_id", maintain_order="left")["row"]
        judged = self.judged[rows]
        answers = answers.hstack(confidence_columns(judged, self.fits, self.task))
        decision = None
        if error_rate is not None:
            decision = decide(judged, self.fits, error_rate, self.task)
        if parents is not None:
            parents = parents.filter(pl.col("example_id").is_in(answers["parent_id"].implode()))
            parents = parents.select(*ANSWER, *OF_PARENT, "peak")
        return contents(
            answers,
            [entry for entry in entries(OF_FILES) if PROBABILITY + entry["id"] in answers.columns],
            models={model: model for model in answers["model"].unique().sort()},
            tasks={task: task for task in answers["task"].unique().sort()},
            run=self.name,
            total=self.total or texts.height,
            split=None,
            parents=parents,
            use=None if self.fitted_on is None else self.fitted_on.estimator,
            decision=decision,
        )

    @cached_property
    def data(self) -> dict[str, Any]:
        """The data of a page that shows all answers."""
        return self.page_data()

    @property
    def name(self) -> str:
        """The name of the answers' file."""
        return Path(self.answers.source).name

    @property
    def texts(self) -> pl.DataFrame:
        """What the page shows of each answer besides its confidence."""
        frame = self.answers.frame
        # Tokens without texts show only numbers; a text without numbers is one token.
        tokens = (
            pl.when(pl.col("tokens").is_not_null())
            .then("tokens")
            .when(pl.col("surprisal").is_not_null())
            .then(pl.col("surprisal").list.eval(pl.element().cast(pl.String).str.head(0)))
            .otherwise(pl.concat_list(pl.col("answer").fill_null("")))
        )
        pairs = zip(self.answers.rows, frame["prompt"], strict=True)
        questions = [find_question(row, prompt) for row, prompt in pairs]
        # Half a surrogate pair, as of an emoji that was cut, is no text that a frame holds.
        questions = json.loads(json.dumps(questions, ensure_ascii=False).encode(errors="replace"))
        texts = _with_task(frame, self.answers).hstack(pl.DataFrame(questions, schema=QUESTIONS))
        texts = texts.with_columns(
            pl.col("group_id").fill_null(pl.col("example_id")),
            pl.col("prompt").fill_null(""),
            tokens=tokens,
            peak=PEAK,
        )
        texts = texts.with_columns(
            prediction=pl.coalesce(
                "answer", pl.col("tokens").list.join(""), pl.format("({})", "no_answer")
            ),
            error_kind=pl.lit(None, pl.String),
        )
        names = ["model", "task", *TRACE, *TASK, "prediction", "correct", "error_kind", "peak"]
        return texts.select(*dict.fromkeys(names))

    @cached_property
    def judged(self) -> pl.DataFrame:
        """What gets a verdict: the answers, or their parts."""
        frame, part_labels = self.answers.frame, self.answers.part_labels
        return frame if self.parts is None else part_answers(frame, self.parts, part_labels)[0]

    def rows_to_judge(self) -> tuple[dict[str, Any], dict[str, str]]:
        """By id the row of each answer or part that gets a verdict, and the name of each part."""
        rows = dict(zip(self.answers.frame["example_id"], self.answers.rows, strict=True))
        if self.parts is None:
            return rows, {}
        ids, parents, names = self.judged.select("example_id", "parent_id", "name")
        part_rows = {id: rows[parent] for id, parent in zip(ids, parents, strict=True)}
        return part_rows, dict(zip(ids, names, strict=True))


def decide(
    records: pl.DataFrame, fits: Mapping[str, Predictor], error_rate: float, task: str | None
) -> dict[str, Any]:
    """Which answers the recommended estimator keeps at an error rate, ready for JSON.

    `threshold` is the smallest probability of those kept, as the guarantee's may be of another
    score. Raises `InputError` without a calibrator.
    """
    name = next((fit.fitted_on.estimator for fit in fits.values()), None)
    if name is None or name not in fits:
        raise InputError("--error-rate needs --calibrator, one that recommends an estimator.")
    scored = score_answers(records, fits[name], error_rate, task)
    kept_answers = scored.filter("keep")
    n_undecided = scored["keep"].null_count()
    undecided = f", {n_undecided} have no decision" if n_undecided else ""
    return {
        "rate": error_rate,
        "threshold": kept_answers["probability"].min(),
        "about": f"At an error rate of {rate_text(error_rate)} {kept_answers.height} of "
        f"{scored.height} are kept{undecided}.",
        "kept": scored["keep"].to_list(),
        "reasons": scored["reason"].to_list(),
    }


def part_texts(parts: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """What the page shows of `parts`, of answers with these `texts`."""
    of_part = ("tokens", "surprisal", "entropy", "correct")
    parts = parts.select(
        "example_id", "parent_id", "start", "end", *of_part, prediction="value", part="name"
    )
    shared = texts.drop(*of_part, "prediction", "peak").rename({"example_id": "parent_id"})
    joined = parts.join(shared, on="parent_id", validate="m:1", maintain_order="left")
    joined = joined.with_columns(peak=PEAK, parent_task="task")
    return joined.select(*[name for name in texts.columns if name != "peak"], "peak", *PLACE)


def _with_task(frame: pl.DataFrame, answers: Answers) -> pl.DataFrame:
    """A frame of `answers` that names their model and task."""
    task = answers.metadata.get("task") or Path(answers.source).stem
    return frame.with_columns(pl.col("model").fill_null(UNKNOWN_MODEL), task=pl.lit(task))


def load_page_answers(
    answers: Source | PageAnswers,
    calibrator: str | Path | Calibrator | None = None,
    task: str | None = None,
    parts: str | Path | Mapping[str, Any] | None = None,
    reading: Reading | None = None,
    number: int | None = None,
) -> PageAnswers:
    """Read answers with what a page shows of them. Returned unchanged if already loaded.

    Of a file that holds far more than `number` answers those that may be shown are kept.
    """
    if isinstance(answers, PageAnswers):
        return answers
    fits: dict[str, Predictor] = {}
    if calibrator is not None:
        loaded = calibrator_in(calibrator)
        fits = trace_predictors(loaded.file, loaded.where)
        reading = loaded.reading(reading)
    stated_parts = parts_in(parts) or next((fit.fitted_on.parts for fit in fits.values()), None)
    if number is None or stated_parts or isinstance(answers, Answers):
        source, total = answers_in(answers, reading, keep_rows=True), None
    else:

        def draw(every: Answers) -> list[str]:
            frame = every.frame.with_columns(pl.col("model").cast(pl.String))
            if frame.height > number:
                frame = choose_answers(_with_task(frame, every), number, SEED)
            return frame["example_id"].to_list()

        source, total = read_chosen(answers, reading, draw, lambda _: (), question_fields)
    task = task or source.metadata.get("task")
    return PageAnswers(source, fits, task, stated_parts, total)
