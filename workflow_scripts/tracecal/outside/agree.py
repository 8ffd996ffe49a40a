"""Whether answers match the model and kind of trace that a calibrator was fitted on."""

import polars as pl

from tracecal.calibrate.fitted_on import FittedOn
from tracecal.errors import InputError

QUESTIONS = {
    "stop_token": {
        "included": "include the stop token",
        "absent": "leave out the stop token",
        "what": "whether traces include the stop token",
        "option": "--stop-token",
    },
    "processed": {
        "yes": "hold probabilities changed by temperature, penalties or truncation",
        "no": "hold the model's raw probabilities",
        "what": "whether probabilities are the model's raw ones",
        "option": "--processed",
    },
}
OPEN = ("unknown", "none")


def require_same_kind(answers: pl.DataFrame, fitted_on: FittedOn) -> None:
    """Raise `InputError` where answers come from another model or another kind of trace.

    Unknown properties of either side count as equal; see `open_questions`.
    """
    _require_model(answers["model"].drop_nulls().unique().sort().to_list(), fitted_on)
    traced = answers.filter(pl.col("surprisal").is_not_null())
    for column, words in QUESTIONS.items():
        fitted = getattr(fitted_on, column)
        others = traced.filter(~pl.col(column).is_in([fitted, *OPEN]))
        if fitted not in OPEN and others.height:
            raise InputError(
                f"the calibrator was fitted on traces that {words[fitted]}, but {others.height} "
                f"answer(s), such as {others['example_id'][0]!r}, {words[others[column][0]]}: its "
                "probabilities do not hold for them. Calibrate on answers like these, or correct "
                f"their kind with {words['option']}."
            )


def open_questions(answers: pl.DataFrame, fitted_on: FittedOn) -> list[str]:
    """What is unknown of the calibrator or the answers, one sentence each."""
    traced = answers.filter(pl.col("surprisal").is_not_null())
    return [
        f"it is not known of the {whose} {words['what']} ({words['option']})"
        for column, words in QUESTIONS.items()
        for whose, kinds in (
            ("calibrator", [getattr(fitted_on, column)]),
            ("answers", traced[column].to_list()),
        )
        if "unknown" in kinds
    ]


def _require_model(models: list[str], fitted_on: FittedOn) -> None:
    if fitted_on.model is None or not models:
        return
    names = {name.lower() for name in (fitted_on.model, *fitted_on.known_as)}
    for model in models:
        if not names & {model.lower(), model.lower().rsplit("/", 1)[-1]}:
            raise InputError(
                f"the calibrator was fitted on answers of {fitted_on.model!r}, but some answers "
                f"are by {model!r}: calibrate on that model's answers. If both names mean the "
                f"same model, add --model {fitted_on.model}."
            )
