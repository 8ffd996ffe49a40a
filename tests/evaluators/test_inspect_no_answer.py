"""Inspect's scorer says of answers what a file says of them, given or not."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import tracecal
from tracecal.answers.reading import Reading

model = pytest.importorskip("inspect_ai.model")
pytestmark = pytest.mark.evaluators

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RATE = 0.2
CALL = {"id": "c", "function": "search", "arguments": {}, "type": "function"}
# What replaces a choice's message, and why it ended.
NONE = {
    "called a tool": ({"content": "", "tool_calls": [CALL]}, "tool_calls"),
    "empty": ({"content": ""}, "stop"),
    "filtered": ({"content": ""}, "content_filter"),
    "cut while reasoning": (
        {"content": [{"type": "reasoning", "reasoning": "Let me see."}]},
        "max_tokens",
    ),
}


def output(response, message, finish):
    (choice,) = response["choices"]
    message = {"role": "assistant", "source": "generate"} | message
    choice = {"message": message, "stop_reason": finish, "logprobs": choice["logprobs"]}
    return model.ModelOutput.model_validate({"model": response["model"], "choices": [choice]})


def test_the_scorer_agrees_with_a_file():
    from tracecal.serving.inspect_scorer import score_sample

    reading = Reading(vocabulary=49152, processed="no", stop_token="included")
    calibrator = tracecal.calibrate(EXAMPLES / "labelled.jsonl", "cities", reading=reading)
    lines = (EXAMPLES / "new.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    rows = [json.loads(line) for line in lines]
    outcomes, expected = [], [*calibrator.score(rows, error_rate=RATE, reading=reading).rows()]
    reading = calibrator.reading(reading).model_copy(update={"format": "inspect"})
    for place, row in enumerate(rows):
        (choice,) = row["response"]["choices"]
        message, finish = {"content": choice["message"]["content"]}, choice["finish_reason"]
        if place < len(NONE):
            (reason, (message, finish)) = [*NONE.items()][place]
            choice["logprobs"] = None
            expected[place] = (row["id"], None, None, None, False, reason)
        said = output(row["response"], message, finish)
        state = SimpleNamespace(sample_id=row["id"], epoch=1, input="q", output=said)
        scored, _ = score_sample(state, calibrator.predictor(), RATE, reading, print)
        outcomes.append((row["id"], *vars(scored).values()))
    for outcome, (name, *numbers, keep, reason) in zip(outcomes, expected, strict=True):
        assert (outcome[0], *outcome[4:]) == (name, keep, reason)
        assert list(outcome[1:4]) == [
            None if number is None else pytest.approx(number, abs=1e-12) for number in numbers
        ]
