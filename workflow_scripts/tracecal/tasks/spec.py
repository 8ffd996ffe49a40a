"""The declarative task file: its rows, how they are asked and how answers are judged."""

from pathlib import Path

from pydantic import Field

from tracecal.schema import Strict
from tracecal.tasks.asking import Asking
from tracecal.tasks.judging import Judging
from tracecal.tasks.rows import Rows


class TaskSpec(Rows, Asking, Judging):
    """One task file. Each rule gets only the part that it uses."""

    label: str = Field(description="names the task in tables and figures")
    short_label: str | None = Field(
        None, description="name in the tables of the cross-model study; null: the label"
    )

    def part(self, kind: type[Strict]) -> str:
        """The settings of one part (`Rows`, `Asking` or `Judging`) as JSON."""
        return self.model_dump_json(include=set(kind.model_fields))


def task_file(slug: str, file: str | None, root: Path) -> Path:
    """A task's file: `file`, or config/tasks/<slug>.yaml in the working folder, or else in `root`.

    The two folders differ where another workflow uses this one as a module.
    """
    own = Path(file or f"config/tasks/{slug}.yaml")
    return own if file or own.exists() else root / own
