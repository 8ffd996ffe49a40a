"""The declarative task file: its rows, how they are asked and how answers are judged."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt, model_validator

from trace_workflow.config.correctness import CorrectnessSettings
from trace_workflow.config.prompting import PromptSettings
from tracecal.answers.parts.parts import Parts
from tracecal.io.settings import Repository, Revision, Slug, Strict, require_fields, unknown


class Source(Strict):
    """Where a task's rows come from: exactly one of `path`, `hub` and `parts_of`."""

    path: str | None = Field(
        None, description="local .parquet, .jsonl, .json or .csv file; may hold {split}, {language}"
    )
    hub: Repository | None = Field(None, description="owner/name of a dataset on the hub")
    config: str | None = Field(
        None, description="the hub's configuration (subset); may hold {language}"
    )
    revision: Revision | None = Field(
        None, description="revision on the hub: a commit hash, or a ref that staging resolves"
    )
    languages: tuple[str, ...] = Field(
        (), description="values of {language} in 'path' or 'config': a file or configuration each"
    )
    parts_of: Slug | None = Field(
        None, description="another task of the run, whose answers are cut into the examples"
    )
    split: str = Field("test", description="split that is evaluated")
    training_split: str | None = Field(
        None, description="split whose rows train supervised estimators; null: none"
    )

    @model_validator(mode="after")
    def _one_source(self) -> "Source":
        if [self.path, self.hub, self.parts_of].count(None) != 2:
            raise ValueError(
                "give exactly one of 'path' (local file), 'hub' (owner/name) and 'parts_of' "
                "(another task)"
            )
        if self.path:
            require_fields(self.path, ["split", "language"], [])
        if self.path and self.training_split and "{split}" not in self.path:
            raise ValueError(
                "'training_split' needs '{split}' in 'path', since each split is a separate file: "
                "write it in place of the split's name, as in 'rows/{split}.jsonl', or use no "
                "training rows (in a run: 'training_limit: 0')"
            )
        key = "config" if self.hub else "path"
        if bool(self.languages) != ("{language}" in (getattr(self, key) or "")):
            raise ValueError(f"'languages' and '{{language}}' in '{key}' must be given together")
        if self.hub:
            self._check_hub()
        elif self.config or self.revision:
            raise ValueError("'config' and 'revision' belong to a 'hub' source")
        return self

    def _check_hub(self) -> None:
        if self.revision is None:
            raise ValueError(
                "'hub' needs 'revision', a commit hash, as listed at "
                f"https://huggingface.co/datasets/{self.hub}/commits/main"
            )
        for name in (self.split, self.training_split, *self.languages):
            if name is not None and not re.fullmatch(r"\w[\w.-]*", name):
                raise ValueError(f"{name!r} is not a valid name of a hub's split or language")


def local_source(source: dict[str, Any], path: str, trained: bool) -> dict[str, Any]:
    """A task file's `source` with its rows taken from local files at `path` instead.

    Its training split is left out unless training rows are used (`trained`).
    """
    keys = {"languages", "split"} | ({"training_split"} if trained else set())
    return {key: value for key, value in source.items() if key in keys} | {"path": path}


class RowFile(NamedTuple):
    """The rows of one file: of one role, and of one language where there are several."""

    role: str
    split: str
    language: str | None

    def fill(self, pattern: str) -> str:
        """`pattern` with this file's split and language in place of {split} and {language}."""
        return pattern.replace("{split}", self.split).replace("{language}", self.language or "")

    @property
    def name(self) -> str:
        """The name of its staged file: the split, and the language."""
        return f"{self.split}-{self.language}" if self.language else self.split


class Fields(Strict):
    """Which fields of a row hold what; dots reach into nested fields, e.g. ``answer.aliases``."""

    id: str | None = Field(None, description="unique id; null: a hash of question and context")
    group: str | None = Field(
        None, description="shared by variants and translations of one example"
    )
    question: str = Field(description="what is asked; rows without it are dropped")
    context: str | None = Field(None, description="a passage that the question is about")
    references: str | list[str] = Field(description="one field, or several that are joined")
    distractors: str | None = Field(None, description="known false answers")
    language: str | None = Field(
        None, description="language of the row; null: the task's 'language'"
    )


class Rows(Strict):
    """Which rows a task has."""

    source: Source
    fields: Fields | None = Field(
        None, description="required for a 'path' or 'hub' source, and for no other"
    )
    parts: Parts | None = Field(None, description="which parts, for a 'parts_of' source")
    references: dict[str, str | tuple[str, ...]] = Field(
        {},
        description="fields in the other task's rows with the references of each part, for a "
        "'parts_of' source; default: the field named as the part; 'final': the row's references",
    )
    language: str = Field("en", description="language of rows without a language field")
    limit: PositiveInt | None = Field(
        None, description="evaluation rows to sample, with the run's seed"
    )
    max_characters: PositiveInt | None = Field(
        None, description="rows with a longer question and context are left out, and counted"
    )
    training_limit: int = Field(0, ge=0, description="rows with role 'training'")

    @model_validator(mode="after")
    def _fields_where_needed(self) -> "Rows":
        if (self.source.path or self.source.hub) is not None and self.fields is None:
            raise ValueError("'fields' is required for a 'path' or 'hub' source")
        if self.source.parts_of is not None and self.fields is not None:
            raise ValueError("'fields' is not allowed for a 'parts_of' source")
        return self

    @model_validator(mode="after")
    def _parts_where_needed(self) -> "Rows":
        if (self.source.parts_of is None) != (self.parts is None):
            raise ValueError("'parts' and 'source: {parts_of: ...}' must be given together")
        if self.parts is None:
            if self.references:
                raise ValueError("'references' by part belong to 'source: {parts_of: ...}'")
            return self
        if limits := self.changed({"limit", "max_characters", "training_limit"}):
            raise ValueError(
                f"{limits[0]!r} is not allowed with 'parts_of': the rows are those of "
                f"{self.source.parts_of!r}; limit that task"
            )
        if not self.parts.names:
            raise ValueError("'sentences' are parts of answers in files, not of a task's rows")
        if many := [name for name in self.parts.names if "[]" in name]:
            raise ValueError(
                f"{many[0]!r} names as many parts as an answer has; a task's rows are the same for "
                f"every model, so name its elements, as {many[0].replace('[]', '[0]', 1)!r}"
            )
        if wrong := unknown("part", self.references, self.parts.names):
            raise ValueError(f"references: {wrong}")
        return self

    @property
    def has_training_rows(self) -> bool:
        return self.source.training_split is not None and self.training_limit > 0

    def row_files(self) -> list[RowFile]:
        """The files that the rows are read from, evaluation first; none for parts of answers."""
        if self.fields is None:
            return []
        splits = {"evaluation": self.source.split}
        if self.has_training_rows:
            splits["training"] = self.source.training_split
        languages = self.source.languages or (None,)
        return [
            RowFile(role, split, language)
            for role, split in splits.items()
            for language in languages
        ]

    def local_files(self) -> list[str]:
        """The files of a `path` source."""
        return [file.fill(self.source.path or "") for file in self.row_files()]


class TaskSpec(Rows, PromptSettings, CorrectnessSettings):
    """One task file. Each rule gets only the part that it uses."""

    label: str = Field(description="names the task in tables and figures")
    short_label: str | None = Field(
        None, description="name in tables of the cross-model study; null: the label"
    )

    @model_validator(mode="after")
    def _agrees(self) -> "TaskSpec":
        names = self.parts.names if self.parts else None
        if isinstance(self.correctness, dict) and {*self.correctness} != {*(names or ())}:
            expected = f"the parts are {', '.join(names)}" if names else "the task has no 'parts'"
            raise ValueError(f"'correctness' must be one rule, or one for each part: {expected}")
        for_asking = {*PromptSettings.model_fields} - {*CorrectnessSettings.model_fields}
        if names and (changed := self.changed(for_asking)):
            raise ValueError(
                f"{changed[0]!r} is not allowed with 'parts_of': nothing is asked again; set "
                f"it in the task {self.source.parts_of!r}"
            )
        return self

    def part(self, kind: type[Strict]) -> str:
        """The settings that one part declares (`Rows`, `PromptSettings`, …), as JSON."""
        return self.model_dump_json(include=set(kind.model_fields), by_alias=True)


def task_file(slug: str, file: str | None, root: Path) -> Path:
    """A task's file: `file`, or else config/tasks/<slug>.yaml, a `local_path`."""
    return Path(file or local_path(f"config/tasks/{slug}.yaml", root))


def local_path(path: str, root: Path) -> str:
    """`path` in the working folder, or else in `root`, the workflow's own folder.

    The two folders differ where another workflow uses this one as a module.
    """
    shipped = root / path
    return path if Path(path).exists() or not shipped.exists() else str(shipped)
