"""Samples of an Inspect AI log, as `inspect log dump` writes them.

The ``input`` of a sample is not the prompt: a chat template makes the prompt from it.
"""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.token_list import TokenList, read_steps
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token


class InspectChoice(BaseModel):
    message: dict[str, Any] = {}
    stop_reason: str | None = None
    logprobs: TokenList | None = None


class InspectOutput(BaseModel):
    model: str | None = None
    choices: list[InspectChoice] = Field(min_length=1)


class InspectSample(BaseModel):
    """A sample of an Inspect AI log."""

    output: InspectOutput
    scores: dict[str, dict[str, Any]] | None = None


def recognises(row: Row) -> bool:
    """Whether the `output` of a row has `choices`."""
    return isinstance(row.get("output"), dict) and "choices" in row["output"]


def read(row: Row) -> RawAnswer:
    """Read the first choice of a sample, with the verdict of each scorer."""
    sample = InspectSample.model_validate(row)
    choice = sample.output.choices[0]
    content = choice.message.get("content")
    text, thoughts = _text(content), _thoughts(content)
    steps = read_steps(choice.logprobs and choice.logprobs.content)
    return RawAnswer(
        answer=text,
        thoughts=thoughts,
        steps=steps,
        finish_reason=choice.stop_reason,
        stop_token=infer_stop_token(text if thoughts is None else None, steps),
        model=sample.output.model,
        verdicts={
            f"scores.{scorer}.value": score.get("value")
            for scorer, score in (sample.scores or {}).items()
        },
    )


def _text(content: Any) -> str | None:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        texts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content


def _thoughts(content: Any) -> str | None:
    """The reasoning among the parts of a message, empty where it is hidden; None without any."""
    parts = content if isinstance(content, list) else ()
    thoughts = [
        part.get("reasoning")
        for part in parts
        if isinstance(part, dict) and part.get("type") == "reasoning"
    ]
    return "".join(text for text in thoughts if isinstance(text, str)) if thoughts else None


FORMAT = Format("inspect", recognises, InspectSample, read)
