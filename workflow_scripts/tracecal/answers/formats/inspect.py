"""Samples of Inspect AI logs."""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.token_list import Logprobs, token_steps
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.stop_token import stop_token
from tracecal.answers.verdict import verdict
from tracecal.answers.wrong_row import WrongRow


class InspectChoice(BaseModel):
    message: dict[str, Any] = {}
    stop_reason: str | None = None
    logprobs: Logprobs | None = None


class Output(BaseModel):
    model: str | None = None
    choices: list[InspectChoice] = Field(min_length=1)


class InspectSample(BaseModel):
    """A sample of an Inspect AI log, as `inspect log dump` writes it.

    Its `input` is not the prompt: a chat template makes the prompt from it.
    """

    output: Output
    scores: dict[str, dict[str, Any]] | None = None


def read_inspect(body: dict[str, Any], label: str | None) -> RawAnswer:
    """A sample's first choice; its verdict is that of the only scorer, unless `label` names one."""
    sample = InspectSample.model_validate(body)
    choice = sample.output.choices[0]
    content = _text(choice.message.get("content"))
    thoughts = _thoughts(choice.message.get("content"))
    steps = token_steps(choice.logprobs and choice.logprobs.content)
    return RawAnswer(
        answer=content,
        thoughts=thoughts,
        steps=steps,
        finish_reason=choice.stop_reason,
        stop_token=stop_token(content if thoughts is None else None, steps),
        model=sample.output.model,
        correct=_inspect_verdict(sample.scores or {}, label),
    )


def _inspect_verdict(scores: dict[str, dict[str, Any]], label: str | None) -> bool | None:
    if label is not None or not scores:
        return None
    if len(scores) > 1:
        raise WrongRow(
            f"it has several verdicts ({', '.join(scores)}); name one, such as "
            f"'scores.{next(iter(scores))}.value', as 'label'"
        )
    return verdict(next(iter(scores.values())).get("value"))


def _text(content: Any) -> str | None:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content


def _thoughts(content: Any) -> str | None:
    """The reasoning among a message's parts, empty where it is not shown; null without any."""
    parts = content if isinstance(content, list) else ()
    told = [
        one.get("reasoning")
        for one in parts
        if isinstance(one, dict) and one.get("type") == "reasoning"
    ]
    return "".join(one for one in told if isinstance(one, str)) if told else None
