"""Rows of `samples_<task>_<date>.jsonl` of the lm-evaluation-harness."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.layout import Layout, Row, by_ending
from tracecal.answers.raw_answer import RawAnswer
from tracecal.errors import WrongRow

# The argument under which `tracecal.integrations.lm_eval_models` keeps the response of a server.
RESPONSE_ARGUMENT = "response"


class LmEvalSample(BaseModel):
    """A row of a samples file."""

    arguments: Any = None
    resps: list[list[Any]] = Field(min_length=1)
    metrics: list[str] = []


def read(row: Row, responses: Sequence[Layout]) -> RawAnswer:
    """Read the first response of a row, its prompt and its first metric.

    It has log-probabilities where the model that answered kept the response of its server, which is
    in one of the formats `responses`, the last one unless another recognises it.
    """
    sample = LmEvalSample.model_validate(row)
    text = next(iter(sample.resps[0]), None)
    if not isinstance(text, str):
        raise WrongRow("its response is not text: its task generates none")
    arguments = _arguments(sample.arguments)
    replies = (argument[RESPONSE_ARGUMENT] for argument in arguments if _has_response(argument))
    response, raw = next(replies, None), RawAnswer(answer=text)
    if isinstance(response, dict):
        of_response = (layout for layout in responses if layout.recognises(response))
        raw = next(of_response, responses[-1]).reader(response)
    return replace(
        raw,
        prompt=arguments[0] if arguments and isinstance(arguments[0], str) else None,
        verdicts={metric: row.get(metric) for metric in sample.metrics[:1]},
    )


def _arguments(calls: Any) -> list[Any]:
    """The arguments of the first request of a document, as newer and older versions store them."""
    if isinstance(calls, dict):
        calls = [list(call.values()) for call in calls.values() if isinstance(call, dict)]
    return calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], list) else []


def split(row: Row) -> dict[str, Row]:
    """The responses of a document that was asked several times (``repeats``).

    The first has the row's metrics, where its text holds what the filter left; a metric of a vote
    or of several responses is no verdict on any of them. Log-probabilities are the first's.
    """
    calls = row.get("resps")
    texts = calls[0] if isinstance(calls, list) and calls else None
    if not isinstance(texts, list) or len(texts) < 2:
        return {"": row}
    first = row | {"resps": [texts[:1]]}
    if not _is_judged(texts[0], row.get("filtered_resps")):
        first["metrics"] = []
    arguments = [
        [argument for argument in _arguments(row.get("arguments")) if not _has_response(argument)]
    ]
    further = row | {"metrics": [], "arguments": arguments}
    return by_ending([first, *(further | {"resps": [[text]]} for text in texts[1:])])


def _is_judged(text: Any, filtered: Any) -> bool:
    """Whether a response is what the filter left, whole or in part; also where a row has none."""
    if isinstance(filtered, list) and len(filtered) == 1:
        filtered = filtered[0]
    if filtered is None:
        return True
    return isinstance(text, str) and isinstance(filtered, str) and filtered.strip() in text


def _has_response(argument: Any) -> bool:
    return isinstance(argument, dict) and RESPONSE_ARGUMENT in argument


def sample_format(*responses: Layout) -> Layout:
    """The format of samples whose servers' responses are in one of some formats."""
    return Layout(
        name="lm_eval",
        programs="samples_TASK_DATE.jsonl of lm-evaluation-harness",
        marks=("resps doc_id",),
        function=partial(read, responses=responses),
        fields=(*LmEvalSample.model_fields, "filtered_resps"),
        splitter=split,
    )
