"""How a task's answers are judged."""

import re
from typing import Literal

from pydantic import Field, field_validator

from tracecal.tasks.asking import Ending


class Judging(Ending):
    """How a task's answers are judged."""

    answer_pattern: str | None = Field(
        None, description="regular expression; group 1 of its last match is the judged answer"
    )
    correctness: Literal[
        "numeric", "alias", "squad", "squad_f1", "truthful", "truthful_rouge", "contains"
    ] = Field(description="the rule by which an answer is right; see README.md")
    f1_threshold: float = Field(
        0.5, gt=0, le=1, description="squad_f1: right from this F1 with a reference on"
    )

    @field_validator("answer_pattern")
    @classmethod
    def _one_group(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                groups = re.compile(value).groups
            except re.error as error:
                raise ValueError(f"is not a regular expression: {error}") from error
            if groups != 1:
                raise ValueError(f"needs exactly one group, the answer; it has {groups}")
        return value
