"""Legacy completions of OpenAI's API, which vLLM, SGLang, llama.cpp and others use too."""

from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.formats.format import Format, Row, split_list
from tracecal.answers.formats.logprobs import read_logprobs
from tracecal.answers.formats.openai_chat import first_choice
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token


class CompletionChoice(BaseModel):
    index: int = 0
    text: str
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: Any = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class Completion(BaseModel):
    """A legacy completion."""

    model: str | None = None
    choices: list[CompletionChoice] = Field(min_length=1)


def read(row: Row) -> RawAnswer:
    """Read the first choice of a legacy completion; llama.cpp lists its tokens as chats do."""
    completion = Completion.model_validate(row)
    choice = min(completion.choices, key=lambda choice: choice.index)
    steps = read_logprobs(choice.logprobs, choice.token_ids)
    return RawAnswer(
        answer=choice.text,
        steps=steps,
        token_ids=choice.token_ids,
        prompt_token_ids=choice.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=infer_stop_token(choice.text, steps, choice.stop_reason),
        model=completion.model,
    )


FORMAT = Format(
    "openai_completions",
    lambda row: "text" in first_choice(row),
    Completion,
    read,
    split=lambda row: split_list(row, "choices"),
)
