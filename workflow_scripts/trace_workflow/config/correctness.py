"""How a task's answers are judged."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints, field_validator

from trace_workflow.config.prompting import Ending
from tracecal.io.expressions import parsed

Rule = Literal["numeric", "alias", "squad", "squad_f1", "truthful", "contains"]
CustomRule = Annotated[str, StringConstraints(pattern=r"^custom\.[A-Za-z_]\w*$")]
CUSTOM = "custom."  # prefix of the rules of the file `custom_rules`


class CorrectnessSettings(Ending):
    """How a task's answers are judged."""

    answer_pattern: str | None = Field(
        None, description="regular expression; group 1 of its last match is the judged answer"
    )
    correctness: Rule | CustomRule | dict[str, Rule | CustomRule] = Field(
        description="rule that judges answers, or a rule for each part of an answer; "
        "custom.<name>: a rule from custom_rules; see docs/guides/extend.md"
    )
    f1_threshold: float = Field(
        0.5, gt=0, le=1, description="squad_f1: F1 with a reference from which an answer is correct"
    )

    @field_validator("correctness", mode="before")
    @classmethod
    def _known_rules(cls, value: Any) -> Any:
        for rule in value.values() if isinstance(value, dict) else [value]:
            if rule not in (rules := get_args(Rule)) and not str(rule).startswith(CUSTOM):
                raise ValueError(f"must be {', '.join(rules)} or custom.<name>, not {rule!r}")
        return value

    @property
    def rules(self) -> list[str]:
        """The rules, each once."""
        by_part = isinstance(self.correctness, dict)
        return list(dict.fromkeys(self.correctness.values() if by_part else [self.correctness]))

    @property
    def custom_rules(self) -> list[str]:
        """The names of the user's own rules."""
        return [rule.removeprefix(CUSTOM) for rule in self.rules if rule.startswith(CUSTOM)]

    def of_part(self, part: str) -> "CorrectnessSettings":
        """The settings for judging the part of this name."""
        return self.model_copy(update={"correctness": self.correctness[part]})

    @field_validator("answer_pattern")
    @classmethod
    def _one_group(cls, value: str | None) -> str | None:
        if value is not None and (groups := parsed(value).groups) != 1:
            raise ValueError(f"needs exactly one group, the answer; it has {groups}")
        return value
