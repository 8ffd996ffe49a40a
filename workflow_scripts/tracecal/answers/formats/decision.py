"""Answers of one decision: of classifiers, decision models and logits of options, without tokens.

A row holds the probability of its answer (`probability`), or one of each option by its label
(`probabilities`), or their logits (`logits`). It is a trace of one token, whose alternatives are
the options.
"""

import math
from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.layout import Layout, Row
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.tokens import SLACK, log_of, make_step
from tracecal.errors import WrongRow

ANSWERS = ("answer", "prediction", "predicted", "choice", "decision", "predicted_label")
PROBABILITIES = ("probabilities", "probs", "class_probabilities", "option_probabilities")
LOGITS = ("logits", "option_logits")
PROBABILITY = ("probability", "prob")
TOKENS = ("tokens", "logprobs", "token_logprobs", "surprisal", "token_ids", "lower", "keep")


class Decision(BaseModel):
    """One decision; its answer and probabilities have one of several names."""

    model: str | None = None
    prompt: str | None = None


def recognises(row: Row) -> bool:
    """Whether a row has probabilities of options, or of its answer, and no tokens."""
    if any(row.get(name) is not None for name in TOKENS):
        return False
    if any(_is_table(row.get(name)) for name in (*PROBABILITIES, *LOGITS)):
        return True
    return _answer(row) is not None and any(_is_number(row.get(name)) for name in PROBABILITY)


def read(row: Row) -> RawAnswer:
    """Read a decision. Raises `WrongRow` for numbers that are no probabilities of its answer."""
    decision, answer = Decision.model_validate(row), _answer(row)
    options = _options(row)
    exact, top = {}, []
    if not options:
        probability = next((row[name] for name in PROBABILITY if _is_number(row.get(name))), None)
        if probability is None:
            raise WrongRow("it has neither a probability of its answer nor those of its options")
    else:
        answer = max(options, key=options.__getitem__) if answer is None else answer
        if answer not in options:
            raise WrongRow(f"its answer {answer!r} is none of its options ({', '.join(options)})")
        top = [(name, None, log_of(p, repr(name))) for name, p in options.items() if p > 0]
        probability = options[answer]
        if abs(sum(options.values()) - 1) <= SLACK:
            exact = {"entropy": [-sum(p * math.log(p) for p in options.values() if p > 0)]}
    return RawAnswer(
        answer=answer,
        steps=[make_step(answer, None, log_of(probability, repr(answer)), top)],
        exact=exact,
        tokens=None if answer is None else [answer],
        prompt=decision.prompt,
        model=decision.model,
        stop_token="none",
        stated={"correct": row.get("correct"), "label": row.get("label")},
    )


def _answer(row: Row) -> str | None:
    values = (row.get(name) for name in ANSWERS)
    return next((str(value) for value in values if isinstance(value, str | int)), None)


def _options(row: Row) -> dict[str, float]:
    """The probability of each option by its label; empty where the row has none."""
    for name in PROBABILITIES:
        if _is_table(table := row.get(name)):
            if min(table.values()) < 0 or sum(table.values()) > 1 + SLACK:
                raise WrongRow(f"its {name} are below 0, or sum to more than 1")
            return table
    for name in LOGITS:
        if _is_table(table := row.get(name)):
            highest = max(table.values())
            weights = {label: math.exp(logit - highest) for label, logit in table.items()}
            return {label: weight / sum(weights.values()) for label, weight in weights.items()}
    return {}


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 1 and all(map(_is_number, value.values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


FORMAT = Layout(
    name="decision",
    programs="classifiers and logits of options: one probability an answer",
    marks=recognises,
    function=read,
    fields=(*Decision.model_fields, *ANSWERS, *PROBABILITIES, *LOGITS, *PROBABILITY, "label"),
)
