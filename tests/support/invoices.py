"""The program of docs/guides/extraction.md, and a server that reads invoices."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from support.log_rows import token

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/extraction.md"
FIELDS = {"number": ("A-17", "B-23"), "total": (12.5, 80.0), "currency": ("EUR", "USD")}
N = 121
SURE = -0.001


def invoices():
    """The true fields of each invoice, and a server's responses: what it doubts is often wrong."""
    rng = np.random.default_rng(7)
    truths, responses = [], []
    for number in range(N):
        tokens, truth = [], {}
        for name, values in FIELDS.items():
            doubt = rng.choice([0.02, 1.5])
            right, wrong = rng.permutation(2)
            truth[name] = values[right]
            stated = values[right if rng.random() < np.exp(-doubt) else wrong]
            head = f'{", " if tokens else "{"}"{name}": '
            logprob = -float(rng.gamma(2.0, doubt / 2)) - 1e-4
            rest = float(np.log1p(-np.exp(logprob))) - 0.1
            value = json.dumps(stated)
            tokens.append(token(head, SURE, [(head, SURE)]))
            tokens.append(token(value, logprob, [(value, logprob), ("?", rest)]))
        tokens.append(token("}", SURE, [("}", SURE)]))
        text = "".join(step["token"] for step in tokens)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1_700_000_000}
        choices = [choice | {"logprobs": {"content": tokens}}]
        truths.append(truth)
        responses.append(head | {"model": "my-model", "choices": choices})
    return truths, responses


class OpenAI:
    """The part of the openai client that the page uses, with the responses above."""

    def __init__(self):
        self.chat = self.completions = self
        self.responses = iter(invoices()[1])

    def create(self, **request):
        assert request["logprobs"] and request["top_logprobs"] == 20
        body = next(self.responses)
        message = SimpleNamespace(content=body["choices"][0]["message"]["content"])
        return SimpleNamespace(model_dump=lambda: body, choices=[SimpleNamespace(message=message)])


def fields_to_check(folder):
    """What the page's program would have checked of the last invoice, calibrated on all before."""
    asking, labelling, calibrating, scoring = re.findall(
        r"^```python\n(.+?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    truths = {f"i{number}": truth for number, truth in enumerate(invoices()[0][:-1])}
    names = {}
    exec(asking, names)
    names["log"]({name: f"Invoice {name}" for name in truths}, folder / "invoices.jsonl")
    exec(labelling, names)
    names["label"](folder / "invoices.jsonl", truths, folder / "labelled.jsonl")
    exec(calibrating, names)
    exec(scoring, names)
    return names["fields_to_check"]("the last invoice")
