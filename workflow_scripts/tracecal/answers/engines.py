"""Answers in the native formats of llama.cpp's server, Ollama and SGLang."""

import math
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.answers.record import Known, RawAnswer, stop_token
from tracecal.answers.tokens import (
    Step,
    Token,
    WrongRow,
    ids_of,
    require_id_each,
    token_step,
    token_steps,
)

Triple = tuple[float | None, int, str | None]


class LlamaCpp(BaseModel):
    """An answer of llama.cpp's `/completion`."""

    content: str
    tokens: list[int] | None = None
    stop_type: str | None = None
    model: str | None = None
    completion_probabilities: list[Token] | None = None


class Message(BaseModel):
    content: str | None = None
    thinking: str | None = None


class Ollama(BaseModel):
    """An answer of Ollama's `/api/generate` or `/api/chat`."""

    model: str | None = None
    response: str | None = None
    thinking: str | None = None
    message: Message | None = None
    done_reason: str | None = None
    logprobs: list[Token] | None = None


class Finish(BaseModel):
    type: str | None = None


class Meta(BaseModel):
    finish_reason: Finish | None = None
    output_token_logprobs: list[Triple | None] | None = None
    output_top_logprobs: list[list[Triple] | None] | None = None


class SGLang(BaseModel):
    """An answer of SGLang's `/generate`."""

    text: str | None = None
    output_ids: list[int] | None = None
    meta_info: Meta


def read_llama_cpp(body: dict[str, Any]) -> RawAnswer:
    """llama.cpp's format. Its log-probabilities are of the raw distribution; `prob` is not."""
    answer = LlamaCpp.model_validate(body)
    decoded = answer.completion_probabilities or []
    steps = [_step(token) for token in decoded]
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


def _step(token: Token) -> Step:
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


def read_ollama(body: dict[str, Any]) -> RawAnswer:
    """Ollama's format, of its completions or of its chat."""
    answer = Ollama.model_validate(body)
    text = answer.response if answer.message is None else answer.message.content
    thoughts = (answer if answer.message is None else answer.message).thinking or None
    steps = token_steps(answer.logprobs)
    return RawAnswer(
        answer=text,
        thoughts=thoughts,
        steps=steps,
        finish_reason=answer.done_reason,
        stop_token=stop_token(text if thoughts is None else None, steps),
        model=answer.model,
    )


def read_sglang(body: dict[str, Any]) -> RawAnswer:
    """SGLang's format: (log-probability, id, text or null) of each token."""
    answer = SGLang.model_validate(body)
    chosen = answer.meta_info.output_token_logprobs or []
    tops = answer.meta_info.output_top_logprobs or [None] * len(chosen)
    if len(tops) != len(chosen):
        raise WrongRow(f"it has {len(chosen)} tokens and {len(tops)} lists of the most likely")
    steps = [_triple_step(triple, top) for triple, top in zip(chosen, tops, strict=True)]
    require_id_each(steps, answer.output_ids)
    finish = answer.meta_info.finish_reason and answer.meta_info.finish_reason.type
    return RawAnswer(
        answer=answer.text,
        steps=steps,
        token_ids=answer.output_ids or ids_of(steps),
        finish_reason=finish,
        stop_token=stop_token(answer.text, steps),
    )


def _triple_step(triple: Triple | None, top: Sequence[Triple] | None) -> Step:
    if triple is None:
        return Step(None, None, None)
    logprob, token_id, text = triple
    return Step(text, token_id, logprob, [(key, value) for value, key, _ in top or ()], token_id)


def _log(probability: float) -> float | None:
    """ln p; null for 0, the probability of a token that sampling excludes."""
    if math.isnan(probability) or probability < 0:
        raise WrongRow(f"it has the probability {probability:g}")
    return math.log(probability) if probability > 0 else None
