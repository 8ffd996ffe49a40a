"""Rows in the forms in which programs write them."""

import json


def token(text, logprob, top=(), **more):
    """A chosen token of `logprobs.content` with `top` = (text, log-probability) pairs."""
    told = [{"token": t, "bytes": list(t.encode()), "logprob": lp} for t, lp in top]
    return {
        "token": text,
        "bytes": list(text.encode()),
        "logprob": logprob,
        "top_logprobs": told,
    } | more


TWO = [("51", -0.25), ("50", -2.0)]
END = [("<|im_end|>", -0.01), ("!", -5.0)]


def chat(content=None, text="51", finish="stop", **more):
    """A chat completion of one answer, the stop token counted, as vLLM has it."""
    if content is None:
        content = [token("51", -0.25, TWO), token("<|im_end|>", -0.01, END)]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
        "logprobs": {"content": content} if content != "null" else None,
    }
    return {"object": "chat.completion", "model": "m", "choices": [choice | more]}


def batch(body, custom_id="svamp-17", status=200, error=None):
    """A line of a batch's output file."""
    response = {"status_code": status, "request_id": "r1", "body": body}
    return {"id": "batch_req_1", "custom_id": custom_id, "error": error, "response": response}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
