"""Description of the labelled answers that a calibrator is fitted on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

from tracecal.answers.parts.parts import Parts
from tracecal.answers.record import ENTROPY_KIND
from tracecal.answers.trace import vocabulary_used
from tracecal.calibrator.schema import CalibrationData, FurtherColumn
from tracecal.calibrator.trace_kinds import QUESTIONS, model_spellings
from tracecal.calibrator.training_set import TrainingSet
from tracecal.errors import InputError
from tracecal.io.log import LOGGER

METADATA = ("revision", "stop_token", "processed", "reasoning", "entropy", "top_k", "vocabulary")
METADATA += ("vocabulary_from",)


def describe_answers(
    training: TrainingSet,
    task: str,
    revision: str | None = None,
    vocabulary: int | None = None,
    parts: Parts | None = None,
) -> CalibrationData:
    """Describe labelled answers; raises `InputError` if models or kinds of trace are mixed."""
    answers = training.records
    given = answers.filter(pl.col("no_answer").is_null())
    entropy, top_k = usual_entropies(answers)
    model, *known_as = _models(answers)
    with_stop = given.filter(pl.col("stop_token") != "none")
    stop_token = _known_value(with_stop, "stop_token", "none")
    processed = _known_value(given, "processed", "unknown")
    reasoning = _single_value(given, "reasoning", "kinds") or "none"
    dates = _days(answers["created"])
    vocabulary, vocabulary_from = vocabulary_used(answers, vocabulary)
    return CalibrationData(
        model=model,
        known_as=known_as,
        revision=revision,
        task=task,
        row_tasks=training.row_tasks,
        stop_token=stop_token,
        processed=processed,
        decodings=tuple(answers["decoding"].drop_nulls().unique().sort()),
        reasoning=reasoning,
        entropy=entropy,
        top_k=top_k,
        vocabulary=vocabulary,
        vocabulary_from=vocabulary_from,
        n=answers.height,
        groups=training.n_questions,
        unit=training.unit,
        base_rate=float(answers["correct"].mean()),
        answers=tuple(answers["fingerprint"].drop_nulls()),
        dates=dates,
        parts=parts,
        also=tuple(
            FurtherColumn(name=name, path=path) for name, path in training.own_columns.items()
        ),
    )


def describe_traces(
    metadata: Mapping[str, str],
    correct: pl.Series,
    model: str,
    known_as: Sequence[str],
    task: str,
) -> CalibrationData:
    """Describe a run's answers by the `metadata` of its traces and their labels.

    The schema's defaults describe traces decoded here: raw, exact, with the token that ends an
    answer.
    """
    names = {*known_as, *filter(None, metadata.get("known_as", "").split("\n"))} - {model}
    return CalibrationData(
        model=model,
        known_as=tuple(sorted(names)),
        task=task,
        n=len(correct),
        base_rate=float(correct.mean()),
        parts=Parts.model_validate_json(metadata["parts"]) if "parts" in metadata else None,
        **{name: metadata[name] for name in METADATA if name in metadata},
    )


def usual_entropies(answers: pl.DataFrame) -> tuple[str, int | None]:
    """Return the most frequent kind of entropies and its usual number of listed tokens."""
    traced = answers.filter(pl.col("entropy").is_not_null()).select("top_k", kind=ENTROPY_KIND)
    kind = traced["kind"].mode().min() or "none"
    return kind, traced.filter(kind=kind)["top_k"].drop_nulls().mode().min()


def _days(created: pl.Series) -> tuple[str, str] | None:
    """Return the first and the last day (UTC) of answers; None if a time is unknown."""
    if created.null_count():
        return None
    ends = (datetime.fromtimestamp(time, UTC) for time in (created.min(), created.max()))
    first, last = (f"{end:%Y-%m-%d}" for end in ends)
    return first, last


def _single_value(answers: pl.DataFrame, column: str, kinds: str) -> str | None:
    """Return the only value of a column; None without one. Raises `InputError` for several."""
    values = answers[column].drop_nulls().unique().sort().to_list()
    if len(values) > 1:
        raise InputError(
            f"the answers are of several {kinds} ({column}: {', '.join(values)}), but a calibrator "
            f"is for one. Split the file, or set one with --{column.replace('_', '-')}."
        )
    return values[0] if values else None


def _known_value(answers: pl.DataFrame, column: str, default: str) -> str:
    """Return the only known value of a column, or `default` without any value.

    Unknown values count as equal to the known one, as in scoring.
    """
    is_unknown = pl.col(column) == "unknown"
    known_answers = answers.filter(~is_unknown)
    if known_answers.height and (count := answers.filter(is_unknown).height):
        LOGGER.warning(
            "%d of %d labelled answers do not say %s: they count as the others (%s)",
            *(count, answers.height, QUESTIONS[column]["what"], QUESTIONS[column]["option"]),
        )
    rows = known_answers if known_answers.height else answers
    return _single_value(rows, column, "kinds") or default


def _models(answers: pl.DataFrame) -> list[str | None]:
    """Return the model's shortest name (None if unknown), then its longer spellings.

    Raises `InputError` for several models.
    """
    names = answers["model"].drop_nulls().unique().sort().to_list()
    for name in names:
        if all(name.lower() in model_spellings(spelling) for spelling in names):
            return [name, *(spelling for spelling in names if spelling != name)]
    return [_single_value(answers, "model", "models")]
