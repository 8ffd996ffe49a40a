"""A hash of the code that a rule runs, without what cannot change a result: comments, docstrings,
layout, descriptions of settings, and the texts of errors and logs.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracecal.errors import InputError
from tracecal.jobs.sources import source

# Modules that cannot change a result: logs, progress, error messages, the validation of settings,
# which have passed it when the workflow starts, how modules are loaded, and this hash itself.
WITHOUT_EFFECT = frozenset(
    {
        "tracecal.jobs.job",
        "tracecal.jobs.process",
        "tracecal.jobs.progress",
        "tracecal.jobs.sources",
        "tracecal.errors",
        "tracecal.jobs.provenance",
        "tracecal.inputs.schema",
    }
)
# Calls whose arguments are messages, and the call whose `description` alone is one.
SENTENCES = frozenset({"InputError", "unreadable"})
DESCRIBED = "Field"
# The hash of the settings and code of this process's job, for the metadata of its results.
MADE_WITH: ContextVar[str] = ContextVar("made_with", default="")
# Distributions by import name, where the names differ.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}


@cache
def code_hash(script: Path, *modules: str) -> str:
    """Hash of a script and of every module of the package that it imports, directly or not.

    `modules` are those that it imports by name at run time, such as 'tracecal.estimate.beam'.
    """
    paths = import_closure(script, *modules)
    lines = [f"{_file_hash(path)} {path.relative_to(_root(script))}" for path in paths]
    return hash_of("\n".join([_file_hash(script), *lines]))


@cache
def code_version(script: Path, *modules: str) -> str:
    """The code trigger of a rule: its code's hash, `modules`, and the versions of libraries.

    For example '5f3c9a0b1d2e4f68 tracecal.estimate.beam; polars 1.2.0'. Raises `InputError` where a
    file is not Python.
    """
    code = " ".join([code_hash(script, *modules), *modules])
    return f"{code}; {', '.join(_libraries(script, *modules))}"


def require_code(script: Path, version: str) -> None:
    """Raise `InputError` unless `script` and what it imports, loaded or not, are of `version`."""
    code, *modules = version.partition(";")[0].split()
    if code_hash(script, *modules) != code:
        raise InputError(
            f"the code of {script.name} was edited after this run had started, so its result would "
            "not belong to the run; start snakemake again."
        )


def settings_hash(params: Mapping[str, object]) -> str:
    """Hash of a rule's parameters, its code's version included, for its results' metadata.

    The journal's folder is left out, as it changes no result, and so is the code that makes a
    `table`, whose digest is a parameter.
    """
    without = {"journal", "code"} if "table" in params else {"journal"}
    settings = {name: value for name, value in params.items() if name not in without}
    return hash_of(json.dumps(settings, sort_keys=True, default=str))


def text_hash(path: Path) -> str:
    """Hash of a text file that is not code, such as a template."""
    return hash_of(path.read_text(encoding="utf-8"))


def hash_of(text: str) -> str:
    """The first 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def import_closure(script: Path, *modules: str) -> list[Path]:
    """The package files that `script` imports, and `modules` with what they import; sorted."""
    root = _root(script)
    closure = set(_files(modules, root))
    unread = [script, *closure]
    while unread:
        new = _imports(unread.pop(), root) - closure
        closure |= new
        unread += new
    return sorted(closure)


def _libraries(script: Path, *modules: str) -> list[str]:
    """The libraries that the code imports with installed versions, sorted: 'polars 1.2.0'."""
    root = _root(script)
    paths = [script, *import_closure(script, *modules)]
    names = {module.split(".")[0] for path in paths for module in _modules(path, root)}
    names -= {"tracecal", *sys.stdlib_module_names}
    libraries = sorted(DISTRIBUTIONS.get(name, name) for name in names)
    return [installed for name in libraries if (installed := _installed(name))]


@cache
def _installed(distribution: str) -> str | None:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:  # it may be in the rule's own conda environment
        return None


def _root(script: Path) -> Path:
    """The folder that holds the package: one above `script` or, for a user's script, this one."""
    above = (parent for parent in script.parents if (parent / "tracecal").is_dir())
    return next(above, Path(__file__).resolve().parents[2])


@cache
def _imports(path: Path, root: Path) -> frozenset[Path]:
    """The package files that run when `path` is imported: modules and their packages."""
    return _files(
        (
            module
            for module in _modules(path, root)
            # An attribute of a module is written as a module in it.
            if WITHOUT_EFFECT.isdisjoint({module, module.rpartition(".")[0]})
        ),
        root,
    )


def _files(modules: Iterable[str], root: Path) -> frozenset[Path]:
    return frozenset().union(*(_files_of(module, root) for module in modules))


@cache
def _files_of(module: str, root: Path) -> frozenset[Path]:
    """The file of a module below `root`, if it is one, and those of the packages it is in."""
    above, _, _ = module.rpartition(".")
    file = root / module.replace(".", "/")
    # An __init__.py that holds its room's sentence alone runs nothing.
    own = {path for path in (file.with_suffix(".py"), file / "__init__.py") if path.is_file()}
    runs = frozenset(path for path in own if _canonical(path) != "Module()")
    return runs | (_files_of(above, root) if above else frozenset())


@cache
def _modules(path: Path, root: Path) -> frozenset[str]:
    """Names that `path` imports, absolutely, relatively, or by importlib with a constant name."""
    package = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    modules: set[str] = set()
    syntax = _syntax(path)
    # Only imports by a call are in expressions; few modules have any.
    by_name = any(word in source(path) for word in (b"import_module", b"__import__"))
    for node in ast.walk(syntax) if by_name else _statements(syntax.body):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from tracecal.features import operators` may import a module or an attribute of one.
            modules |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant):
                modules.add(str(name.value))
    return frozenset(modules)


def _statements(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """The statements among `nodes`, and those within them; expressions hold no import."""
    for node in nodes:
        yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from _statements(getattr(node, name, []))


@cache
def _syntax(path: Path) -> ast.Module:
    try:
        return ast.parse(source(path), filename=str(path))
    except SyntaxError as error:
        raise InputError(f"{path} is not Python (line {error.lineno}: {error.msg}).") from error


@cache
def _file_hash(path: Path) -> str:
    return hash_of(_canonical(path))


@cache
def _canonical(path: Path) -> str:
    text: list[str] = []
    _serialise(_syntax(path), text)
    return "".join(text)


_WORDY = frozenset({"args", "keywords", "body", "orelse", "finalbody"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _serialise(node: object, text: list[str]) -> None:
    """Append the syntax tree to `text`, in a form that is the same for every Python version.

    That of `ast.dump` changes between versions. Empty fields are left out, so fields that newer
    versions add change nothing. Written for speed: every start of the workflow serialises each
    node of the package.
    """
    if isinstance(node, ast.AST):
        text.append(f"{type(node).__name__}(")
        separator = ""
        for name in node._fields:
            value = getattr(node, name, None)
            if name in _WORDY:
                value = _without_words(node, name, value)
            if value is None or value == []:
                continue
            text.append(f"{separator}{name}=")
            _serialise(value, text)
            separator = ","
        text.append(")")
    elif isinstance(node, list):
        text.append("[")
        for place, item in enumerate(node):
            if place:
                text.append(",")
            _serialise(item, text)
        text.append("]")
    else:
        text.append(repr(node))


def _without_words(node: ast.AST, name: str, value: object) -> object:
    """The field `name` of a node without docstrings, messages and logging."""
    if isinstance(node, ast.Call):
        if _called(node) in SENTENCES:
            return None
        if _called(node) == DESCRIBED and name == "keywords":
            return [keyword for keyword in value if keyword.arg != "description"]
    elif isinstance(value, list) and name not in ("args", "keywords"):
        documented = isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None
        return [line for line in value[documented:] if not _is_logging(line)]
    return value


def _called(node: ast.Call) -> str | None:
    """The name of the called function, without what it is an attribute of."""
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def _is_logging(node: ast.AST) -> bool:
    """Whether a statement calls a method of LOGGER and does nothing else."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name("LOGGER")))):
            return True
    return False
