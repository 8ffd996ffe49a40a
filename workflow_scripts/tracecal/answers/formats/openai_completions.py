"""Legacy completions of OpenAI's API, which vLLM, SGLang, llama.cpp and others use too."""

from pydantic import BaseModel, Field

from tracecal.answers.formats.format import Format, Row
from tracecal.answers.formats.openai_chat import first_choice
from tracecal.answers.formats.token_list import Token, TokenList, read_steps
from tracecal.answers.raw_answer import RawAnswer, infer_stop_token
from tracecal.answers.step import Step, require_id_per_step
from tracecal.errors import WrongRow


class CompletionLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = None


class ChatStyleLogprobs(TokenList):
    """Log-probabilities in the chat format, which llama.cpp uses for completions too."""

    content: list[Token]


class CompletionChoice(BaseModel):
    index: int = 0
    text: str
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: CompletionLogprobs | ChatStyleLogprobs | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class Completion(BaseModel):
    """A legacy completion."""

    model: str | None = None
    choices: list[CompletionChoice] = Field(min_length=1)


def read(row: Row) -> RawAnswer:
    """Read the first choice of a legacy completion.

    Its top log-probabilities are keyed by text, so tokens of equal text (all special tokens are '')
    were merged; a step with fewer of them than the rest may lack a likely token.
    """
    completion = Completion.model_validate(row)
    choice = min(completion.choices, key=lambda choice: choice.index)
    if isinstance(choice.logprobs, ChatStyleLogprobs):
        steps = read_steps(choice.logprobs.content, choice.token_ids)
    else:
        steps = _completion_steps(choice.logprobs) if choice.logprobs else []
        require_id_per_step(steps, choice.token_ids)
    return RawAnswer(
        answer=choice.text,
        steps=steps,
        token_ids=choice.token_ids,
        prompt_token_ids=choice.prompt_token_ids,
        finish_reason=choice.finish_reason,
        stop_token=infer_stop_token(choice.text, steps, choice.stop_reason),
        model=completion.model,
    )


def _completion_steps(logprobs: CompletionLogprobs) -> list[Step]:
    if len(logprobs.tokens) != len(logprobs.token_logprobs):
        raise WrongRow(
            f"it has {len(logprobs.tokens)} tokens and {len(logprobs.token_logprobs)} "
            "log-probabilities"
        )
    tops = [top or {} for top in logprobs.top_logprobs or [None] * len(logprobs.tokens)]
    width = max(map(len, tops), default=0)
    return [
        Step(text, None, logprob, list(top.items()), text, len(top) < width)
        for text, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, tops, strict=True)
    ]


FORMAT = Format("openai_completions", lambda row: "text" in first_choice(row), Completion, read)
