"""What the commands share: their options, and the files that they read and write."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from tracecal.answers.reading import Reading
from tracecal.errors import InputError
from tracecal.io.settings import Strict, parse

DISTRIBUTION = "tracecal"
# All commands' options that name a file or folder which is read, and a file which is written.
READ = ("answers", "second", "beside", "small", "large", "labels", "calibrator", "config", "parts")
READ += ("weights", "escalate_calibrator", "estimators")
WRITTEN = ("output", "report", "explorer", "picture", "promise_file", "state", "watch")
EXAMPLES = {"columns": "answer=output.text", "also": "judge=scores.judge"}
MAY_SHARE = (("state", "answers"), ("output", "labels"))


class Command(NamedTuple):
    """A command as typer takes it, the wish that it grants, and an example of its use."""

    run: Callable[..., None]
    wish: str
    example: str


def command(wish: str, example: str) -> Callable[[Callable[..., None]], Command]:
    """Makes a `Command` of a function, whose docstring is its help.

    Parameters are options; one whose type is a model stands for an option of each of its fields,
    as `Shown` says, and gets what these give.
    """
    return lambda function: Command(_with_options(function), wish, example)


class Shown(NamedTuple):
    """How a model's fields become options: `only` some of them, with `defaults` of the command's
    own, in `panels` of the help, or `hidden` there.
    """

    only: tuple[str, ...] = ()
    defaults: Mapping[str, str] = {}
    panels: Mapping[str, tuple[str, ...]] = {}
    hidden: bool = False

    def options(self, model: type[Strict]) -> list[inspect.Parameter]:
        """The options, in the order of their panels."""
        panel_of = {name: panel for panel, names in self.panels.items() for name in names}
        names = [name for name in self.only or model.model_fields if name not in panel_of]
        return [
            _option(name, model.model_fields[name], self, panel_of.get(name))
            for name in (*names, *panel_of)
        ]


def _option(name: str, field: FieldInfo, shown: Shown, panel: str | None) -> inspect.Parameter:
    """A field as an option. Numbers stay text, which the model reads and refuses."""
    kind, metavar, what = field.annotation, None, field.description or ""
    default = shown.defaults.get(name, field.get_default())
    if get_origin(kind) in (dict, list):
        kind, metavar, default = list[str], "COLUMN=PATH" if kind == dict[str, str] else "NAME", []
    elif get_origin(kind) is Literal:
        metavar, choices = "NAME", get_args(kind)
        if any(one not in what for one in choices):
            what += f" ({', '.join(choices)})"
    elif kind is not bool:
        metavar = next(f"<{one}>" for one in ("int", "float", "str") if one in str(kind))
        kind, default = str | None, None if default is None else str(default)
    flag = f"--{name.replace('_', '-')}"
    option = typer.Option(
        flag, help=what, metavar=metavar, hidden=shown.hidden, rich_help_panel=panel
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[str if field.is_required() else kind, option],
        default=inspect.Parameter.empty if field.is_required() else default,
    )


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    options: dict[str, list[inspect.Parameter]] = {}
    models: dict[str, type[Strict]] = {}
    for one in inspect.signature(function, eval_str=True).parameters.values():
        kind, *told = get_args(one.annotation) or (one.annotation,)
        shown = next((mark for mark in told if isinstance(mark, Shown)), None)
        if shown is None:
            options[one.name] = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        else:
            options[one.name], models[one.name] = shown.options(kind), kind

    @wraps(function)
    def run(**given: Any) -> None:
        require_apart(given)
        for name, model in models.items():
            values = {one.name: given.pop(one.name) for one in options[name]}
            given[name] = parse(model, _with_pairs(values, model), "options")
        with suppress(BrokenPipeError):  # the reader of the output, such as `head`, has enough
            function(**given)

    run.__signature__ = inspect.Signature([one for several in options.values() for one in several])
    return run


def _with_pairs(values: dict[str, Any], model: type[Strict]) -> dict[str, Any]:
    """The values with those that are given as COLUMN=PATH as mappings."""
    found = dict(values)
    for name in values:
        if get_origin(model.model_fields[name].annotation) is not dict:
            continue
        pairs = [pair.partition("=") for pair in values[name]]
        if wrong := [key for key, equals, path in pairs if not (key and equals and path)]:
            raise InputError(
                f"--{name} {wrong[0]}: expected COLUMN=PATH, such as {EXAMPLES[name]}."
            )
        found[name] = {key: path for key, _, path in pairs}
    return found


# Options of several commands.


FILE = "a file of answers; how it is read: 'tracecal reading'"
PARTS = r"a file or text: 'json: \[a, b]', 'lines: \[a, b]' or a JSON Schema (docs/guides/parts.md)"
AnswersFile = Annotated[str, typer.Option("--answers", help=FILE)]
CalibratorFile = Annotated[str, typer.Option("--calibrator", help="the calibrator's JSON file")]
ErrorRate = Annotated[
    float | None, typer.Option("--error-rate", help="target error rate of the answers to keep")
]
TaskName = Annotated[
    str | None,
    typer.Option("--task", help="the calibrator's task, where the answers name it otherwise"),
]
Config = Annotated[
    str | None,
    typer.Option("--config", help="YAML with settings of the fit. Its keys: 'tracecal settings'"),
]
Custom = Annotated[
    str | None,
    typer.Option(
        "--estimators", help="a Python file with estimators of your own: docs/guides/custom.md"
    ),
]
AsRead = Annotated[Reading, Shown(hidden=True)]


def ending(*suffixes: str) -> Callable[[str | None], str | None]:
    """The check of an option for a file whose name has one of the suffixes."""

    def checked(path: str | None) -> str | None:
        if path is not None and Path(path).suffix not in suffixes:
            raise typer.BadParameter(
                f"{path}: expected a name that ends in {' or '.join(suffixes)}."
            )
        return path

    return checked


# Files.


def require_apart(options: Mapping[str, Any]) -> None:
    """Raise `InputError` where a command would write to a file that it reads, by whatever name or
    link; or twice to one file.

    A state of monitors may hold the answers that it watches, and verdicts are added to a file that
    holds some.
    """
    written = [(name, options[name]) for name in WRITTEN if options.get(name)]
    read = [
        (name, file)
        for name in READ
        if options.get(name)
        for file in (options[name], *_files_of(options[name]))
    ]
    for place, (name, path) in enumerate(written):
        for other, file in read + written[:place]:
            if _same(path, file) and (name, other) not in MAY_SHARE:
                raise InputError(
                    f"{_flag(name)} {path} is the file of {_flag(other)}, too, and would replace "
                    "it: name another."
                )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _files_of(path: str) -> list[Path]:
    """The files of a folder; none of anything else, such as a text in place of a path."""
    try:
        return [*Path(path).iterdir()]
    except OSError:
        return []


def _same(one: str | Path, other: str | Path) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:  # one of them is still to be made, or no path
        return Path(one).resolve() == Path(other).resolve()


def require_installed(what: str, extra: str, *modules: str) -> None:
    """Raise `InputError` where a library of an `extra` is missing, before any work is done."""
    if missing := [name for name in modules if find_spec(name) is None]:
        raise InputError(
            f"{what} needs {missing[0]}, which is not installed: pip install "
            f"'{DISTRIBUTION}[{extra}]'"
        )
