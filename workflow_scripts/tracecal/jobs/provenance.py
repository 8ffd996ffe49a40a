"""A hash of the code that a rule runs, without what cannot change a result: comments, docstrings,
layout, descriptions of settings, and the texts of errors and logs.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tracecal.errors import InputError
from tracecal.jobs.syntax import NOTHING, Code, code_of, hash_of

# Modules that cannot change a result: logs, progress, error messages, the validation of settings,
# which have passed it when the workflow starts, how modules are loaded, and this hash itself.
WITHOUT_EFFECT = frozenset(
    {
        "tracecal.jobs.job",
        "tracecal.jobs.process",
        "tracecal.jobs.progress",
        "tracecal.jobs.sources",
        "tracecal.jobs.syntax",
        "tracecal.errors",
        "tracecal.jobs.provenance",
        "tracecal.inputs.schema",
    }
)
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
    root = _root(script)
    lines = [f"{_code(path, root).hash} {path.relative_to(root)}" for path in paths]
    return hash_of("\n".join([_code(script, root).hash, *lines]))


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
    names = {module.split(".")[0] for path in paths for module in _code(path, root).imports}
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
            for module in _code(path, root).imports
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
    runs = frozenset(path for path in own if _code(path, root).hash != NOTHING)
    return runs | (_files_of(above, root) if above else frozenset())


def _code(path: Path, root: Path) -> Code:
    """What counts of a file, whose relative imports start from its package below `root`."""
    package = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    return code_of(path, ".".join(package))
