"""Answers of servers: in OpenAI's formats, and in the native ones of some engines.

vLLM, SGLang, llama.cpp, Together, LiteLLM and others use OpenAI's. vLLM adds `token_ids`,
`prompt_token_ids` and `stop_reason`, the stop string or stop token that ended the answer.
"""

import math
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from tracecal.answers.record import Known, RawAnswer, counted, stop_token
from tracecal.answers.tokens import (
    Logprobs,
    Step,
    Token,
    WrongRow,
    ids_of,
    require_id_each,
    token_step,
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


# The native formats of llama.cpp's server, Ollama and SGLang.


Triple = tuple[float | None, int, str | None]


class LlamaCpp(BaseModel):
    """An answer of llama.cpp's `/completion`."""

    content: str
    tokens: list[int] | None = None
    stop_type: str | None = None
    model: str | None = None
    completion_probabilities: list[Token] | None = None


class OllamaMessage(BaseModel):
    content: str | None = None
    thinking: str | None = None


class Ollama(BaseModel):
    """An answer of Ollama's `/api/generate` or `/api/chat`."""

    model: str | None = None
    response: str | None = None
    thinking: str | None = None
    message: OllamaMessage | None = None
    done_reason: str | None = None
    logprobs: list[Token] | None = None


class Finish(BaseModel):
    type: str | None = None


class Meta(BaseModel):
    finish_reason: Finish | None = None
    output_token_logprobs: list[Triple | None] | None = None
    output_top_logprobs: list[list[Triple] | None] | None = None


class SGLang(BaseModel):
    """An answer of SGLang's `/generate`."""

    text: str | None = None
    output_ids: list[int] | None = None
    meta_info: Meta


def read_llama_cpp(body: dict[str, Any]) -> RawAnswer:
    """llama.cpp's format. Its log-probabilities are of the raw distribution; `prob` is not."""
    answer = LlamaCpp.model_validate(body)
    decoded = answer.completion_probabilities or []
    steps = [_llama_cpp_step(token) for token in decoded]
    sampled = any(token.get("prob", token.get("probs")) is not None for token in decoded)
    processed: Known = "unknown" if not decoded else "yes" if sampled else "no"
    return RawAnswer(
        answer=answer.content,
        steps=steps,
        token_ids=ids_of(steps) or answer.tokens or None,
        finish_reason=answer.stop_type,
        stop_token=stop_token(answer.content, steps),
        processed=processed,
        model=answer.model,
    )


def _llama_cpp_step(token: Token) -> Step:
    """Of a generated token; old builds write `content` and `probs` instead."""
    try:
        if (probs := token.get("probs")) is None:
            top = token.get("top_logprobs") or token.get("top_probs") or ()
            return token_step(_logged(token), [_logged(other) for other in top])
        # They state the chosen token's probability only in the list of the most likely ones.
        top, text = [(other["tok_str"], _log(other["prob"])) for other in probs], token["content"]
        return Step(text, None, dict(top).get(text), top, text)
    except (AttributeError, KeyError, TypeError) as error:
        raise WrongRow("its probabilities are no objects with 'content' and 'probs'") from error


def _logged(token: Token) -> Token:
    """A token with its log-probability, where its probability after sampling is stated instead."""
    prob = token.get("prob")
    return token if prob is None else {**token, "logprob": _log(prob)}


def read_ollama(body: dict[str, Any]) -> RawAnswer:
    """Ollama's format, of its completions or of its chat."""
    answer = Ollama.model_validate(body)
    text = answer.response if answer.message is None else answer.message.content
    thoughts = (answer if answer.message is None else answer.message).thinking or None
    steps = token_steps(answer.logprobs)
    return RawAnswer(
        answer=text,
        thoughts=thoughts,
        steps=steps,
        finish_reason=answer.done_reason,
        stop_token=stop_token(text if thoughts is None else None, steps),
        model=answer.model,
    )


def read_sglang(body: dict[str, Any]) -> RawAnswer:
    """SGLang's format: (log-probability, id, text or null) of each token."""
    answer = SGLang.model_validate(body)
    chosen = answer.meta_info.output_token_logprobs or []
    tops = answer.meta_info.output_top_logprobs or [None] * len(chosen)
    if len(tops) != len(chosen):
        raise WrongRow(f"it has {len(chosen)} tokens and {len(tops)} lists of the most likely")
    steps = [_triple_step(triple, top) for triple, top in zip(chosen, tops, strict=True)]
    require_id_each(steps, answer.output_ids)
    finish = answer.meta_info.finish_reason and answer.meta_info.finish_reason.type
    return RawAnswer(
        answer=answer.text,
        steps=steps,
        token_ids=answer.output_ids or ids_of(steps),
        finish_reason=finish,
        stop_token=stop_token(answer.text, steps),
    )


def _triple_step(triple: Triple | None, top: Sequence[Triple] | None) -> Step:
    if triple is None:
        return Step(None, None, None)
    logprob, token_id, text = triple
    return Step(text, token_id, logprob, [(key, value) for value, key, _ in top or ()], token_id)


def _log(probability: float) -> float | None:
    """ln p; null for 0, the probability of a token that sampling excludes."""
    if math.isnan(probability) or probability < 0:
        raise WrongRow(f"it has the probability {probability:g}")
    return math.log(probability) if probability > 0 else None
