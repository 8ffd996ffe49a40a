"""The formats of answers."""

from collections.abc import Callable
from typing import Any

from tracecal.answers.formats.columns import TRACES, read_columns
from tracecal.answers.formats.inspect import read_inspect
from tracecal.answers.formats.llama_cpp import read_llama_cpp
from tracecal.answers.formats.lm_eval import read_lm_eval
from tracecal.answers.formats.ollama import read_ollama
from tracecal.answers.formats.openai_chat import first_choice, read_chat
from tracecal.answers.formats.openai_completions import read_completion
from tracecal.answers.formats.openai_responses import read_response
from tracecal.answers.formats.sglang import read_sglang
from tracecal.answers.raw_answer import RawAnswer

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
        lambda body: any(name in body for name in (*TRACES, "token_ids", "answer", "text")),
        _simple(read_columns),
    ),
}
