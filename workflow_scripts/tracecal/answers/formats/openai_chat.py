"""Chat completions of OpenAI's API, which vLLM, SGLang, llama.cpp, LiteLLM and others use too.

vLLM adds `token_ids`, `prompt_token_ids` and `stop_reason`, the stop string or stop token that
ended the answer; DeepSeek and vLLM add the reasoning. Together, older versions of vLLM and
llama-cpp-python list log-probabilities as older completions do; Mistral gives content in parts.
"""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.format import Format, Row, split_list
from tracecal.answers.formats.logprobs import read_logprobs
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.reasoning import Content, counts_reasoning, split_content
from tracecal.answers.step import step_token_ids


class Message(BaseModel):
    content: Content = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # another name of it


class Choice(BaseModel):
    index: int = 0
    message: Message
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: Any = None
    token_ids: list[int] | None = None


class ChatCompletion(BaseModel):
    """A chat completion."""

    model: str | None = None
    choices: list[Choice] = Field(min_length=1)
    prompt_token_ids: list[int] | None = None
    usage: Any = None


def first_choice(row: Row) -> Row:
    """The first of the `choices` of a row; empty where it has none.

    >>> first_choice({"choices": [{"text": "Lima"}]})
    {'text': 'Lima'}
    """
    choices = row.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def read(row: Row) -> RawAnswer:
    """Read the first choice of a chat completion."""
    completion = ChatCompletion.model_validate(row)
    choice = min(completion.choices, key=lambda choice: choice.index)
    steps = read_logprobs(choice.logprobs, choice.token_ids)
    message = choice.message
    answer, thoughts = split_content(message.content)
    thoughts = message.reasoning_content or message.reasoning or thoughts
    if thoughts is None:
        thoughts = "" if counts_reasoning(completion.usage) else None
    # Behind reasoning the end of the answer is compared once its tokens are known.
    text = answer if thoughts is None else None
    return RawAnswer(
        answer=answer,
        thoughts=thoughts,
        steps=steps,
        token_ids=choice.token_ids or step_token_ids(steps),
        prompt_token_ids=completion.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=infer_stop_token(text, steps, choice.stop_reason),
        model=completion.model,
    )


FORMAT = Format(
    "openai_chat",
    lambda row: "message" in first_choice(row),
    ChatCompletion,
    read,
    split=lambda row: split_list(row, "choices"),
)
