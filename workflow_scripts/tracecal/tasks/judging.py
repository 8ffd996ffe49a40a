"""How a task's answers are judged."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints, field_validator

from tracecal.tasks.asking import Ending

Rule = Literal["numeric", "alias", "squad", "squad_f1", "truthful", "truthful_rouge", "contains"]
OWN = "own."  # prefix of the rules of the file `own_rules`


class Judging(Ending):
    """How a task's answers are judged."""

    answer_pattern: str | None = Field(
        None, description="regular expression; group 1 of its last match is the judged answer"
    )
    correctness: Rule | Annotated[str, StringConstraints(pattern=r"^own\.[A-Za-z_]\w*$")] = Field(
        description="rule by which an answer is right; see docs/own.md. own.<name>: of own_rules"
    )
    f1_threshold: float = Field(
        0.5, gt=0, le=1, description="squad_f1: right from this F1 with a reference on"
    )

    @field_validator("correctness", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if value not in (known := get_args(Rule)) and not str(value).startswith(OWN):
            raise ValueError(f"must be {', '.join(known)} or own.<name>, not {value!r}")
        return value

    @property
    def own_rule(self) -> str | None:
        """The name of the user's own correctness rule; null where it is the package's."""
        return self.correctness.removeprefix(OWN) if self.correctness.startswith(OWN) else None

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
