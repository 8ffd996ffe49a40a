"""Answers with verdicts, in the logs of evaluation harnesses."""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.logs.openai import Logprobs, token_steps
from tracecal.logs.options import Reading
from tracecal.logs.steps import WrongRow
from tracecal.logs.trace import Given, stop_token

RIGHT, WRONG = ("C", "correct", "true", 1), ("I", "incorrect", "false", 0)
VERDICTS = dict.fromkeys(RIGHT, True) | dict.fromkeys(WRONG, False)  # 1 is True, and 1.0


class Score(BaseModel):
    value: Any = None


class InspectMessage(BaseModel):
    content: Any = None


class InspectChoice(BaseModel):
    message: InspectMessage = InspectMessage()
    stop_reason: str | None = None
    logprobs: Logprobs | None = None


class Output(BaseModel):
    model: str | None = None
    choices: list[InspectChoice] = Field(min_length=1)


class InspectSample(BaseModel):
    """A sample of an Inspect AI log, as `inspect log dump` writes it.

    Its `input` is what a chat template makes the prompt of, and not the prompt.
    """

    output: Output
    scores: dict[str, Score] | None = None


class LmEvalSample(BaseModel):
    """A row of `samples_<task>_<date>.jsonl` of the lm-evaluation-harness."""

    arguments: Any = None
    resps: list[list[Any]] = Field(min_length=1)
    metrics: list[str] = []


def read_inspect(body: dict[str, Any], reading: Reading) -> Given:
    """A sample's first choice with its verdict: of its one scorer, or as `label` names it."""
    sample = InspectSample.model_validate(body)
    choice = sample.output.choices[0]
    content = _text(choice.message.content)
    steps = token_steps((choice.logprobs and choice.logprobs.content) or (), None)
    return Given(
        answer=content,
        steps=steps,
        finish_reason=choice.stop_reason,
        stop_token=stop_token(content, steps),
        model=sample.output.model,
        correct=_inspect_verdict(sample.scores or {}, reading),
    )


def _inspect_verdict(scores: dict[str, Score], reading: Reading) -> bool | None:
    if reading.label is not None or not scores:
        return None
    if len(scores) > 1:
        raise WrongRow(
            f"it has several verdicts ({', '.join(scores)}); name one, such as "
            f"'scores.{next(iter(scores))}.value', as 'label'"
        )
    return verdict(next(iter(scores.values())).value)


def read_lm_eval(body: dict[str, Any], reading: Reading) -> Given:
    """A row's first response, its prompt and its verdict, of the first metric or `label`."""
    sample = LmEvalSample.model_validate(body)
    text = sample.resps[0][0]
    if not isinstance(text, str):
        raise WrongRow("its response is no text: it is of a task that generates nothing")
    metric = sample.metrics[0] if sample.metrics and reading.label is None else None
    return Given(
        answer=text,
        prompt=_prompt(sample.arguments),
        correct=verdict(body.get(metric)) if metric else None,
    )


def _prompt(arguments: Any) -> str | None:
    """The prompt among a request's arguments, of newer and older versions."""
    if isinstance(arguments, dict):
        arguments = [list(one.values()) for one in arguments.values() if isinstance(one, dict)]
    try:
        prompt = arguments[0][0]
    except (TypeError, IndexError, KeyError):
        return None
    return prompt if isinstance(prompt, str) else None


def _text(content: Any) -> str | None:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content


def verdict(value: Any) -> bool | None:
    """Whether an answer is right; null where nothing is given. Raises `WrongRow` in between."""
    if value is None:
        return None
    if not isinstance(value, bool | int | float | str) or value not in VERDICTS:
        raise WrongRow(f"its verdict {value!r} is neither right (C, 1, true) nor wrong")
    return VERDICTS[value]
