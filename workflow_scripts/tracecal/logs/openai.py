"""Answers in OpenAI's forms: chat completions, responses and the older completions.

vLLM, SGLang, llama.cpp, Together, LiteLLM and others answer in the same forms. vLLM adds
`token_ids`, `prompt_token_ids` and `stop_reason`, the stop string or stop token that was met.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from pydantic import BaseModel, Field

from tracecal.logs.steps import Step, WrongRow
from tracecal.logs.trace import Given, stop_token

_AS_ID = "token_id"  # how vLLM writes a token whose id was asked for in place of its text


class Token(BaseModel):
    id: int | None = None
    token: str = ""
    bytes: list[int] | None = None
    logprob: float | None = None

    @property
    def key(self) -> Hashable:
        """What tells it from others: its id or bytes, where given, as several texts are alike."""
        if self.id is not None:
            return self.id
        return self.token if self.bytes is None else tuple(self.bytes)


def merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    Of the tokens that make one character together llama.cpp gives the last alone, with all bytes.
    """
    size = len(token.bytes or ())
    return any(one.id == token.id is not None and size > len(one.bytes or ()) for one in top)


class ChosenToken(Token):
    top_logprobs: list[Token] | None = None


class Logprobs(BaseModel):
    content: list[ChosenToken] | None = None


class Message(BaseModel):
    content: str | None = None


class Choice(BaseModel):
    index: int = 0
    message: Message = Message()
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: Logprobs | None = None
    token_ids: list[int] | None = None


class Chat(BaseModel):
    """A chat completion."""

    model: str | None = None
    choices: list[Choice] = Field(min_length=1)
    prompt_token_ids: list[int] | None = None


class OutputText(BaseModel):
    type: str = "output_text"
    text: str = ""
    logprobs: list[ChosenToken] | None = None


class OutputItem(BaseModel):
    type: str = "message"
    content: list[OutputText] | None = None


class Response(BaseModel):
    """An object of the Responses interface."""

    model: str | None = None
    status: str | None = None
    output: list[OutputItem]


class OldLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = None


class ListedLogprobs(Logprobs):
    """Those of a chat, as llama.cpp gives them here too."""

    content: list[ChosenToken]


class OldChoice(BaseModel):
    index: int = 0
    text: str
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: OldLogprobs | ListedLogprobs | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class Completion(BaseModel):
    """A completion of the older interface."""

    model: str | None = None
    choices: list[OldChoice] = Field(min_length=1)


def read_chat(body: dict[str, Any]) -> Given:
    """The first choice of a chat completion."""
    chat = Chat.model_validate(body)
    choice = min(chat.choices, key=lambda one: one.index)
    tokens = (choice.logprobs and choice.logprobs.content) or []
    steps = token_steps(tokens, choice.token_ids)
    return Given(
        answer=choice.message.content,
        steps=steps,
        token_ids=choice.token_ids or _ids(steps),
        prompt_token_ids=chat.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=stop_token(choice.message.content, steps, choice.stop_reason),
        model=chat.model,
    )


def read_response(body: dict[str, Any]) -> Given:
    """The text of a Responses object."""
    response = Response.model_validate(body)
    messages = [item for item in response.output if item.type == "message"]
    texts = [part for item in messages for part in item.content or () if part.type == "output_text"]
    if not texts:
        raise WrongRow("it holds no message with an output_text")
    steps = token_steps([token for part in texts for token in part.logprobs or ()], None)
    answer = "".join(part.text for part in texts)
    finish = {"completed": "stop", "incomplete": "length"}.get(response.status or "")
    return Given(
        answer=answer,
        steps=steps,
        finish_reason=finish,
        stop_token=stop_token(answer, steps),
        model=response.model,
    )


def read_completion(body: dict[str, Any]) -> Given:
    """The first choice of a completion of the older interface.

    Its top log-probabilities are by text: tokens that share one (special ones are all '') were
    merged, and where some are fewer than others a likely one may be missing.
    """
    completion = Completion.model_validate(body)
    choice = min(completion.choices, key=lambda one: one.index)
    if isinstance(choice.logprobs, ListedLogprobs):
        steps = token_steps(choice.logprobs.content, choice.token_ids)
    else:
        steps = _old_steps(choice.logprobs) if choice.logprobs else []
        _alike(steps, choice.token_ids)
    return Given(
        answer=choice.text,
        steps=steps,
        token_ids=choice.token_ids,
        prompt_token_ids=choice.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=stop_token(choice.text, steps, choice.stop_reason),
        model=completion.model,
    )


def _old_steps(logprobs: OldLogprobs) -> list[Step]:
    if len(logprobs.tokens) != len(logprobs.token_logprobs):
        raise WrongRow(
            f"it has {len(logprobs.tokens)} tokens and {len(logprobs.token_logprobs)} "
            "log-probabilities"
        )
    tops = logprobs.top_logprobs or [None] * len(logprobs.tokens)
    most = max((len(top) for top in tops if top), default=0)
    return [
        Step(text, None, logprob, list((top or {}).items()), text, len(top or {}) < most)
        for text, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, tops, strict=True)
    ]


def token_steps(tokens: Sequence[ChosenToken], token_ids: Sequence[int] | None) -> list[Step]:
    """The steps of `logprobs.content`; where ids are given there is one to each."""
    steps = [_step(one) for one in tokens]
    _alike(steps, token_ids)
    return steps


def _step(one: ChosenToken) -> Step:
    top = one.top_logprobs or ()
    if merged(one, top):
        return Step(one.token, None, None)
    prefix, _, number = one.token.rpartition(":")
    token_id = int(number) if prefix == _AS_ID and number.isdecimal() else one.id
    listed = [(each.key, each.logprob) for each in top]
    return Step(one.token, token_id, one.logprob, listed, one.key)


def _alike(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")


def _ids(steps: Sequence[Step]) -> list[int] | None:
    ids = [step.token_id for step in steps]
    return ids if ids and None not in ids else None
