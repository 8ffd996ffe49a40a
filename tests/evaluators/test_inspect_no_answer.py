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


@pytest.fixture(scope="module")
def calibrator():
    reading = Reading(vocabulary=49152)
    return tracecal.calibrate(EXAMPLES / "labelled.jsonl", "cities", reading=reading)


def test_what_is_unknown_counts_as_equal_with_one_warning(calibrator, caplog):
    from tracecal.integrations.inspect_scorer import score_sample

    lines = (EXAMPLES / "new.jsonl").read_text(encoding="utf-8").splitlines()[:6]
    rows = [json.loads(line) for line in lines]
    for row in rows:
        del row["request"]["model"]
        row["response"]["model"] = ""
        last = row["response"]["choices"][0]["logprobs"]["content"][-1]
        (listed,) = [top for top in last["top_logprobs"] if top["token"] == last["token"]]
        last["token"] = listed["token"] = " "  # only spaces tell the tokens from the answer
    reading = calibrator.reading(Reading(processed="no"))
    expected = calibrator.score(rows, error_rate=RATE, reading=reading)["keep"].to_list()
    assert None not in expected
    caplog.clear()
    reading = reading.model_copy(update={"format": "inspect"})
    keeps = []
    for row in rows:
        (choice,) = row["response"]["choices"]
        answer = output(row["response"], {"content": choice["message"]["content"]}, "stop")
        state = SimpleNamespace(sample_id=row["id"], epoch=1, input="q", output=answer)
        scored, _ = score_sample(state, calibrator.predictor(), RATE, reading)
        assert scored.reason is None
        keeps.append(scored.keep)
    assert keeps == expected
    for subject in ("which model gave the answers", "whether traces include the stop token"):
        assert caplog.text.count(f"the answers do not say {subject}") == 1


def test_the_scorer_agrees_with_a_file(calibrator):
    from tracecal.integrations.inspect_scorer import score_sample

    reading = Reading(vocabulary=49152, processed="no", stop_token="included")
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
        scored, _ = score_sample(state, calibrator.predictor(), RATE, reading)
        outcomes.append((row["id"], *vars(scored).values()))
    for outcome, (name, *numbers, keep, reason) in zip(outcomes, expected, strict=True):
        assert (outcome[0], *outcome[4:]) == (name, keep, reason)
        assert list(outcome[1:4]) == [
            None if number is None else pytest.approx(number, abs=1e-12) for number in numbers
        ]
