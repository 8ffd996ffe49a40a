"""Settings of self-evaluation: the questions that a model answers about its own answers."""

from pydantic import Field, field_validator

from tracecal.io.settings import Strict, require_fields

FIELDS = ("question", "context", "answer")


class SelfEvaluation(Strict):
    """The prompts of P(True) and verbalised confidence."""

    p_true_prompt: str = Field(
        "{context}\n\nQuestion: {question}\nProposed answer: {answer}\n\n"
        "Is the proposed answer (A) true or (B) false?",
        description="the user's message; may hold {context}",
    )
    p_true_start: str = Field(
        "The proposed answer is (",
        description="start of the model's reply; the option A or B is the next token",
    )
    verbalized_prompt: str = Field(
        "How probable is it that your answer is correct? Reply with a number between 0.0 (surely "
        "wrong) and 1.0 (surely correct), and with nothing else.",
        description="the user's second message; may hold {question}, {context}, {answer}",
    )

    @field_validator("p_true_prompt")
    @classmethod
    def _shows_question_and_answer(cls, value: str) -> str:
        return require_fields(value, FIELDS, ("question", "answer"))

    @field_validator("p_true_start")
    @classmethod
    def _ends_on_a_token(cls, value: str) -> str:
        if value != value.rstrip():
            raise ValueError("must not end in white space, which the option's own token may hold")
        return value

    @field_validator("verbalized_prompt")
    @classmethod
    def _asks_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; ask the model for its confidence")
        return require_fields(value, FIELDS, ())
