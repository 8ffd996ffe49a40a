"""Answers in OpenAI's formats: chat completions, responses and legacy completions.

vLLM, SGLang, llama.cpp, Together, LiteLLM and others use the same formats. vLLM adds `token_ids`,
`prompt_token_ids` and `stop_reason`, the stop string or stop token that ended the answer.
"""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.record import RawAnswer, counted, stop_token
from tracecal.answers.tokens import (
    Logprobs,
    Step,
    Token,
    WrongRow,
    ids_of,
    require_id_each,
    token_steps,
)


def first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """The first of a body's choices; empty where it has none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


class Message(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # another name of it


class ChatLogprobs(Logprobs):
    """The tokens of an answer, where DeepSeek lists those of its reasoning apart."""

    reasoning_content: list[Token] | None = None


class Choice(BaseModel):
    index: int = 0
    message: Message = Message()
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: ChatLogprobs | None = None
    token_ids: list[int] | None = None


class Chat(BaseModel):
    """A chat completion."""

    model: str | None = None
    choices: list[Choice] = Field(min_length=1)
    prompt_token_ids: list[int] | None = None
    usage: Any = None


class OutputText(BaseModel):
    type: str = "output_text"
    text: str = ""
    logprobs: list[Token] | None = None


class OutputItem(BaseModel):
    type: str = "message"
    content: list[OutputText] | None = None


class Response(BaseModel):
    """An object of the Responses API."""

    model: str | None = None
    status: str | None = None
    usage: Any = None
    output: list[OutputItem]


class OldLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = None


class ListedLogprobs(Logprobs):
    """Log-probabilities in the chat format, which llama.cpp uses for completions too."""

    content: list[Token]


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
    listed = choice.logprobs or ChatLogprobs()
    tokens = [*(listed.reasoning_content or ()), *(listed.content or ())]
    steps = token_steps(tokens, choice.token_ids)
    message = choice.message
    thoughts = (
        message.reasoning_content or message.reasoning or ("" if counted(chat.usage) else None)
    )
    text = message.content if thoughts is None else None  # else its end is seen once it is apart
    return RawAnswer(
        answer=message.content,
        thoughts=thoughts,
        steps=steps,
        token_ids=choice.token_ids or ids_of(steps),
        prompt_token_ids=chat.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=stop_token(text, steps, choice.stop_reason),
        model=chat.model,
    )


def read_response(body: dict[str, Any]) -> RawAnswer:
    """The text of a Responses object."""
    response = Response.model_validate(body)
    messages = [item for item in response.output if item.type == "message"]
    reasoned = any(item.type == "reasoning" for item in response.output) or counted(response.usage)
    texts = [part for item in messages for part in item.content or () if part.type == "output_text"]
    if not texts:
        raise WrongRow("it has no message with an output_text")
    steps = token_steps([token for part in texts for token in part.logprobs or ()])
    answer = "".join(part.text for part in texts)
    finish = {"completed": "stop", "incomplete": "length"}.get(response.status or "")
    return RawAnswer(
        answer=answer,
        thoughts="" if reasoned else None,
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
