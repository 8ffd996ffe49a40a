"""Whether answers are of the kind that a calibrator was fitted on."""

import polars as pl

from tracecal.calibrate.fitted_on import FittedOn
from tracecal.errors import InputError

QUESTIONS = {
    "stop_token": {
        "included": "count the token that ends an answer",
        "absent": "leave out the token that ends an answer",
        "what": "whether the token that ends an answer is counted",
        "state": "--stop-token",
    },
    "processed": {
        "yes": "are of probabilities that a temperature, a penalty or a cut has bent",
        "no": "are of the model's raw probabilities",
        "what": "whether probabilities are the model's raw ones",
        "state": "--processed",
    },
}
OPEN = ("unknown", "none")


def require_same_kind(answers: pl.DataFrame, fitted_on: FittedOn) -> None:
    """Raise `InputError` where answers are of another model or another kind of trace.

    What is not known of either is taken to agree; see `open_questions`.
    """
    _require_model(answers["model"].drop_nulls().unique().sort().to_list(), fitted_on)
    traced = answers.filter(pl.col("surprisal").is_not_null())
    for column, words in QUESTIONS.items():
        fitted = getattr(fitted_on, column)
        found = traced.filter(~pl.col(column).is_in([fitted, *OPEN]))
        if fitted not in OPEN and found.height:
            raise InputError(
                f"the calibrator was fitted on traces that {words[fitted]}, and {found.height} "
                f"answer(s), such as {found['example_id'][0]!r}, {words[found[column][0]]}: its "
                "probabilities do not hold for them. Calibrate on answers like these, or correct "
                f"what is known of them with {words['state']}."
            )


def open_questions(answers: pl.DataFrame, fitted_on: FittedOn) -> list[str]:
    """What is not known of the calibrator or of the answers, a sentence each."""
    traced = answers.filter(pl.col("surprisal").is_not_null())
    return [
        f"it is not known of the {whose} {words['what']} ({words['state']})"
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
    names = {_plain(name) for name in (fitted_on.model, *fitted_on.known_as)}
    for model in models:
        if not names & {_plain(model), _plain(model.rsplit("/", 1)[-1])}:
            raise InputError(
                f"the calibrator was fitted on answers of {fitted_on.model!r}, and there are "
                f"answers of {model!r}: calibrate on that model's answers. Where both are one "
                f"model under two names, say so with --model {fitted_on.model}."
            )


def _plain(name: str) -> str:
    return name.lower()
