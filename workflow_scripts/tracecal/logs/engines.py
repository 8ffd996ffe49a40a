"""Answers in the own forms of llama.cpp's server, of Ollama and of SGLang."""

import math
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.logs.openai import ChosenToken, Message, Token, merged, token_steps
from tracecal.logs.record import Known
from tracecal.logs.steps import Step, WrongRow
from tracecal.logs.trace import Given, stop_token

Triple = tuple[float | None, int, str | None]


class Probable(Token):
    """A token with its log-probability, or with the probability that sampling left it."""

    prob: float | None = None

    @property
    def value(self) -> float | None:
        return self.logprob if self.prob is None else _log(self.prob)


class Decoded(Probable):
    """A generated token of llama.cpp's; old builds give `content` and `probs` instead."""

    top_logprobs: list[Probable] | None = None
    top_probs: list[Probable] | None = None
    content: str | None = None
    probs: list["OldProbable"] | None = None


class OldProbable(BaseModel):
    tok_str: str
    prob: float


class LlamaCpp(BaseModel):
    """An answer of llama.cpp's `/completion`."""

    content: str
    tokens: list[int] | None = None
    stop_type: str | None = None
    model: str | None = None
    completion_probabilities: list[Decoded] | None = None


class Ollama(BaseModel):
    """An answer of Ollama's `/api/generate` or `/api/chat`."""

    model: str | None = None
    response: str | None = None
    message: Message | None = None
    done_reason: str | None = None
    logprobs: list[ChosenToken] | None = None


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


def read_llama_cpp(body: dict[str, Any]) -> Given:
    """llama.cpp's own form. Its log-probabilities are of the raw distribution; `prob` is not."""
    answer = LlamaCpp.model_validate(body)
    decoded = answer.completion_probabilities or []
    steps = [_old_step(one) if one.probs is not None else _step(one) for one in decoded]
    bent = any(one.prob is not None or one.probs is not None for one in decoded)
    processed: Known = "unknown" if not decoded else "yes" if bent else "no"
    ids = [step.token_id for step in steps]
    return Given(
        answer=answer.content,
        steps=steps,
        token_ids=ids if ids and None not in ids else answer.tokens or None,
        finish_reason=answer.stop_type,
        stop_token=stop_token(answer.content, steps),
        processed=processed,
        model=answer.model,
    )


def _step(one: Decoded) -> Step:
    top = one.top_logprobs or one.top_probs or ()
    if merged(one, top):
        return Step(one.token, None, None)
    return Step(one.token, one.id, one.value, [(each.key, each.value) for each in top], one.key)


def _old_step(one: Decoded) -> Step:
    """The probability of a token is that of the listed one with its text, if there is one."""
    top = [(each.tok_str, _log(each.prob)) for each in one.probs or ()]
    return Step(one.content, None, dict(top).get(one.content or ""), top, one.content)


def read_ollama(body: dict[str, Any]) -> Given:
    """Ollama's own form, of its completions or of its chat."""
    answer = Ollama.model_validate(body)
    text = answer.response if answer.message is None else answer.message.content
    steps = token_steps(answer.logprobs or (), None)
    return Given(
        answer=text,
        steps=steps,
        finish_reason=answer.done_reason,
        stop_token=stop_token(text, steps),
        model=answer.model,
    )


def read_sglang(body: dict[str, Any]) -> Given:
    """SGLang's own form: (log-probability, id, text or null) of each token."""
    answer = SGLang.model_validate(body)
    chosen = answer.meta_info.output_token_logprobs or []
    tops = answer.meta_info.output_top_logprobs or [None] * len(chosen)
    if len(tops) != len(chosen):
        raise WrongRow(f"it has {len(chosen)} tokens and {len(tops)} lists of the most likely")
    ids = answer.output_ids
    if ids and chosen and len(ids) != len(chosen):
        raise WrongRow(f"it has {len(ids)} token ids and {len(chosen)} log-probabilities")
    steps = [_triple_step(one, top) for one, top in zip(chosen, tops, strict=True)]
    finish = answer.meta_info.finish_reason and answer.meta_info.finish_reason.type
    return Given(
        answer=answer.text,
        steps=steps,
        token_ids=ids or (_triple_ids(chosen) if chosen else None),
        finish_reason=finish,
        stop_token=stop_token(answer.text, steps),
    )


def _triple_step(one: Triple | None, top: Sequence[Triple] | None) -> Step:
    if one is None:
        return Step(None, None, None)
    return Step(one[2], one[1], one[0], [(each[1], each[0]) for each in top or ()], one[1])


def _triple_ids(chosen: Sequence[Triple | None]) -> list[int] | None:
    return None if None in chosen else [one[1] for one in chosen]


def _log(probability: float) -> float | None:
    """ln p; null for a 0, which stands for a token that sampling would not take."""
    if math.isnan(probability) or probability < 0:
        raise WrongRow(f"it has the probability {probability:g}")
    return math.log(probability) if probability > 0 else None
