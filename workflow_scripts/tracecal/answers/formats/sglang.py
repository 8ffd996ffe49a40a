"""Answers of SGLang."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.step import Step, ids_of, require_id_each
from tracecal.answers.stop_token import stop_token
from tracecal.answers.wrong_row import WrongRow

Triple = tuple[float | None, int, str | None]


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
