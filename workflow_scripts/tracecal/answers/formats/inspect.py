"""Samples of an Inspect AI log, as `inspect log dump` writes them.

The ``input`` of a sample is not the prompt: a chat template makes the prompt from it.
"""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.format import Format, Row, split_list
from tracecal.answers.formats.logprobs import read_logprobs
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import Content, split_content
from tracecal.errors import WrongRow


class InspectMessage(BaseModel):
    content: Content = None


class InspectChoice(BaseModel):
    message: InspectMessage = InspectMessage()
    stop_reason: str | None = None
    logprobs: Any = None


class InspectOutput(BaseModel):
    model: str | None = None
    choices: list[InspectChoice] = Field(min_length=1)


class InspectSample(BaseModel):
    """A sample of an Inspect AI log."""

    output: InspectOutput
    scores: dict[str, dict[str, Any]] | None = None


def recognises(row: Row) -> bool:
    """Whether the `output` of a row has `choices`, or a sample has no output."""
    if isinstance(row.get("output"), dict):
        return "choices" in row["output"]
    return "output" not in row and {"epoch", "input", "messages"} <= row.keys()


def read(row: Row) -> RawAnswer:
    """Read the first choice of a sample, with the verdict of each scorer."""
    if "output" not in row:
        raise WrongRow("it is a sample of Inspect without output: the model gave no answer")
    sample = InspectSample.model_validate(row)
    choice = sample.output.choices[0]
    text, thoughts = split_content(choice.message.content)
    steps = read_logprobs(choice.logprobs)
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


def split(row: Row) -> dict[str, Row]:
    """The choices of a sample; those after the first have no scores."""
    outputs = split_list(row.get("output") or {}, "choices")
    if len(outputs) == 1:
        return {"": row}
    scores = {"": row.get("scores")}
    return {
        ending: row | {"output": output, "scores": scores.get(ending)}
        for ending, output in outputs.items()
    }


FORMAT = Format("inspect", recognises, InspectSample, read, split=split)
