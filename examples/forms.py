"""The same answers in the format of each program that writes some."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tracecal.io.regular_files import write_text

DIGITS = 5  # of log-probabilities, which readers tell from the values

Row = Mapping[str, Any]


class Token(NamedTuple):
    """A token and its log-probability. The `text` of a part of a character does not spell it."""

    id: int
    text: str
    spelling: bytes
    logprob: float

    @property
    def rounded(self) -> float:
        return round(self.logprob, DIGITS)

    @property
    def named(self) -> dict[str, object]:
        """As OpenAI writes it, with bytes where the text does not tell them."""
        told = {"token": self.text, "logprob": self.rounded}
        spelt = self.text.encode() == self.spelling
        return told if spelt else told | {"bytes": list(self.spelling)}


class Step(NamedTuple):
    """The token that was chosen, and the likeliest ones."""

    chosen: Token
    top: Sequence[Token]

    @property
    def named(self) -> dict[str, object]:
        return self.chosen.named | {"top_logprobs": [token.named for token in self.top]}

    @property
    def numbered(self) -> dict[str, object]:
        """With ids, as llama.cpp writes them."""
        chosen, *top = ({"id": token.id} | token.named for token in (self.chosen, *self.top))
        return chosen | {"top_logprobs": top}


def write(folder: Path, labelled: Sequence[Row], new: Sequence[Row], few: Sequence[Row]) -> None:
    """The labelled and the new answers as chat completions, and a few in every other format."""
    chats = [logged(row) | {"correct": row["correct"]} for row in labelled]
    write_lines(folder / "labelled.jsonl", chats)
    write_lines(folder / "new.jsonl", map(logged, new))
    write_lines(folder / "columns.jsonl", map(columns, few))
    write_lines(folder / "openai_batch.jsonl", map(openai_batch, few))
    write_lines(folder / "openai_responses.jsonl", map(openai_response, few))
    write_lines(folder / "openai_completions.jsonl", map(openai_completion, few))
    write_lines(folder / "llama_cpp.jsonl", map(llama_cpp, few))
    write_lines(folder / "ollama.jsonl", map(ollama, few))
    write_lines(folder / "sglang.jsonl", map(sglang, few))
    write_lines(folder / "samples_cities.jsonl", (lm_eval(*pair) for pair in enumerate(few)))
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "cities", "model": few[0]["model"]},
        "samples": [inspect(row) for row in few],
    }
    write_text(json.dumps(log, indent=1, ensure_ascii=False) + "\n", folder / "inspect.json")


def write_lines(path: Path, rows: Iterable[Row]) -> None:
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    write_text("".join(lines), path)


def columns(row: Row) -> Row:
    """Columns of one's own, with the exact trace."""
    traces = {name: [round(x, 6) for x in row[name]] for name in ("surprisal", "entropy")}
    told = {name: row[name] for name in ("example_id", "answer", "correct", "model")}
    return told | traces | {"stop_token": "included", "processed": "no"}


def chat(row: Row) -> Row:
    """A chat completion, as an OpenAI-compatible server answers."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": row["answer"]},
        "logprobs": {"content": [step.named for step in row["steps"]]},
        "finish_reason": "stop",
    }
    return {
        "id": f"chatcmpl-{row['example_id']}",
        "object": "chat.completion",
        "created": 0,
        "model": row["model"],
        "choices": [choice],
    }


def logged(row: Row) -> Row:
    """A chat completion beside its request, as a client would log them."""
    return {"id": row["example_id"], "request": row["request"], "response": chat(row)}


def openai_batch(row: Row) -> Row:
    ids = {"token_ids": row["token_ids"]}
    body = chat(row)
    body |= {"choices": [choice | ids for choice in body["choices"]]}
    body |= {"prompt_token_ids": row["prompt_token_ids"]}
    response = {"status_code": 200, "request_id": "vllm-batch-1", "body": body}
    return {"id": "vllm-1", "custom_id": row["example_id"], "response": response, "error": None}


def openai_response(row: Row) -> Row:
    part = {
        "type": "output_text",
        "text": row["answer"],
        "annotations": [],
        "logprobs": [step.named for step in row["steps"]],
    }
    message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
    body = {
        "id": f"resp_{row['example_id']}",
        "object": "response",
        "status": "completed",
        "model": row["model"],
        "output": [message],
    }
    return {"custom_id": row["example_id"], "response": {"status_code": 200, "body": body}}


def openai_completion(row: Row) -> Row:
    steps = row["steps"]
    logprobs = {
        "text_offset": [0] * len(steps),
        "tokens": [chosen.text for chosen, _ in steps],
        "token_logprobs": [chosen.rounded for chosen, _ in steps],
        "top_logprobs": [{token.text: token.rounded for token in top} for _, top in steps],
    }
    choice = {
        "index": 0,
        "text": row["answer"],
        "logprobs": logprobs,
        "finish_reason": "stop",
        "token_ids": row["token_ids"],
    }
    body = {"object": "text_completion", "model": row["model"], "choices": [choice]}
    return {"custom_id": row["example_id"], "response": {"status_code": 200, "body": body}}


def llama_cpp(row: Row) -> Row:
    body = {
        "content": row["answer"],
        "tokens": row["token_ids"],
        "stop_type": "eos",
        "model": row["model"],
        "completion_probabilities": [step.numbered for step in row["steps"]],
    }
    return {"example_id": row["example_id"], "response": body}


def ollama(row: Row) -> Row:
    return {
        "example_id": row["example_id"],
        "model": row["model"],
        "response": row["answer"],
        "done": True,
        "done_reason": "stop",
        "logprobs": [step.named for step in row["steps"]],
    }


def sglang(row: Row) -> Row:
    def listed(token: Token) -> list[object]:
        return [token.rounded, token.id, token.text]

    meta = {
        "finish_reason": {"type": "stop", "matched": row["token_ids"][-1]},
        "prompt_tokens": len(row["prompt_token_ids"]),
        "output_token_logprobs": [listed(chosen) for chosen, _ in row["steps"]],
        "output_top_logprobs": [[listed(token) for token in top] for _, top in row["steps"]],
    }
    body = {"text": row["answer"], "output_ids": row["token_ids"], "meta_info": meta}
    body |= {"model": row["model"]}
    return {"example_id": row["example_id"], "response": body}


def lm_eval(number: int, row: Row) -> Row:
    arguments = {"gen_args_0": {"arg_0": row["prompt"], "arg_1": {"until": ["\n"]}}}
    return {
        "doc_id": number,
        "doc": {"id": row["example_id"], "question": row["question"]},
        "target": row["references"][0],
        "arguments": arguments,
        "resps": [[row["answer"]]],
        "filtered_resps": [row["answer"]],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": float(row["correct"]),
    }


def inspect(row: Row) -> Row:
    choice = {
        "message": {"role": "assistant", "content": row["answer"]},
        "stop_reason": "stop",
        "logprobs": {"content": [step.named for step in row["steps"]]},
    }
    return {
        "id": row["example_id"],
        "epoch": 1,
        "input": row["question"],
        "target": row["references"],
        "output": {"model": row["model"], "choices": [choice]},
        "scores": {"match": {"value": "C" if row["correct"] else "I", "answer": row["answer"]}},
    }
