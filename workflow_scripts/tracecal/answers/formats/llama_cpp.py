"""Answers of llama.cpp's server."""

import math
from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.token_list import Token, token_step
from tracecal.answers.raw_answer import Known, RawAnswer
from tracecal.answers.step import Step, ids_of
from tracecal.answers.stop_token import stop_token
from tracecal.answers.wrong_row import WrongRow


class LlamaCpp(BaseModel):
    """An answer of llama.cpp's `/completion`."""

    content: str
    tokens: list[int] | None = None
    stop_type: str | None = None
    model: str | None = None
    completion_probabilities: list[Token] | None = None


def read_llama_cpp(body: dict[str, Any]) -> RawAnswer:
    """llama.cpp's format. Its log-probabilities are of the raw distribution; `prob` is not."""
    answer = LlamaCpp.model_validate(body)
    decoded = answer.completion_probabilities or []
    steps = [_llama_cpp_step(token) for token in decoded]
    sampled = any(token.get("prob", token.get("probs")) is not None for token in decoded)
    processed: Known = "unknown" if not decoded else "yes" if sampled else "no"
    return RawAnswer(
        answer=answer.content,
        steps=steps,
        token_ids=ids_of(steps) or answer.tokens or None,
        finish_reason=answer.stop_type,
        stop_token=stop_token(answer.content, steps),
        processed=processed,
        model=answer.model,
    )


def _llama_cpp_step(token: Token) -> Step:
    """Of a generated token; old builds write `content` and `probs` instead."""
    try:
        if (probs := token.get("probs")) is None:
            top = token.get("top_logprobs") or token.get("top_probs") or ()
            return token_step(_logged(token), [_logged(other) for other in top])
        # They state the chosen token's probability only in the list of the most likely ones.
        top, text = [(other["tok_str"], _log(other["prob"])) for other in probs], token["content"]
        return Step(text, None, dict(top).get(text), top, text)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow("its probabilities are no objects with 'content' and 'probs'") from error


def _logged(token: Token) -> Token:
    """A token with its log-probability, where its probability after sampling is stated instead."""
    prob = token.get("prob")
    return token if prob is None else {**token, "logprob": _log(prob)}


def _log(probability: float) -> float | None:
    """ln p; null for 0, the probability of a token that sampling excludes."""
    if math.isnan(probability) or probability < 0:
        raise WrongRow(f"it has the probability {probability:g}")
    return math.log(probability) if probability > 0 else None
