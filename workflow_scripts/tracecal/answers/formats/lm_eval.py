"""Samples of the lm-evaluation-harness."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.openai_chat import first_choice, read_chat
from tracecal.answers.formats.openai_completions import read_completion
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.verdict import verdict
from tracecal.answers.wrong_row import WrongRow

KEPT = "response"  # under which `tracecal.apps.lm_eval_models` keeps a server's response


class LmEvalSample(BaseModel):
    """A row of `samples_<task>_<date>.jsonl` of the lm-evaluation-harness."""

    arguments: Any = None
    resps: list[list[Any]] = Field(min_length=1)
    metrics: list[str] = []


def read_lm_eval(body: dict[str, Any], label: str | None) -> RawAnswer:
    """A row's first response and prompt; the verdict is the first metric, unless `label` is set.

    There are log-probabilities where the model that answered kept its server's response.
    """
    sample = LmEvalSample.model_validate(body)
    text = sample.resps[0][0]
    if not isinstance(text, str):
        raise WrongRow("its response is not text: its task generates none")
    metric = sample.metrics[0] if sample.metrics and label is None else None
    arguments = _arguments(sample.arguments)
    kept = next((one[KEPT] for one in arguments if isinstance(one, dict) and KEPT in one), None)
    return replace(
        _kept(kept) if isinstance(kept, dict) else RawAnswer(answer=text),
        prompt=arguments[0] if arguments and isinstance(arguments[0], str) else None,
        correct=verdict(body.get(metric)) if metric else None,
    )


def _kept(response: dict[str, Any]) -> RawAnswer:
    """The answer of a server's response with one choice."""
    return (read_chat if "message" in first_choice(response) else read_completion)(response)


def _arguments(calls: Any) -> list[Any]:
    """What a document's first request was made with, as newer and older versions store it."""
    if isinstance(calls, dict):
        calls = [list(call.values()) for call in calls.values() if isinstance(call, dict)]
    return calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], list) else []
