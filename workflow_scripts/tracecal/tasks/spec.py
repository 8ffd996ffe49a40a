"""The declarative task file: its rows, how they are asked and how answers are judged."""

from pathlib import Path

from pydantic import Field, model_validator

from tracecal.inputs.schema import Strict
from tracecal.tasks.asking import Asking
from tracecal.tasks.judging import Judging
from tracecal.tasks.rows import Rows


class TaskSpec(Rows, Asking, Judging):
    """One task file. Each rule gets only the part that it uses."""

    label: str = Field(description="names the task in tables and figures")
    short_label: str | None = Field(
        None, description="name in the tables of the cross-model study; null: the label"
    )

    @model_validator(mode="after")
    def _agrees(self) -> "TaskSpec":
        names = self.parts.names if self.parts else None
        if isinstance(self.correctness, dict) and {*self.correctness} != {*(names or ())}:
            expected = f"the parts are {', '.join(names)}" if names else "the task has no 'parts'"
            raise ValueError(f"'correctness' must be one rule, or one for each part: {expected}")
        asked = {*Asking.model_fields} - {*Judging.model_fields}
        if names and (given := self.changed(asked)):
            raise ValueError(
                f"{given[0]!r} is not allowed with 'parts_of': nothing is asked again; set "
                f"it in the task {self.source.parts_of!r}"
            )
        return self

    def part(self, kind: type[Strict]) -> str:
        """The settings of one part (`Rows`, `Asking` or `Judging`) as JSON."""
        return self.model_dump_json(include=set(kind.model_fields), by_alias=True)


def task_file(slug: str, file: str | None, root: Path) -> Path:
    """A task's file: `file`, or config/tasks/<slug>.yaml in the working folder, or else in `root`.

    The two folders differ where another workflow uses this one as a module.
    """
    path = Path(file or f"config/tasks/{slug}.yaml")
    return path if file or path.exists() else root / path
