"""Rows of `samples_<task>_<date>.jsonl` of the lm-evaluation-harness."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats import openai_chat, openai_completions
from tracecal.answers.formats.format import Format, Row
from tracecal.answers.raw_answer import RawAnswer
from tracecal.errors import WrongRow

# The argument under which `tracecal.serving.lm_eval_models` keeps the response of a server.
RESPONSE_ARGUMENT = "response"


class LmEvalSample(BaseModel):
    """A row of a samples file."""

    arguments: Any = None
    resps: list[list[Any]] = Field(min_length=1)
    metrics: list[str] = []


def read(row: Row) -> RawAnswer:
    """Read the first response of a row, its prompt and its first metric.

    It has log-probabilities where the model that answered kept the response of its server.
    """
    sample = LmEvalSample.model_validate(row)
    text = next(iter(sample.resps[0]), None)
    if not isinstance(text, str):
        raise WrongRow("its response is not text: its task generates none")
    arguments = _arguments(sample.arguments)
    responses = (
        argument[RESPONSE_ARGUMENT]
        for argument in arguments
        if isinstance(argument, dict) and RESPONSE_ARGUMENT in argument
    )
    response = next(responses, None)
    return replace(
        _read_response(response) if isinstance(response, dict) else RawAnswer(answer=text),
        prompt=arguments[0] if arguments and isinstance(arguments[0], str) else None,
        verdicts={metric: row.get(metric) for metric in sample.metrics[:1]},
    )


def _read_response(response: Row) -> RawAnswer:
    """Read the response of a server, with one choice."""
    is_chat = openai_chat.FORMAT.recognises(response)
    return (openai_chat if is_chat else openai_completions).read(response)


def _arguments(calls: Any) -> list[Any]:
    """The arguments of the first request of a document, as newer and older versions store them."""
    if isinstance(calls, dict):
        calls = [list(call.values()) for call in calls.values() if isinstance(call, dict)]
    return calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], list) else []


FORMAT = Format("lm_eval", lambda row: "resps" in row and "doc_id" in row, LmEvalSample, read)
