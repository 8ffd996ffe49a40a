"""Rows of Every Eval Ever's instance files (``instance_level_eval_0.3.0``): texts and verdicts.

The schema has no place for log-probabilities, so these answers have no trace until a replay.
"""

from typing import Any

from pydantic import BaseModel

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.raw_answer import RawAnswer
from tracecal.errors import WrongRow


class EEEInput(BaseModel):
    raw: str
    formatted: str | None = None


class EEEOutput(BaseModel):
    raw: list[str]
    reasoning_trace: list[str] | None = None


class EEEMessage(BaseModel):
    role: str
    content: str | None = None
    reasoning_trace: str | None = None


class EveryEvalEver(BaseModel):
    """A row of an instance file."""

    model_id: str
    interaction_type: str
    input: EEEInput
    output: EEEOutput | None = None
    messages: list[EEEMessage] | None = None
    evaluation: dict[str, Any]


def read(row: Row) -> RawAnswer:
    """Read the response of a single turn, or the last message of the assistant."""
    instance = EveryEvalEver.model_validate(row)
    if instance.output is not None:
        if len(instance.output.raw) != 1:
            raise WrongRow(f"its output has {len(instance.output.raw)} responses; expected one")
        answer: str | None = instance.output.raw[0]
        thoughts = "".join(instance.output.reasoning_trace or ()) or None
    else:
        turns = [turn for turn in instance.messages or () if turn.role == "assistant"]
        if not turns:
            raise WrongRow("it has neither an output nor a message of the assistant")
        answer, thoughts = turns[-1].content, turns[-1].reasoning_trace or None
    return RawAnswer(
        answer=answer,
        thoughts=thoughts,
        prompt=instance.input.formatted,
        model=instance.model_id,
        verdicts={"evaluation.is_correct": instance.evaluation.get("is_correct")},
    )


def recognises(row: Row) -> bool:
    """Whether a row has the fields that the schema requires."""
    return {"evaluation_id", "sample_id", "interaction_type", "evaluation"} <= row.keys()


FORMAT = Format("every_eval_ever", recognises, EveryEvalEver, read)
