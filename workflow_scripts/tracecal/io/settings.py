"""Strict settings: the base of all schemas, whose errors name the key and what is allowed.

`parse` validates nested values by a schema. Before, `require_plain` refuses what no schema allows;
`require_visible` refuses what a terminal must not show.
"""

import difflib
import inspect
import re
import string
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from tracecal.errors import InputError, listed

UNKNOWN = "unknown_key"  # an error type beside pydantic's own
MOST_VALUES = 2**24  # with aliases expanded
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but tabs and line ends
LONGEST_NAME = 100  # of the 255 bytes of most file systems, to leave room for suffixes


class Strict(BaseModel):
    """A frozen model of finite numbers, whose error for an unknown key lists the allowed ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _only_known_keys(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"must be a mapping with keys {', '.join(cls.allowed())}")
        if not (wrong := unknown("key", value, cls.allowed())):
            return validate(value)
        errors = [{"type": UNKNOWN, "msg": wrong, "loc": (), "input": value}]
        try:
            validate({key: item for key, item in value.items() if key in cls.allowed()})
        except ValidationError as error:
            # A missing key follows from a misspelt one; errors inside of the known keys do not.
            errors += [item for item in error.errors() if item["loc"] and item["type"] != "missing"]
        raise ValidationError.from_exception_data(cls.__name__, list(map(_as_raised, errors)))

    def changed(self, names: Iterable[str]) -> list[str]:
        """Those of the fields `names` that have another value than their default, sorted."""
        defaults = {name: type(self).model_fields[name].get_default() for name in names}
        return sorted(name for name, value in defaults.items() if getattr(self, name) != value)

    @classmethod
    def allowed(cls) -> list[str]:
        """The keys that may be given."""
        return [field.alias or name for name, field in cls.model_fields.items()]


def _as_raised(error: Mapping[str, Any]) -> InitErrorDetails:
    kind = PydanticCustomError(error["type"], "{msg}", {"msg": error["msg"]})
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"])


def unknown(what: str, names: Iterable[Any], allowed: Iterable[str]) -> str:
    """A message about the `names` that are not allowed, with similar ones; '' if all are.

    >>> unknown("key", ["sede"], ["seed"])
    "unknown key 'sede' (did you mean 'seed'?); allowed: seed"
    """
    allowed = list(allowed)
    wrong = []
    for name in (name for name in names if name not in allowed):
        close = difflib.get_close_matches(str(name), allowed, n=1)
        wrong.append(repr(name) + (f" (did you mean {close[0]!r}?)" if close else ""))
    several = "s" if len(wrong) > 1 else ""
    return (
        f"unknown {what}{several} {listed(wrong)}; allowed: {', '.join(allowed)}" if wrong else ""
    )


def _slug(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value) or ".." in value:
        raise ValueError(
            f"{value!r} cannot name files; use letters, digits, '-', '_' and single dots, "
            "beginning with a letter or digit"
        )
    if len(value) > LONGEST_NAME:
        raise ValueError(
            f"{value[:20]!r}... has {len(value)} characters, too many for a file name; use at most "
            f"{LONGEST_NAME}"
        )
    return value


Slug = Annotated[str, AfterValidator(_slug)]


def _repository(value: str) -> str:
    part = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
    if not re.fullmatch(f"{part}/{part}", value) or "--" in value or ".." in value:
        raise ValueError(
            f"{value!r} is not a Hub repository ID; write owner/name, as in its address"
        )
    return value


def _revision(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]*", value) or ".." in value:
        raise ValueError(f"{value!r} is not a revision; give a commit hash of 40 digits, or a ref")
    return value


Repository = Annotated[str, AfterValidator(_repository)]
Revision = Annotated[str, AfterValidator(_revision)]
Schema = TypeVar("Schema", bound=BaseModel)


def require_fields(template: str, allowed: Sequence[str], needed: Sequence[str]) -> str:
    """`template`; raise `ValueError` unless its fields are `allowed` and include all `needed`."""
    try:
        fields = [field for field in string.Formatter().parse(template) if field[1] is not None]
    except ValueError as error:
        raise ValueError(f"is not a template ({error}); write {{{{ for a plain brace") from error
    names = [name for _, name, _, _ in fields]
    braced = [f"{{{name}}}" for name in allowed]
    if unknown := [name for name in names if name not in allowed]:
        raise ValueError(f"unknown field {{{unknown[0]}}}; allowed: {', '.join(braced)}")
    for _, name, form, conversion in fields:
        if form or conversion:
            raise ValueError(f"write {{{name}}} without a format or conversion behind the name")
    if missing := [name for name in needed if name not in names]:
        raise ValueError(f"must hold {{{missing[0]}}}")
    return template


def parse(schema: type[Schema], value: Any, where: str) -> Schema:
    """Validate `value`; raise `InputError` with a line per error, which names the key's path."""
    require_plain(value, where)
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        errors = [item for item in error.errors() if not _follows(item, error.errors())]
        raise InputError("\n".join(_once(_sentence(where, item) for item in errors))) from error


def _once(sentences: Iterable[str]) -> Iterator[str]:
    """The sentences, where only the first of those with the same list of allowed keys keeps it."""
    already_listed = set()
    for sentence in sentences:
        unknown_key, _, allowed = sentence.partition("; allowed: ")
        yield unknown_key if allowed in already_listed else sentence
        already_listed |= {allowed} - {""}


def _follows(item: Any, items: Sequence[Any]) -> bool:
    """Whether an error follows from one inside it: a wrong item leaves its list empty."""
    depth = len(item["loc"])
    return item["type"] != UNKNOWN and any(
        len(inner["loc"]) > depth and inner["loc"][:depth] == item["loc"] for inner in items
    )


def _sentence(where: str, item: Any) -> str:
    path, kind, value = key_path(item["loc"]), item["type"], item["input"]
    message = item["msg"].removeprefix("Value error, ").replace("valid tuple", "list")
    if kind == "missing":
        message = "is required"
    elif kind == "string_type" and not isinstance(value, dict | list | None):
        # YAML reads 2024, 2024-01-01 and no as a number, a date and false.
        message = f"must be text; YAML reads {value} otherwise: put it in quotes, in a file"
    elif kind != "value_error" and isinstance(value, str | int | float):
        message += f", not {value!r}"
    return f"{where}: {path + ': ' if path else ''}{message}"


def require_plain(value: Any, where: str) -> None:
    """Raise `InputError` for too many values, and for text with a script or a lone surrogate.

    Snakemake's report writes rules' parameters, and so these texts, into a script unescaped.
    Prompts may hold other tags.
    """
    require_small(value, where)
    for keys, text in _texts(value):
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(f"{where}: {key_path(keys)}: holds an unpaired surrogate")
        if tag := re.search(r"</?script|<!--", text, re.IGNORECASE):
            raise InputError(
                f"{where}: {key_path(keys)}: {tag[0]!r} would run in the report's page; leave it "
                "out"
            )


def require_visible(value: Any, where: str) -> None:
    """Raise `InputError` for text that holds a character that controls a terminal."""
    require_small(value, where)
    for keys, text in _texts(value):
        if control := CONTROL.search(text):
            raise InputError(
                f"{where}: {key_path(keys)}: holds the control character {control[0]!r}, which "
                "would steer the terminal that shows it"
            )


def _texts(value: Any, *keys: str | int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """All texts in nested mappings and lists, each with its path of keys."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, *keys, key)


def require_small(value: Any, where: str) -> None:
    """Raise `InputError` for too many values: by aliases, few lines of YAML can hold billions."""
    try:
        size = _size(value, {})
    except RecursionError:
        raise InputError(f"{where}: it contains itself, or is nested too deep.") from None
    if size > MOST_VALUES:
        raise InputError(f"{where}: its aliases stand for {size:,} values; write them out.")


def _size(value: Any, sizes: dict[int, int]) -> int:
    """Count the values with aliases expanded; `sizes` holds the parts' counts by id."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in sizes:
        parts = value.values() if isinstance(value, dict) else value
        sizes[id(value)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(value)]


def key_path(keys: Sequence[str | int]) -> str:
    """Write the keys to a value as one path.

    >>> key_path(["models", 0, "path"])
    'models[0].path'
    """
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in keys]
    return "".join(steps).removeprefix(".")


def with_parameters(model: type[Schema]) -> type[Schema]:
    """Describe the fields of `model` in its docstring, as numpydoc does, by their descriptions."""
    lines = ["Parameters", "----------"]
    for name, field in model.model_fields.items():
        what = field.description or ""
        wrapped = textwrap.wrap(what[:1].upper() + what[1:] + ".", 90)
        lines += [f"{name} : {kind_of(field.annotation)}", *(f"    {line}" for line in wrapped)]
    summary, heading, rest = (inspect.getdoc(model) or "").partition("Examples\n--------\n")
    model.__doc__ = "\n".join([summary.rstrip(), "", *lines, "", heading + rest])
    return model


def kind_of(annotation: Any) -> str:
    """The type of a field as numpydoc writes it: its choices, or str, int, float, bool or dict."""
    if get_origin(annotation) is Literal:
        return f"{{{', '.join(map(repr, get_args(annotation)))}}}"
    text = str(annotation)
    return next(kind for kind in ("dict", "list", "bool", "int", "float", "str") if kind in text)
