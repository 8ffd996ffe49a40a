"""Answers in OpenAI's formats: chat completions, responses and legacy completions.

vLLM, SGLang, llama.cpp, Together, LiteLLM and others use the same formats. vLLM adds `token_ids`,
`prompt_token_ids` and `stop_reason`, the stop string or stop token that ended the answer.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from pydantic import BaseModel, Field

from tracecal.logs.steps import Step, WrongRow
from tracecal.logs.trace import RawAnswer, stop_token

_AS_ID = "token_id"  # vLLM's prefix of a token that it returns as an id instead of text


class Token(BaseModel):
    id: int | None = None
    token: str = ""
    bytes: list[int] | None = None
    logprob: float | None = None

    @property
    def key(self) -> Hashable:
        """What identifies it: its id or bytes where known, as several tokens share a text."""
        if self.id is not None:
            return self.id
        return self.token if self.bytes is None else tuple(self.bytes)

    @property
    def value(self) -> float | None:
        """Its log-probability."""
        return self.logprob


def merged(token: Token, top: Iterable[Token]) -> bool:
    """Whether a token stands for several.

    llama.cpp reports tokens that form one character together as the last of them, with all bytes.
    """
    size = len(token.bytes or ())
    return any(other.id == token.id is not None and size > len(other.bytes or ()) for other in top)


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
    """An object of the Responses API."""

    model: str | None = None
    status: str | None = None
    output: list[OutputItem]


class OldLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = None


class ListedLogprobs(Logprobs):
    """Log-probabilities in the chat format, which llama.cpp uses for completions too."""

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
    """A legacy completion."""

    model: str | None = None
    choices: list[OldChoice] = Field(min_length=1)


def read_chat(body: dict[str, Any]) -> RawAnswer:
    """The first choice of a chat completion."""
    chat = Chat.model_validate(body)
    choice = min(chat.choices, key=lambda choice: choice.index)
    steps = token_steps(choice.logprobs and choice.logprobs.content, choice.token_ids)
    return RawAnswer(
        answer=choice.message.content,
        steps=steps,
        token_ids=choice.token_ids or ids_of(steps),
        prompt_token_ids=chat.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=stop_token(choice.message.content, steps, choice.stop_reason),
        model=chat.model,
    )


def read_response(body: dict[str, Any]) -> RawAnswer:
    """The text of a Responses object."""
    response = Response.model_validate(body)
    messages = [item for item in response.output if item.type == "message"]
    texts = [part for item in messages for part in item.content or () if part.type == "output_text"]
    if not texts:
        raise WrongRow("it has no message with an output_text")
    steps = token_steps([token for part in texts for token in part.logprobs or ()])
    answer = "".join(part.text for part in texts)
    finish = {"completed": "stop", "incomplete": "length"}.get(response.status or "")
    return RawAnswer(
        answer=answer,
        steps=steps,
        finish_reason=finish,
        stop_token=stop_token(answer, steps),
        model=response.model,
    )


def read_completion(body: dict[str, Any]) -> RawAnswer:
    """The first choice of a legacy completion.

    Its top log-probabilities are keyed by text, so tokens of the same text (all special tokens are
    '') were merged; a step with fewer of them than the others may lack a likely token.
    """
    completion = Completion.model_validate(body)
    choice = min(completion.choices, key=lambda choice: choice.index)
    if isinstance(choice.logprobs, ListedLogprobs):
        steps = token_steps(choice.logprobs.content, choice.token_ids)
    else:
        steps = _old_steps(choice.logprobs) if choice.logprobs else []
        require_id_each(steps, choice.token_ids)
    return RawAnswer(
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
    tops = [top or {} for top in logprobs.top_logprobs or [None] * len(logprobs.tokens)]
    most = max(map(len, tops), default=0)
    return [
        Step(text, None, logprob, list(top.items()), text, len(top) < most)
        for text, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, tops, strict=True)
    ]


def token_steps(
    tokens: Sequence[ChosenToken] | None, token_ids: Sequence[int] | None = None
) -> list[Step]:
    """The steps of `logprobs.content`. Raises `WrongRow` unless `token_ids`, if any, match them."""
    steps = [token_step(token, token.top_logprobs or ()) for token in tokens or ()]
    require_id_each(steps, token_ids)
    return steps


def token_step(token: Token, top: Sequence[Token]) -> Step:
    """The step of a chosen token and the `top` most likely ones."""
    if merged(token, top):
        return Step(token.token, None, None)
    prefix, _, number = token.token.rpartition(":")
    token_id = int(number) if prefix == _AS_ID and number.isdecimal() else token.id
    likely = [(other.key, other.value) for other in top]
    return Step(token.token, token_id, token.value, likely, token.key)


def require_id_each(steps: Sequence[Step], token_ids: Sequence[int] | None) -> None:
    """Raise `WrongRow` where steps and token ids are both known but differ in number."""
    if steps and token_ids and len(steps) != len(token_ids):
        raise WrongRow(f"it has {len(token_ids)} token ids and {len(steps)} log-probabilities")


def ids_of(steps: Sequence[Step]) -> list[int] | None:
    """The steps' token ids; null where one is unknown."""
    ids = [step.token_id for step in steps]
    return ids if ids and None not in ids else None
