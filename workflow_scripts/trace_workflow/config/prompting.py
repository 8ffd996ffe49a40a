"""How a task's examples become prompts, and where answers end."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt, field_validator

from tracecal.io.settings import Strict, require_fields

PROMPT_FIELDS = ("question", "context")
NO_TEMPLATE = (
    "{} has no chat template, so it is asked in plain text, in which a model that was trained on "
    "chats answers worse; set the model's 'chat: false' if you mean that."
)


def template_fields(allowed: Sequence[str], *needed: str) -> AfterValidator:
    """The check of a template's fields: they are `allowed` and include all `needed`."""
    return AfterValidator(lambda template: require_fields(template, allowed, needed))


class Shot(Strict):
    """A worked example shown before the question."""

    question: str = Field(description="fills {question}")
    answer: str = Field(description="the model's answer in this example")
    context: str | None = Field(None, description="fills {context}")


class Ending(Strict):
    """Where an answer ends, for decoding and for judging."""

    stop: tuple[str, ...] = Field((), description="strings that end an answer")

    @field_validator("stop")
    @classmethod
    def _no_empty_stop(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "" in value:
            raise ValueError("an empty stop string would end every answer at once")
        return value


class PromptSettings(Ending):
    """How a task's examples become prompts."""

    system: str | None = Field(None, description="system text before the conversation")
    prompt: Annotated[str, template_fields(PROMPT_FIELDS, "question")] = Field(
        "{question}", description="the user's message; may hold {question}, {context}"
    )
    few_shot: tuple[Shot, ...] = Field((), description="worked examples before the question")
    max_new_tokens: PositiveInt = Field(64, description="largest number of tokens in an answer")


def until_stop(answer: str, stop: Iterable[str]) -> str:
    """The answer before its earliest stop string."""
    ends = [end for text in stop if (end := answer.find(text)) >= 0]
    return answer[: min(ends)] if ends else answer


def filled(template: str, question: str, context: str | None, answer: str) -> str:
    """`template` with its fields filled in; a missing context is empty.

    White space at both ends is dropped, so a template may begin with `{context}`.
    """
    return template.format(question=question, context=context or "", answer=answer).strip()
