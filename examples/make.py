"""Make the files of this folder from a finished run: python examples/make.py results/demo

The answers are those of the embedded model demo-medium to its closed-book questions, in the format
of each program; the probabilities are recomputed by a teacher-forced pass.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import polars as pl
import torch

from tracecal.capture.model import load_model, load_tokenizer
from tracecal.io.files import write_text
from tracecal.io.traces import read_traces

HERE = Path(__file__).resolve().parent
MODEL, TASK = "demo-medium", "closed_book"
ANSWERS, LABELLED, TOP = 4, 160, 5


def main(results: str) -> None:
    run = Path(results)
    answers = labelled(run)
    rows = answers.head(LABELLED).select(
        "example_id",
        "answer",
        *(pl.col(name).list.eval(pl.element().round(6)) for name in ("surprisal", "entropy")),
        "correct",
        model=pl.lit(MODEL),
        stop_token=pl.lit("included"),
        processed=pl.lit("no"),
    )
    write_text(rows.write_ndjson(), HERE / "columns.jsonl")
    folder = run / "models" / MODEL
    model, tokenizer = load_model(folder, "float32"), load_tokenizer(folder)
    # The following answers are not among those to calibrate on.
    few = answers.slice(LABELLED, ANSWERS).rows(named=True)
    for row in few:
        row["steps"] = list(steps(model, tokenizer, row))
    lines("openai_batch.jsonl", map(openai_batch, few))
    lines("openai_responses.jsonl", map(openai_response, few))
    lines("openai_completions.jsonl", map(openai_completion, few))
    lines("llama_cpp.jsonl", map(llama_cpp, few))
    lines("ollama.jsonl", map(ollama, few))
    lines("sglang.jsonl", map(sglang, few))
    lines("samples_closed_book.jsonl", (lm_eval(n, row) for n, row in enumerate(few)))
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": TASK, "model": MODEL},
        "samples": [inspect(row) for row in few],
    }
    write_text(json.dumps(log, indent=1) + "\n", HERE / "inspect.json")


def labelled(run: Path) -> pl.DataFrame:
    """The evaluation answers with their question, references and label, sorted by id."""
    task = pl.read_parquet(run / "tasks" / f"{TASK}.parquet").filter(role="evaluation")
    labels = pl.read_parquet(run / "labels" / MODEL / f"{TASK}.parquet")
    traces = read_traces(run / "traces" / MODEL / f"{TASK}.arrow")
    named = task.select("example_id", "question", "references")
    judged = labels.select("example_id", "correct")
    return traces.join(named, on="example_id").join(judged, on="example_id").sort("example_id")


@torch.inference_mode()
def steps(model, tokenizer, row):
    """Each token as (id, text, log-probability, the likeliest tokens as such triples)."""
    ids = torch.tensor([row["prompt_token_ids"] + row["token_ids"][:-1]])
    logits = model(input_ids=ids).logits[0, -len(row["token_ids"]) :]
    for token, logprobs in zip(row["token_ids"], logits.log_softmax(-1), strict=True):
        values, places = logprobs.topk(TOP)
        top = zip(places.tolist(), values.tolist(), strict=True)
        listed = [(place, tokenizer.decode([place]), round(value, 6)) for place, value in top]
        yield token, tokenizer.decode([token]), round(logprobs[token].item(), 6), listed


def chosen(step, ids=False):
    """A token in the format of OpenAI and of those who copy it."""
    *token, top = step

    def entry(token, text, logprob):
        fields = {"token": text, "logprob": logprob, "bytes": list(text.encode())}
        return ({"id": token} | fields) if ids else fields

    return entry(*token) | {"top_logprobs": [entry(*likely) for likely in top]}


def openai_batch(row):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": row["answer"]},
        "logprobs": {"content": [chosen(step) for step in row["steps"]]},
        "finish_reason": "stop",
        "token_ids": row["token_ids"],
    }
    body = {
        "id": f"chatcmpl-{row['example_id'][-6:]}",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [choice],
        "prompt_token_ids": row["prompt_token_ids"],
    }
    response = {"status_code": 200, "request_id": "vllm-batch-1", "body": body}
    return {"id": "vllm-1", "custom_id": row["example_id"], "response": response, "error": None}


def openai_response(row):
    part = {
        "type": "output_text",
        "text": row["answer"],
        "annotations": [],
        "logprobs": [chosen(step) for step in row["steps"]],
    }
    message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
    body = {
        "id": f"resp_{row['example_id'][-6:]}",
        "object": "response",
        "status": "completed",
        "model": MODEL,
        "output": [message],
    }
    return {"custom_id": row["example_id"], "response": {"status_code": 200, "body": body}}


def openai_completion(row):
    logprobs = {
        "text_offset": [0] * len(row["steps"]),
        "tokens": [text for _, text, _, _ in row["steps"]],
        "token_logprobs": [logprob for _, _, logprob, _ in row["steps"]],
        "top_logprobs": [{text: lp for _, text, lp in top} for *_, top in row["steps"]],
    }
    choice = {
        "index": 0,
        "text": row["answer"],
        "logprobs": logprobs,
        "finish_reason": "stop",
        "token_ids": row["token_ids"],
    }
    body = {"object": "text_completion", "model": MODEL, "choices": [choice]}
    return {"custom_id": row["example_id"], "response": {"status_code": 200, "body": body}}


def llama_cpp(row):
    body = {
        "content": row["answer"],
        "tokens": row["token_ids"],
        "stop_type": "eos",
        "model": MODEL,
        "completion_probabilities": [chosen(step, ids=True) for step in row["steps"]],
    }
    return {"example_id": row["example_id"], "response": body}


def ollama(row):
    tokens = [chosen(step) for step in row["steps"]]
    for entry in (entry for token in tokens for entry in (token, *token["top_logprobs"])):
        del entry["bytes"]
    return {
        "example_id": row["example_id"],
        "model": MODEL,
        "response": row["answer"],
        "done": True,
        "done_reason": "stop",
        "logprobs": tokens,
    }


def sglang(row):
    tokens = [[logprob, token, text] for token, text, logprob, _ in row["steps"]]
    tops = [[[lp, token, text] for token, text, lp in top] for *_, top in row["steps"]]
    meta = {
        "finish_reason": {"type": "stop", "matched": row["token_ids"][-1]},
        "prompt_tokens": len(row["prompt_token_ids"]),
        "output_token_logprobs": tokens,
        "output_top_logprobs": tops,
    }
    body = {"text": row["answer"], "output_ids": row["token_ids"], "meta_info": meta}
    return {"example_id": row["example_id"], "response": body}


def lm_eval(number, row):
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


def inspect(row):
    choice = {
        "message": {"role": "assistant", "content": row["answer"]},
        "stop_reason": "stop",
        "logprobs": {"content": [chosen(step) for step in row["steps"]]},
    }
    return {
        "id": row["example_id"],
        "epoch": 1,
        "input": row["question"],
        "target": row["references"],
        "output": {"model": MODEL, "choices": [choice]},
        "scores": {"match": {"value": "C" if row["correct"] else "I", "answer": row["answer"]}},
    }


def lines(name, rows):
    write_text("".join(json.dumps(row) + "\n" for row in rows), HERE / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
