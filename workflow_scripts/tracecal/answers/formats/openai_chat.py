"""Chat completions of OpenAI's API."""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.token_list import Logprobs, Token, token_steps
from tracecal.answers.raw_answer import RawAnswer
from tracecal.answers.reasoning import counted
from tracecal.answers.step import ids_of
from tracecal.answers.stop_token import stop_token


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
