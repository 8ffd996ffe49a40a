"""Answers of SGLang's `/generate`: (log-probability, id, text or None) of each token."""

from collections.abc import Sequence

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.step import Step, require_id_per_step, step_token_ids
from tracecal.errors import WrongRow

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


def read(row: Row) -> RawAnswer:
    """Read an answer of `/generate`."""
    answer = SGLang.model_validate(row)
    triples = answer.meta_info.output_token_logprobs or []
    tops = answer.meta_info.output_top_logprobs or [None] * len(triples)
    if len(tops) != len(triples):
        raise WrongRow(f"it has {len(triples)} tokens and {len(tops)} lists of the most likely")
    steps = [_step(triple, top) for triple, top in zip(triples, tops, strict=True)]
    require_id_per_step(steps, answer.output_ids)
    finish = answer.meta_info.finish_reason and answer.meta_info.finish_reason.type
    return RawAnswer(
        answer=answer.text,
        steps=steps,
        token_ids=answer.output_ids or step_token_ids(steps),
        finish_reason=finish,
        stop_token=infer_stop_token(answer.text, steps),
    )


def _step(triple: Triple | None, top: Sequence[Triple] | None) -> Step:
    if triple is None:
        return Step(None, None, None)
    logprob, token_id, text = triple
    likeliest = [(other_id, other_logprob) for other_logprob, other_id, _ in top or ()]
    return Step(text, token_id, logprob, likeliest, token_id)


FORMAT = Format("sglang", lambda row: isinstance(row.get("meta_info"), dict), SGLang, read)
