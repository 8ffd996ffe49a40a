"""Write config/README.md, config/{schema,task.schema}.json and the schema of calibrators' files.

make reference

README.md has a line for each key. jsonschema2md 1.7 makes 450 lines of nested lists from the same
schema, where no key has its path (study.main.tasks) and each optional key takes three lines.
"""

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from trace_workflow.config.config import Config
from trace_workflow.config.tasks import TaskSpec
from tracecal.io.regular_files import write_text

ROOT = Path(__file__).resolve().parents[1]
README = """# Configuration

A run is one YAML file: `snakemake --cores all --configfile config/mine.yaml`. Start from
`example.yaml`; `config.yaml` is what `make demo` runs, `paper.yaml` the paper's experiment. A wrong
key or value stops the run at the start with a sentence that says what is allowed. Editors that read
the line `# yaml-language-server: $schema=schema.json` complete and check keys as you type.
A folder that `snakedeploy deploy-workflow` or `init` wrote has it as `config/config.yaml`; it needs
the workflow's package: [how to install it](../docs/reference/installation.md#without-a-clone).

This page and the two `*.json` files are written from the code by `make reference`.

## Keys of a run

{run}
## Keys of a task file (`tasks/<slug>.yaml`)

{task}"""


class Key(NamedTuple):
    """A configuration key: path, accepted values, default as JSON ('' if required), meaning."""

    path: str
    takes: str
    default: str
    meaning: str


def schema_text(schema: type[BaseModel], title: str) -> str:
    """The JSON Schema of a configuration file, with which editors complete and check keys."""
    value = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    value |= schema.model_json_schema() | {"title": title}
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def keys(schema: type[BaseModel], path: str = "") -> Iterator[Key]:
    """Every key in the schema's order; the keys of a mapping follow the mapping's own."""
    for name, field in schema.model_fields.items():
        nested, repeated = _nested(field.annotation)
        here = f"{path}{name}{'[]' if repeated else ''}"
        default = _default(field)
        if nested and not default.startswith("{"):
            takes = "list of mappings" if repeated else "mapping"
            yield Key(here, takes, default, _meaning(field) or _summary(nested))
        if nested:
            yield from keys(nested, f"{here}.")
        else:
            yield Key(here, _takes(field.annotation), default, _meaning(field))


def markdown(schema: type[BaseModel]) -> str:
    """The keys as a Markdown table."""
    rows = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    for path, takes, default, meaning in keys(schema):
        default = f"`{_short(default)}`" if default else "required"
        rows.append(f"| `{path}` | {takes} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _nested(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The nested schema in a key's type, if any, and whether the value is a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for part in get_args(annotation):
        nested, repeated = _nested(part)
        if nested:
            return nested, repeated or get_origin(annotation) is tuple
    return None, False


def _takes(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin in (Union, types.UnionType):
        kinds = {_takes(part): None for part in parts if part is not type(None)}
        return " or ".join(kind for kind in kinds if kind != "Any")  # of Python alone
    if origin is tuple:
        return f"list of {_takes(parts[0])}"
    if origin is dict:
        return f"mapping of {_takes(parts[1])}"
    if parts:  # Annotated
        return _takes(parts[0])
    return {str: "text", int: "integer", float: "number", bool: "true or false"}.get(
        annotation, getattr(annotation, "__name__", str(annotation))
    )


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return ""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    text = text.replace("|", "\\|").replace("`", "'")
    return text if len(text) <= 80 else text[:77] + "..."


def _summary(schema: type[BaseModel]) -> str:
    """The first sentence of a schema's docstring, uncapitalised like the other meanings."""
    text = " ".join((schema.__doc__ or "").split(".")[0].split()).replace("`", "'")
    return text[:1].lower() + text[1:]


def _meaning(field: FieldInfo) -> str:
    return (field.description or "").replace("|", "\\|")


def described() -> dict[Path, str]:
    """Each file's path and text."""
    return {
        ROOT / "config/schema.json": schema_text(Config, "A run of the TRACE workflow"),
        ROOT / "config/task.schema.json": schema_text(TaskSpec, "A task of the TRACE workflow"),
        ROOT / "config/README.md": README.format(run=markdown(Config), task=markdown(TaskSpec)),
    }


if __name__ == "__main__":
    for path, text in described().items():
        write_text(text, path)
