"""The formats of answers: how each is recognised, and its reader."""

from collections.abc import Callable
from typing import Any

from tracecal.logs.columns import TRACE, read_columns
from tracecal.logs.engines import read_llama_cpp, read_ollama, read_sglang
from tracecal.logs.evaluations import read_inspect, read_lm_eval
from tracecal.logs.openai import first_choice, read_chat, read_completion, read_response
from tracecal.logs.raw import RawAnswer

Row = dict[str, Any]


def _simple(read: Callable[[Row], RawAnswer]) -> Callable[[Row, str | None], RawAnswer]:
    return lambda body, label: read(body)


def _logprob_objects(body: Row) -> bool:
    """Whether `logprobs` is a list of Ollama's objects, not of numbers."""
    values = body.get("logprobs")
    return isinstance(values, list) and values != [] and all(isinstance(v, dict) for v in values)


# How to recognise each format, tried in this order, and its reader, which also gets the path of the
# verdict where one is named.
FORMATS: dict[str, tuple[Callable[[Row], bool], Callable[[Row, str | None], RawAnswer]]] = {
    "inspect": (
        lambda body: isinstance(body.get("output"), dict) and "choices" in body["output"],
        read_inspect,
    ),
    "lm_eval": (lambda body: "resps" in body and "doc_id" in body, read_lm_eval),
    "openai_chat": (lambda body: "message" in first_choice(body), _simple(read_chat)),
    "openai_completions": (
        lambda body: "text" in first_choice(body),
        _simple(read_completion),
    ),
    "openai_responses": (lambda body: isinstance(body.get("output"), list), _simple(read_response)),
    "llama_cpp": (
        lambda body: "completion_probabilities" in body or "generation_settings" in body,
        _simple(read_llama_cpp),
    ),
    "sglang": (lambda body: isinstance(body.get("meta_info"), dict), _simple(read_sglang)),
    "ollama": (lambda body: "done" in body or _logprob_objects(body), _simple(read_ollama)),
    "columns": (
        lambda body: any(name in body for name in (*TRACE, "token_ids", "answer", "text")),
        _simple(read_columns),
    ),
}
