"""Answers with verdicts from the logs of evaluation harnesses, and verdicts on parts of answers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from tracecal.answers.record import RawAnswer, stop_token
from tracecal.answers.servers import first_choice, read_chat, read_completion
from tracecal.answers.tokens import Logprobs, WrongRow, token_steps

CORRECT = ("C", "correct", "true", "True", "1", 1)
INCORRECT = ("I", "incorrect", "false", "False", "0", 0)
VERDICTS = dict.fromkeys(CORRECT, True) | dict.fromkeys(INCORRECT, False)  # 1 equals True and 1.0
KEPT = "response"  # under which `tracecal.serving.lm_eval_models` keeps a server's response


class InspectChoice(BaseModel):
    message: dict[str, Any] = {}
    stop_reason: str | None = None
    logprobs: Logprobs | None = None


class Output(BaseModel):
    model: str | None = None
    choices: list[InspectChoice] = Field(min_length=1)


class InspectSample(BaseModel):
    """A sample of an Inspect AI log, as `inspect log dump` writes it.

    Its `input` is not the prompt: a chat template makes the prompt from it.
    """

    output: Output
    scores: dict[str, dict[str, Any]] | None = None


class LmEvalSample(BaseModel):
    """A row of `samples_<task>_<date>.jsonl` of the lm-evaluation-harness."""

    arguments: Any = None
    resps: list[list[Any]] = Field(min_length=1)
    metrics: list[str] = []


def read_inspect(body: dict[str, Any], label: str | None) -> RawAnswer:
    """A sample's first choice; its verdict is that of the only scorer, unless `label` names one."""
    sample = InspectSample.model_validate(body)
    choice = sample.output.choices[0]
    content = _text(choice.message.get("content"))
    thoughts = _thoughts(choice.message.get("content"))
    steps = token_steps(choice.logprobs and choice.logprobs.content)
    return RawAnswer(
        answer=content,
        thoughts=thoughts,
        steps=steps,
        finish_reason=choice.stop_reason,
        stop_token=stop_token(content if thoughts is None else None, steps),
        model=sample.output.model,
        correct=_inspect_verdict(sample.scores or {}, label),
    )


def _inspect_verdict(scores: dict[str, dict[str, Any]], label: str | None) -> bool | None:
    if label is not None or not scores:
        return None
    if len(scores) > 1:
        raise WrongRow(
            f"it has several verdicts ({', '.join(scores)}); name one, such as "
            f"'scores.{next(iter(scores))}.value', as 'label'"
        )
    return verdict(next(iter(scores.values())).get("value"))


def read_lm_eval(body: dict[str, Any], label: str | None) -> RawAnswer:
    """A row's first response and prompt; the verdict is the first metric, unless `label` is set.

    There are log-probabilities where the model that answered kept its server's response.
    """
    sample = LmEvalSample.model_validate(body)
    text = sample.resps[0][0]
    if not isinstance(text, str):
        raise WrongRow("its response is not text: its task generates none")
    metric = sample.metrics[0] if sample.metrics and label is None else None
    arguments = _arguments(sample.arguments)
    kept = next((one[KEPT] for one in arguments if isinstance(one, dict) and KEPT in one), None)
    return replace(
        _kept(kept) if isinstance(kept, dict) else RawAnswer(answer=text),
        prompt=arguments[0] if arguments and isinstance(arguments[0], str) else None,
        correct=verdict(body.get(metric)) if metric else None,
    )


def _kept(response: dict[str, Any]) -> RawAnswer:
    """The answer of a server's response with one choice."""
    return (read_chat if "message" in first_choice(response) else read_completion)(response)


def _arguments(calls: Any) -> list[Any]:
    """What a document's first request was made with, as newer and older versions store it."""
    if isinstance(calls, dict):
        calls = [list(call.values()) for call in calls.values() if isinstance(call, dict)]
    return calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], list) else []


def _text(content: Any) -> str | None:
    """The text of a message, which may come in parts."""
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content


def _thoughts(content: Any) -> str | None:
    """The reasoning among a message's parts, empty where it is not shown; null without any."""
    parts = content if isinstance(content, list) else ()
    told = [
        one.get("reasoning")
        for one in parts
        if isinstance(one, dict) and one.get("type") == "reasoning"
    ]
    return "".join(one for one in told if isinstance(one, str)) if told else None


def verdict(value: Any) -> bool | None:
    """Whether an answer is correct; null for null. Raises `WrongRow` for any other value."""
    if value is None:
        return None
    if not isinstance(value, bool | int | float | str) or value not in VERDICTS:
        raise WrongRow(
            f"its verdict {value!r} is neither correct (C, 1, true) nor incorrect (I, 0, false)"
        )
    return VERDICTS[value]


def one_verdict(**values: Any) -> bool | None:
    """The verdict on which all `values` agree; null where all are null. Raises `WrongRow`."""
    verdicts = {name: verdict(value) for name, value in values.items() if value is not None}
    if len(set(verdicts.values())) > 1:
        given = " beside ".join(f"{name}: {values[name]!r}" for name in verdicts)
        raise WrongRow(f"its verdicts contradict each other ({given}); leave one out")
    return next(iter(verdicts.values()), None)


# Labels of parts of an answer, beside it in its row: verdicts, or spans that are wrong.


class PartLabels(NamedTuple):
    """Verdicts by the part's name; or the characters [start, end) of the answer that are wrong, of
    which a part is wrong that overlaps any. Null where a row does not give them so.

    `of_one` says that the row is a line of `tracecal label` on one part; the answer's other parts
    have lines of their own.
    """

    correct: Mapping[str, bool] | None = None
    wrong_spans: list[tuple[int, int]] | None = None
    of_one: bool = False

    def and_of(self, other: "PartLabels") -> "PartLabels | None":
        """Both as labels of one answer; null where they are not of one part each."""
        if not (self.of_one and other.of_one):
            return None
        return self._replace(correct={**(self.correct or {}), **(other.correct or {})})


def without_part_labels(row: Any) -> tuple[Any, PartLabels | None]:
    """A row without its labels of parts, and these; null where it has none.

    Raises `WrongRow` where they are not verdicts or spans.

    >>> row, labels = without_part_labels({"id": "q", "correct": {"capital": 1, "currency": "I"}})
    >>> row, labels.correct
    ({'id': 'q'}, {'capital': True, 'currency': False})
    """
    if not isinstance(row, dict):
        return row, None
    told, spans, judged = row.get("correct"), row.get("wrong_spans"), row.get("labelled")
    if of_one := isinstance(judged, dict) and isinstance(judged.get("part"), str):
        row = {name: row[name] for name in row if name != "labelled"}
        told, spans = {judged["part"]: judged.get("correct")}, None
    correct = None
    if isinstance(told, dict):
        verdicts = {str(name): verdict(value) for name, value in told.items()}
        correct = {name: value for name, value in verdicts.items() if value is not None}
    if spans is not None:
        spans = _spans(spans)
    if correct is None and spans is None:
        return row, None
    left_out = {"wrong_spans", *(["correct"] if correct is not None else [])}
    labels = PartLabels(correct, spans, of_one)
    return {name: row[name] for name in row if name not in left_out}, labels


def _spans(spans: Any) -> list[tuple[int, int]]:
    pairs = spans if isinstance(spans, list) else [None]
    for pair in pairs:
        whole = isinstance(pair, list | tuple) and len(pair) == 2
        if not whole or not all(type(end) is int for end in pair) or not 0 <= pair[0] < pair[1]:
            raise WrongRow(
                f"its wrong_spans {spans!r} are not a list of pairs [start, end) of characters"
            )
    return [(start, end) for start, end in pairs]
