"""A hash of the code that a rule runs, without what cannot change a result: comments, docstrings,
layout and messages.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from tracecal.errors import InputError
from tracecal.io.digests import hash_of

# The packages that the rules' scripts import, and the folder that holds them.
PACKAGES = ("tracecal", "trace_workflow")
FOLDER = Path(__file__).resolve().parents[2]


def scripts_beside(packages: Path) -> Path:
    """The folder of the rules' scripts: that of the packages, or below it where they are installed.

    >>> scripts_beside(Path("checkout/workflow_scripts")).as_posix()
    'checkout/workflow_scripts'
    """
    installed = packages / "trace_workflow/checkout/workflow_scripts"
    return installed if installed.is_dir() else packages


SCRIPTS = scripts_beside(FOLDER)
PUBLIC = "tracecal"  # its __init__.py has the public names alone, which load at their first use
# Modules that cannot change a result: logs, error messages, this hash itself, and the validation of
# settings, which the workflow has done when it starts.
WITHOUT_EFFECT = frozenset(
    {
        "trace_workflow.jobs.job",
        "tracecal.io.log",
        "tracecal.io.progress",
        "tracecal.errors",
        "trace_workflow.jobs.code_hash",
        "tracecal.io.settings",
    }
)
# Calls whose arguments are messages, and the call whose `description` alone is one.
SENTENCES = frozenset({"InputError", "unreadable"})
DESCRIBED = "Field"
# Distributions by import name, where the names differ.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
# The version of the code of this process's job.
RUNNING: ContextVar[str] = ContextVar("running", default="")


@cache
def code_version(script: Path, *modules: str, root: Path = FOLDER) -> str:
    """A rule's parameter `code`: its script, the code's hash, `modules`, and versions of libraries.

    `modules` are those that the script loads by name at run time. For example 'label_answers.py
    5f3c9a0b1d2e4f68 tracecal.estimators.mars; polars 1.2.0'. Raises `InputError` where a file is
    not Python.
    """
    scripts = scripts_beside(root)
    name = script.relative_to(scripts) if script.is_relative_to(scripts) else script
    code = " ".join([str(name), code_hash(script, *modules, root=root), *modules])
    return f"{code}; {', '.join(_libraries(script, *modules, root=root))}"


def require_code(version: str, root: Path = FOLDER) -> None:
    """Raise `InputError` where the script that `version` names, or its imports, were edited."""
    name, code, *modules = version.partition(";")[0].split()
    if code_hash(scripts_beside(root) / name, *modules, root=root) != code:
        raise InputError(
            f"the code of {Path(name).name} was edited after this run had started, so its result "
            "would not belong to the run; start snakemake again."
        )


def settings_hash(params: Mapping[str, object]) -> str:
    """A hash of a rule's parameters, code included, for the metadata of its results.

    It leaves out the journal's folder, which changes no result, and the code that makes a `table`
    whose digest is a parameter.
    """
    without = {"journal", "code"} if "table" in params else {"journal"}
    settings = {name: value for name, value in params.items() if name not in without}
    return hash_of(json.dumps(settings, sort_keys=True, default=str))


@cache
def code_hash(script: Path, *modules: str, root: Path = FOLDER) -> str:
    """Hash of a script and of every module of `PACKAGES` that it imports, directly or not."""
    paths = import_closure(script, *modules, root=root)
    lines = [f"{_code(path, root).hash} {path.relative_to(root)}" for path in paths]
    return hash_of("\n".join([_code(script, root).hash, *lines]))


def syntax_hash(tree: ast.Module, root: Path = FOLDER) -> str:
    """Hash of a syntax tree and of every module of `PACKAGES` that it imports, directly or not."""
    files = {file for module in _imported(tree, ()) for file in _files(module, root)}
    return hash_of(
        "\n".join([_text(tree), *(code_hash(file, root=root) for file in sorted(files))])
    )


@cache
def import_closure(script: Path, *modules: str, root: Path = FOLDER) -> list[Path]:
    """The files of `PACKAGES` that run where `script` and `modules` are imported; sorted."""
    closure = {file for module in modules for file in _files(module, root)}
    unread = [script, *closure]
    while unread:
        imports = _code(unread.pop(), root).imports
        new = {file for module in imports for file in _files(module, root)} - closure
        closure |= new
        unread += new
    return sorted(closure)


@cache
def _files(module: str, root: Path) -> frozenset[Path]:
    """The files of `PACKAGES` that an import of `module` runs: its own, and its packages'."""
    if module == PUBLIC or module.partition(".")[0] not in PACKAGES:
        return frozenset()
    above, _, _ = module.rpartition(".")
    # An attribute of a module is written as a module in it.
    if not WITHOUT_EFFECT.isdisjoint({module, above}):
        return frozenset()
    file = root / module.replace(".", "/")
    # An __init__.py that holds a docstring alone runs nothing.
    paths = {path for path in (file.with_suffix(".py"), file / "__init__.py") if path.is_file()}
    runs = frozenset(path for path in paths if _code(path, root).hash != NOTHING)
    return runs | (_files(above, root) if above else frozenset())


def _libraries(script: Path, *modules: str, root: Path) -> list[str]:
    """The libraries that the code imports with installed versions, sorted: 'polars 1.2.0'."""
    paths = [script, *import_closure(script, *modules, root=root)]
    names = {module.split(".")[0] for path in paths for module in _code(path, root).imports}
    libraries = sorted(
        DISTRIBUTIONS.get(name, name) for name in names - {*PACKAGES} - sys.stdlib_module_names
    )
    return [installed for name in libraries if (installed := _installed(name))]


@cache
def _installed(distribution: str) -> str | None:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:  # it may be in the rule's own conda environment
        return None


class Code(NamedTuple):
    """A source file's hash, without what cannot change a result, and the modules that it imports by
    a statement or, with a constant name, by importlib.
    """

    hash: str
    imports: frozenset[str]


@cache
def _code(path: Path, root: Path) -> Code:
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise InputError(f"{path} is not Python (line {error.lineno}: {error.msg}).") from error
    package = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    return Code(hash_of(_text(tree)), frozenset(_imported(tree, package)))


def _imported(tree: ast.Module, package: Sequence[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                above = package[: len(package) - node.level + 1] if node.level else ()
                base = ".".join([*above, *filter(None, [node.module])])
                yield base
                # What is imported from it may be a module, or an attribute of one.
                yield from (f"{base}.{alias.name}" for alias in node.names)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                if _called(node) in ("import_module", "__import__"):
                    yield name


def _text(node: object) -> str:
    """A syntax tree as text, without what cannot change a result; equal in every version of Python.

    ``ast.dump`` prints the empty fields that newer versions add; here they are left out.
    """
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [(name, _counted(node, name)) for name in node._fields]
    texts = [f"{name}={_text(of)}" for name, of in fields if of is not None and of != []]
    return f"{type(node).__name__}({','.join(texts)})"


def _counted(node: ast.AST, name: str) -> object:
    """The field `name` of a node, without docstrings, messages and logging."""
    value = getattr(node, name, None)
    if isinstance(node, ast.Call):
        if name != "func" and _called(node) in SENTENCES:
            return None
        if name == "keywords" and _called(node) == DESCRIBED:
            return [keyword for keyword in value if keyword.arg != "description"]
    elif isinstance(value, list) and name in ("body", "orelse", "finalbody"):
        return [line for line in value if not _is_without_effect(line)]
    return value


def _called(node: ast.Call) -> str | None:
    """The name of the called function, without what it is an attribute of."""
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def _is_without_effect(node: ast.AST) -> bool:
    """Whether a statement is a text, such as a docstring, or calls a method of LOGGER alone."""
    match node:
        case ast.Expr(ast.Constant(str()) | ast.Call(ast.Attribute(ast.Name("LOGGER")))):
            return True
    return False


NOTHING = hash_of(_text(ast.parse("")))  # of a file that runs nothing
