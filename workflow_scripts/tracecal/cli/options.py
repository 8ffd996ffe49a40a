"""Parameters of the API as options of the command line, with the texts of its docstrings."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from tracecal.answers.reading import UNTYPED
from tracecal.cli.api_source import Parameter
from tracecal.cli.files import flag
from tracecal.errors import InputError
from tracecal.io.settings import Strict

PAIR_EXAMPLES = {"columns": "answer=output.text", "also": "judge=scores.judge"}


USUALLY, MORE = "Usually", "More"  # the first and the last panel of a command's help
# What a first hour with a log needs of `Reading`.
FIRST_READING = ("id", "columns", "also", "labels", "wrong_rows")


class ModelOptions(NamedTuple):
    """Which fields of a model are options, with which defaults, in which panels of the help (else
    in `panel`), or `hidden` there but those `visible`.
    """

    only: tuple[str, ...] = ()
    defaults: Mapping[str, str] = {}
    panels: Mapping[str, tuple[str, ...]] = {}
    hidden: bool = False
    visible: tuple[str, ...] = ()
    panel: str = MORE


def reading_options(*visible: str, **settings: Any) -> ModelOptions:
    """The options of `Reading`: help shows some, and leaves the others to 'tracecal reading'."""
    return ModelOptions(hidden=True, visible=visible, panel="How rows are read", **settings)


def command_line_type(annotation: Any) -> Any:
    """The type of an option: a path, frame, mapping or object is given as the name of a file."""
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not type(None)]
    if get_origin(annotation) in (Literal, tuple, list):
        return annotation
    if len(kinds) == 1 and (kinds[0] in (bool, int, float) or get_args(kinds[0])):
        return kinds[0] if kinds[0] is annotation else annotation
    return str if type(None) not in get_args(annotation) else str | None


def as_option(
    parameter: Parameter, flags: Sequence[str], panel: str, endings: tuple[str, ...]
) -> inspect.Parameter:
    """A parameter as typer takes it; an argument where there are no `flags`."""
    kind = command_line_type(parameter.annotation)
    choices = [kind, *get_args(kind)]
    metavar = "NAME" if any(get_origin(choice) is Literal for choice in choices) else None
    if any(get_origin(choice) is tuple for choice in choices):
        metavar = "PROMPT GENERATED"
    settings: dict[str, Any] = {
        "help": escaped(parameter.text),
        "metavar": metavar,
        "rich_help_panel": panel,
        "callback": require_ending(endings) if endings else None,
    }
    if not flags:
        del settings["rich_help_panel"]  # arguments have their own
    option = typer.Option(*flags, **settings) if flags else typer.Argument(**settings)
    return typer_parameter(parameter.name, kind, option, parameter.default)


def model_options(model: type[Strict], settings: ModelOptions) -> Iterator[inspect.Parameter]:
    """The fields of a model as options, in the order of their panels."""
    panel_of = {name: panel for panel, names in settings.panels.items() for name in names}
    untyped = {*panel_of, *UNTYPED}
    names = [name for name in settings.only or model.model_fields if name not in untyped]
    for name in (*names, *panel_of):
        field = model.model_fields[name]
        default = settings.defaults.get(name, field.get_default())
        hidden = settings.hidden and name not in settings.visible
        yield field_option(name, field, default, panel_of.get(name, settings.panel), hidden)


def field_option(
    name: str, field: FieldInfo, default: Any, panel: str, hidden: bool
) -> inspect.Parameter:
    """A field of a model as an option. Numbers stay text, which the model parses and refuses."""
    kind, metavar, text = field.annotation, None, field.description or ""
    if get_origin(kind) in (dict, list):
        metavar = "COLUMN=PATH" if get_origin(kind) is dict else "NAME"
        kind, default = list[str], []
    elif get_origin(kind) is Literal:
        metavar, choices = "NAME", get_args(kind)
        if any(choice not in text for choice in choices):
            text += f" ({', '.join(choices)})"
    elif kind is not bool:
        metavar = next(f"<{type_}>" for type_ in ("int", "float", "str") if type_ in str(kind))
        kind, default = str | None, None if default is None else str(default)
    if field.is_required():
        kind, default = str, inspect.Parameter.empty
    option = typer.Option(
        flag(name), help=escaped(text), metavar=metavar, hidden=hidden, rich_help_panel=panel
    )
    return typer_parameter(name, kind, option, default)


def help_option() -> inspect.Parameter:
    """The option --help, among those that few people need."""

    def show(ctx: typer.Context, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.get_help()  # prints it
            raise typer.Exit

    option = typer.Option(
        "--help",
        "-h",
        help="Show this message and exit.",
        is_eager=True,
        callback=show,
        rich_help_panel=MORE,
    )
    return typer_parameter("help", bool, option, False)


def typer_parameter(name: str, kind: Any, option: Any, default: Any) -> inspect.Parameter:
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, annotation=Annotated[kind, option], default=default)


def escaped(text: str) -> str:
    """Escape brackets, which rich would take for markup."""
    return text.replace("[", r"\[")


def require_ending(endings: tuple[str, ...]) -> Any:
    """Make the check that a file's name has one of the `endings`."""

    def check(path: str | None) -> str | None:
        if path is not None and Path(path).suffix not in endings:
            raise typer.BadParameter(
                f"{path}: expected a name that ends in {' or '.join(endings)}."
            )
        return path

    return check


def with_mappings(values: Mapping[str, Any], model: type[Strict]) -> dict[str, Any]:
    """Return the options of a model, with COLUMN=PATH parsed to mappings."""
    return {
        name: mapping_of(name, value)
        if get_origin(model.model_fields[name].annotation) is dict
        else value
        for name, value in values.items()
    }


def mapping_of(name: str, pairs: list[str]) -> dict[str, str]:
    """Pairs of COLUMN=PATH as a mapping."""
    split = [pair.partition("=") for pair in pairs]
    for key, equals, path in split:
        if not (key and equals and path):
            raise InputError(
                f"{flag(name)} {key}: expected COLUMN=PATH, such as {PAIR_EXAMPLES[name]}."
            )
    return {key: path for key, _, path in split}
