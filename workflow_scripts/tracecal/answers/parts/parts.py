"""Which parts an answer has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from tracecal.answers.parts.json_document import steps
from tracecal.answers.parts.json_schema import leaves
from tracecal.errors import InputError
from tracecal.io.expressions import compiled
from tracecal.io.input_files import read_yaml
from tracecal.io.settings import Strict, parse

# A list's mark or bold type may stand before the name; possessive, so that no line is read twice.
MARKS = " \t>*•-"
LINE = rf"^[{MARKS}]*+(?P<name>[^:*\n]++)\**+:\**+[ \t]*+(?P<value>\S[^\n]*)$"
KINDS = ("json", "lines", "final", "sentences")


class Parts(Strict):
    """The parts of each answer: exactly one of `json`, `lines`, `final` and `sentences`."""

    in_json: tuple[str, ...] = Field(
        (), alias="json", description="paths of a JSON answer's values, as address.city"
    )
    lines: tuple[str, ...] = Field((), description="names of lines, as capital in 'Capital: Lima'")
    pattern: str = Field(
        LINE, description="of `lines`: a regular expression with the groups 'name' and 'value'"
    )
    final: str | None = Field(
        None,
        description="regular expression; the part is what follows its last match, or the group "
        "'value' of that match",
    )
    sentences: bool = Field(False, description="each sentence is a part; of answers from files")
    reasoning: Literal["apart", "alone", "within"] = Field(
        "apart",
        description="of `final`: the trace is of the conclusion (apart), of the reasoning before "
        "it (alone) or of both (within)",
    )
    missing: Literal["unanswered", "wrong"] = Field(
        "unanswered",
        description="a part that an answer lacks is left out and counted, or counts as wrong",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "Parts":
        given = [bool(kind) for kind in (self.in_json, self.lines, self.final, self.sentences)]
        if given.count(True) != 1:
            raise ValueError(f"give exactly one of {', '.join(map(repr, KINDS))}")
        if self.reasoning != "apart" and not self.final:
            raise ValueError("'reasoning' stands before a conclusion: it belongs to 'final'")
        if len({*self.names}) < len(self.names):
            raise ValueError("names a part twice")
        return self

    @field_validator("in_json")
    @classmethod
    def _paths(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in value:
            steps(path)
        return value

    @field_validator("pattern", "final")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value not in (None, LINE):
            compiled(value)
        return value

    @field_validator("pattern")
    @classmethod
    def _has_groups(cls, value: str) -> str:
        if value != LINE and not {"name", "value"} <= compiled(value).groupindex.keys():
            raise ValueError("must hold the groups (?P<name>...) and (?P<value>...)")
        return value

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts; none for sentences, of which each answer has its own number."""
        return self.in_json or self.lines or (("final",) if self.final else ())

    @property
    def pooled(self) -> tuple[str, ...]:
        """The names that one calibrator tells apart; none where there are not several."""
        return self.names if len(self.names) > 1 else ()


def given_parts(given: str) -> Parts:
    """The parts that a file or a text states, YAML or JSON; or a JSON Schema, of which they are the
    leaves.

    Raises `InputError`.

    >>> given_parts("json: [capital, address.city]").names
    ('capital', 'address.city')
    """
    try:
        is_file = Path(given).is_file()
    except OSError:  # a text longer than any name
        is_file = False
    try:
        value = read_yaml(given) if is_file else yaml.safe_load(given)
    except yaml.YAMLError as error:
        raise InputError(
            f"--parts: {given[:60]!r} is neither a file nor YAML ({error})."
        ) from error
    where = given if is_file else "--parts"
    if isinstance(value, dict) and not {*KINDS}.intersection(value):
        try:
            value = {"json": _leaves_of(value)}
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"{where}: {error}; state the parts as one of {', '.join(KINDS)}, such as "
                "'json: [capital, currency]', or give a JSON Schema."
            ) from error
    return parse(Parts, value, where)


def _leaves_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The `leaves` of a JSON Schema, by itself or as requests hold one."""
    return leaves(schema.get("schema") or schema.get("json_schema", {}).get("schema") or schema)


def asked_parts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """The leaves of the JSON Schema that a request to a server asks its answer to follow, in
    `response_format` or in the `text` of Responses; none where that has none or is no schema.
    """
    text = request.get("text")
    form = text.get("format") if isinstance(text, dict) else request.get("response_format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return ()
    try:
        return Parts(json=_leaves_of(form)).names
    except (AttributeError, TypeError, ValueError):
        return ()
