"""The API's source: the parameters of a function and what its numpydoc docstring says of them.

1. `api_parameters("Calibrator.score")` lists the parameters, with types, defaults and texts.
2. `api_source` finds the definition in its module's file, which is parsed and not imported: help
   would wait for the libraries that the module needs.
3. `read_docstring` parses a docstring into its prose and the texts of its parameters.
"""

import ast
import builtins
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import tracecal
from tracecal.io.settings import Strict

# `label` names its record after its output.
NOT_OPTIONS = {"self", "record_file"}
# Modules of the models whose fields are options.
LIGHT = ("tracecal.answers.reading", "tracecal.fits.fit_settings")
HEADING = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^\*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: :.*)?$")


class Parameter(NamedTuple):
    """A parameter of a command: its type, its default, and what its docstring says."""

    name: str
    annotation: Any
    default: Any
    text: str

    @property
    def model(self) -> type[Strict] | None:
        """The pydantic model whose fields are the options, such as `Reading`; else None."""
        kinds = (self.annotation, *get_args(self.annotation))
        return next((k for k in kinds if isinstance(k, type) and issubclass(k, Strict)), None)


def api_parameters(name: str) -> Iterator[Parameter]:
    """The parameters of a function, class or method of the API, such as 'Calibrator.score'."""
    documented, names = api_source(name)
    texts = read_docstring(ast.get_docstring(documented)).parameters
    if isinstance(documented, ast.ClassDef):
        documented = _member(documented.body, "__init__")
    signature = documented.args
    arguments = [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]
    defaults = [*signature.defaults, *signature.kw_defaults]
    defaults = [None] * (len(arguments) - len(defaults)) + defaults
    for argument, default in zip(arguments, defaults, strict=True):
        if argument.arg not in NOT_OPTIONS:
            value = inspect.Parameter.empty if default is None else names.value(default)
            kind = str if argument.annotation is None else names.value(argument.annotation)
            yield Parameter(argument.arg, kind, value, texts.get(argument.arg, ""))


def api_source(name: str) -> tuple[Any, "Names"]:
    """The source of a name of the API, read and not run: what it imports is slow to load."""
    first, *members = name.split(".")
    module = f"tracecal.{tracecal.MODULES[first]}"
    definition = _member(_module(module).body, first)
    for member in members:
        definition = _member(definition.body, member)
    return definition, Names(module)


@cache
def _module(name: str) -> ast.Module:
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _member(body: Sequence[ast.stmt], name: str) -> Any:
    return next(node for node in body if getattr(node, "name", None) == name)


class _Other(type):
    def __getattr__(cls, name: str) -> Any:
        return cls

    def __getitem__(cls, key: Any) -> Any:
        return cls


class Other(metaclass=_Other):
    """Stands for a class of another library."""


class Names(dict[str, Any]):
    """The names in annotations and defaults of a module; a class of another library is `Other`."""

    def __init__(self, module: str) -> None:
        super().__init__(Any=Any, Literal=Literal, Mapping=Mapping, Path=Path, Sequence=Sequence)
        self.module = module

    def value(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), self.module, "eval"), {"__builtins__": {}}, self)

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        for node in _module(self.module).body:
            targets = _targets(node) if isinstance(node, ast.Assign | ast.AnnAssign) else []
            if name in targets:
                value = self.value(node.value)  # type: ignore[attr-defined]
                return value if len(targets) == 1 else value[targets.index(name)]
            if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
                assert node.module is not None  # no module here imports relatively
                if node.module in LIGHT:
                    return getattr(import_module(node.module), name)
                if node.module.startswith("tracecal"):
                    spec = find_spec(node.module)
                    if spec is not None and spec.submodule_search_locations:  # of a package
                        return Names(f"{node.module}.{name}")
                    return Names(node.module)[name]
        return Other


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    (target,) = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [name.id for name in getattr(target, "elts", [target]) if isinstance(name, ast.Name)]


class Docstring(NamedTuple):
    """Paragraphs before the first section, and what stands below each name of 'Parameters'.

    A paragraph is one line, which the help wraps.
    """

    prose: str
    parameters: dict[str, str]


def read_docstring(documented: object) -> Docstring:
    """Read the docstring of a function or class, without its marks of code."""
    text = re.sub(
        r"`+", "", (documented if isinstance(documented, str) else inspect.getdoc(documented)) or ""
    )
    prose, *sections = HEADING.split(text)
    body = dict(zip(sections[::2], sections[1::2], strict=True)).get("Parameters", "")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in filter(str.strip, body.splitlines()):
        if not line[0].isspace() and (entry := ENTRY.match(line)):
            names = re.findall(r"\w+", entry[1])
        else:
            texts |= {name: f"{texts.get(name, '')} {line.strip()}".strip() for name in names}
    paragraphs = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", prose.strip()))
    return Docstring("\n\n".join(paragraphs), texts)
