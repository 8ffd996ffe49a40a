"""Whether answers match the model, task and kind of trace that a calibrator was fitted on."""

import hashlib

import numpy as np
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
    "reasoning": {
        "none": "are of answers without reasoning before them",
        "apart": "leave out the reasoning tokens that precede an answer",
        "within": "include the reasoning tokens that precede an answer",
        "alone": "are of the reasoning tokens that precede an answer",
        "what": "whether traces include reasoning",
        "option": "--reasoning",
    },
}
OPEN = {"reasoning": ()} | dict.fromkeys(("stop_token", "processed"), ("unknown", "none"))
# Servers may list the chosen token besides the k likeliest.
TOP_K_MARGIN = 1
# The beginning of another question in an answer's text.
NEXT_QUESTION = r"\n[^\S\n]*(?:Q|Question|Problem|Input|User|Human)\s*(?:\d+\s*)?:"
KNOWN_ANSWER = "the calibrator was fitted on this very answer: its probability is not out-of-sample"


def require_same_kind(answers: pl.DataFrame, fitted_on: FittedOn, task: str | None = None) -> None:
    """Raise `InputError` where answers are of another model, task or kind of trace.

    Unknown properties of either side count as equal; see `open_questions`.
    """
    if task is not None and task != fitted_on.task:
        raise InputError(
            f"the calibrator was fitted on the task {fitted_on.task!r}, but the answers are of "
            f"{task!r}: calibrate on answers to that task. If both names mean the same task, add "
            f"--task {fitted_on.task}."
        )
    _require_model(answers["model"].drop_nulls().unique().sort().to_list(), fitted_on)
    traced = answers.filter(pl.col("surprisal").is_not_null())
    for column, words in QUESTIONS.items():
        fitted = getattr(fitted_on, column)
        others = traced.filter(~pl.col(column).is_in([fitted, *OPEN[column]]))
        if fitted not in OPEN[column] and others.height:
            raise InputError(
                f"the calibrator was fitted on traces that {words[fitted]}, but {others.height} "
                f"answer(s), such as {others['example_id'][0]!r}, {words[others[column][0]]}: its "
                "probabilities do not hold for them. Calibrate on answers like these, or correct "
                f"their kind with {words['option']}."
            )


def vocabulary_for(fitted_on: FittedOn, given: int | None) -> int | None:
    """The vocabulary's size for answers to be scored. Raises `InputError` for another size than
    the calibrator's.
    """
    if given is not None and fitted_on.vocabulary not in (None, given):
        raise InputError(
            f"the calibrator was fitted with a vocabulary of {fitted_on.vocabulary} tokens, not "
            f"{given}; leave out --vocabulary, or calibrate with {given}."
        )
    return given or fitted_on.vocabulary


def other_entropies(kind: str, top_k: int | None, fitted_on: FittedOn) -> str | None:
    """Why a threshold does not hold for entropies of this kind; null where it does.

    `kind` is 'exact' or 'top-k', then of `top_k` listed tokens; null: not known.
    """
    if kind == fitted_on.entropy and (
        top_k is None or fitted_on.top_k is None or abs(top_k - fitted_on.top_k) <= TOP_K_MARGIN
    ):
        return None
    fitted, found = _entropies(fitted_on.entropy, fitted_on.top_k), _entropies(kind, top_k)
    return (
        f"the threshold was certified for {fitted}, and this answer has {found}: calibrate on "
        "answers like it"
    )


def _entropies(kind: str, top_k: int | None) -> str:
    listed = f"the {top_k} likeliest tokens" if top_k else "the likeliest tokens"
    return {"exact": "exact entropies", "top-k": f"entropies from {listed}"}.get(
        kind, "no entropies"
    )


def fingerprints(answers: pl.DataFrame) -> pl.Series:
    """A short digest of each answer's question and trace; null without a trace."""
    columns = ("example_id", "prompt", "surprisal")
    return pl.Series(
        [
            None if surprisal is None else _digest(prompt or example_id, surprisal)
            for example_id, prompt, surprisal in answers.select(columns).iter_rows()
        ],
        dtype=pl.String,
    )


def _digest(question: str, surprisal: list[float]) -> str:
    trace = np.asarray(surprisal, dtype=np.float32).tobytes()
    return hashlib.blake2b(question.encode() + b"\0" + trace, digest_size=6).hexdigest()


def open_questions(answers: pl.DataFrame, fitted_on: FittedOn) -> list[str]:
    """What is unknown of the calibrator or the answers, one sentence each."""
    traced = answers.filter(pl.col("surprisal").is_not_null())
    unknown = [
        f"it is not known of the {whose} {words['what']} ({words['option']})"
        for column, words in QUESTIONS.items()
        for whose, kinds in (
            ("calibrator", [getattr(fitted_on, column)]),
            ("answers", traced[column].to_list()),
        )
        if "unknown" in kinds
    ]
    if fitted_on.model is None or traced["model"].null_count():
        whose = "answers" if fitted_on.model else "calibrator"
        unknown.append(f"it is not known of the {whose} which model they are by (--model)")
    return unknown


def run_on(answers: pl.DataFrame) -> str | None:
    """A warning where answers' texts run on into another question; null where none does."""
    going_on = answers.filter(pl.col("answer").str.contains(NEXT_QUESTION))
    if not going_on.height:
        return None
    return (
        f"{going_on.height} of {answers.height} answers, such as {going_on['example_id'][0]!r}, "
        "run on into another question, whose tokens count as theirs: decode with a stop string, "
        "or cut texts and traces there"
    )


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
