"""A command of `tracecal`, made from functions of the API: their parameters are its options.

1. `@command(wish, example, options_of="plan")` makes a `Command` of a function of this package.
2. Its options are the function's own parameters, and for `**options` those of the API's `plan`,
   each with the text that its numpydoc docstring has.
3. `Command.build` gives what typer runs.
"""

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand

from tracecal.cli import options
from tracecal.cli.api_source import Parameter, api_parameters, api_source, read_docstring
from tracecal.cli.files import flag, require_apart
from tracecal.errors import InputError
from tracecal.io.settings import parse

READING = "'tracecal reading --help'"


class ListTyperCommand(TyperCommand):
    """Takes several values behind an option that may be repeated: --columns a=x b=y.

    Its first argument may be named like an option: --answers FILE. An option of one value that is
    given twice is an error.
    """

    # Contexts have a base class, which typer keeps private.
    def parse_args(  # type: ignore[override]
        self, ctx: typer.Context, args: list[str]
    ) -> list[str]:
        args = self._with_first_argument(ctx, args)
        multiple = (option for option in self.params if getattr(option, "multiple", False))
        flags = {flag for option in multiple for flag in option.opts}
        repeated: list[str] = []
        flag, is_first = "", True
        for arg in args:
            if arg.startswith("-"):
                flag, is_first = arg, True
            elif flag in flags and not is_first:
                repeated.append(flag)
            else:
                is_first = False
            repeated.append(arg)
        self._require_single(ctx, repeated)
        return super().parse_args(ctx, repeated)

    def _with_first_argument(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """Put the value of --answers where the argument ANSWERS stands."""
        argument = next((p for p in self.params if isinstance(p, TyperArgument)), None)
        if argument is None:
            return args
        flag, values, rest = f"--{argument.name}", [], [*args]
        for index, arg in reversed([*enumerate(args)]):
            option, equals, value = arg.partition("=")
            if option == flag and (equals or index + 1 < len(rest)):
                values.append(value if equals else rest.pop(index + 1))
                del rest[index]
        if len(values) > 1:
            raise typer.BadParameter(
                f"{flag} is given {len(values)} times, and takes one value.", ctx
            )
        return values + rest

    def _require_single(self, ctx: typer.Context, args: list[str]) -> None:
        _, _, order = self.make_parser(ctx).parse_args([*args])
        for parameter, n_given in Counter(order).items():
            if n_given > 1 and not getattr(parameter, "multiple", False):
                raise typer.BadParameter(
                    f"it is given {n_given} times, and takes one value.",
                    ctx=ctx,
                    param=parameter,  # type: ignore[arg-type]  # typer's own, which it keeps private
                )


@dataclass(frozen=True)
class Command:
    """A function that does the work, what it is for, and where its options come from."""

    function: Callable[..., None]
    wish: str  # what it is for, after 'to': 'choose answers to label'
    example: str  # a line to type
    # The name of the API whose parameters are options, such as 'Calibrator.score', and further
    # ones, whose docstrings describe parameters of the function.
    options_of: str = ""
    texts_of: Sequence[str] = ()
    # Parameters that are given without a flag; the first may be named by one, too.
    arguments: Sequence[str] = ("answers",)
    # Options that most people need, which help lists first with those that are required.
    usual: Sequence[str] = ()
    # Parameters of the API that are no options, as few programs change them.
    api_only: Sequence[str] = ()
    flags: Mapping[str, str] = field(default_factory=dict)  # those not named after the parameter
    endings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of an option's file
    panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the help, by title
    # Which fields of a parameter's pydantic model are shown; those of a `Reading` are hidden but
    # the ones that `reading_options` names.
    models: Mapping[str, options.ModelOptions] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.function.__name__

    def stub(self, panel: str) -> TyperCommand:
        """The command as the list of all commands shows it; loads nothing of the API."""
        text = f"{self.wish[0].upper()}{self.wish[1:]}."
        return TyperCommand(self.name, help=text, rich_help_panel=panel)

    def build(self) -> TyperCommand:
        """The command as typer runs it, with all of its options."""
        app = typer.Typer(
            rich_markup_mode="rich",
            add_completion=False,
            context_settings={"help_option_names": []},
        )
        app.command(
            self.name,
            cls=ListTyperCommand,
            help=options.escaped(self.help()),
            epilog=options.escaped(f"Example: {self.example}"),
        )(self.runner())
        built = typer.main.get_command(app)
        assert isinstance(built, ListTyperCommand)
        return built

    def help(self) -> str:
        """The prose of the function's docstring, or else of the API's, and where to read more."""
        prose = read_docstring(self.function).prose
        if not prose:
            prose = read_docstring(ast.get_docstring(api_source(self.options_of)[0])).prose
        reads = any(p.name == "reading" for p in self.parameters())
        if reads and self.name != "reading" and READING not in prose:
            prose += f" How files are read: {READING}."
        return prose

    def parameters(self) -> list[Parameter]:
        """The parameters of the function, and for its `**options` the remaining ones of the API."""
        names = filter(None, (*self.texts_of, self.options_of))
        inherited = {name: {p.name: p for p in api_parameters(name)} for name in names}
        texts = {p.name: p.text for each in inherited.values() for p in each.values()}
        texts |= read_docstring(self.function).parameters
        signature = inspect.signature(self.function, eval_str=True).parameters.values()
        explicit = {
            p.name: Parameter(p.name, p.annotation, p.default, texts.get(p.name, ""))
            for p in signature
            if p.kind != p.VAR_KEYWORD
        }
        if len(explicit) == len(signature):
            return [*explicit.values()]
        excluded = {*explicit, *self.api_only}
        implicit = [p for p in inherited[self.options_of].values() if p.name not in excluded]
        return [*explicit.values(), *implicit]

    def runner(self) -> Callable[..., None]:
        """Wrap the function for typer, which passes the fields of models as options."""
        by_parameter: dict[str, list[inspect.Parameter]] = {}
        models = {p.name: p.model for p in self.parameters() if p.model is not None}
        names = {p.name for p in self.parameters()}  # of the command's own, which go first
        for p in self.parameters():
            if p.model is not None:
                fields = options.model_options(
                    p.model, self.models.get(p.name, options.reading_options())
                )
                by_parameter[p.name] = [field for field in fields if field.name not in names]
            else:
                flags = () if p.name in self.arguments else (self.flags.get(p.name, flag(p.name)),)
                endings = self.endings.get(p.name, ())
                by_parameter[p.name] = [options.as_option(p, flags, self._panel(p), endings)]

        def run(**values: Any) -> None:
            del values["help"]
            require_apart(values)
            for name, model in models.items():
                fields = {option.name: values.pop(option.name) for option in by_parameter[name]}
                values[name] = parse(model, options.with_mappings(fields, model), "options")
            self.function(**values)

        parameters = [option for several in by_parameter.values() for option in several]
        parameters = sorted([*parameters, options.help_option()], key=_order)
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    def _panel(self, parameter: Parameter) -> str:
        """The group of an option in the help."""
        panels = (panel for panel, names in self.panels.items() if parameter.name in names)
        is_usual = parameter.default is inspect.Parameter.empty or parameter.name in self.usual
        return next(panels, options.USUALLY if is_usual else options.MORE)


def _order(parameter: inspect.Parameter) -> int:
    """Where an option's panel stands in the help: `USUALLY` first, `MORE` last."""
    (option,) = parameter.annotation.__metadata__
    return {None: 0, options.USUALLY: 0, options.MORE: 2}.get(option.rich_help_panel, 1)


def command(wish: str, example: str, **settings: Any) -> Callable[[Callable[..., None]], Command]:
    """Make a `Command` of a function; `settings` are those of `Command`."""
    return lambda function: Command(function, wish, example, **settings)


def require_installed(feature: str, extra: str, *modules: str) -> None:
    """Raise `InputError` where a library of an `extra` is missing, before any work is done."""
    if missing := [name for name in modules if find_spec(name) is None]:
        raise InputError(
            f"{feature} needs {missing[0]}, which is not installed: pip install 'tracecal[{extra}]'"
        )
