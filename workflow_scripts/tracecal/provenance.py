"""A hash over the code that a rule really runs, blind to comments, docstrings and layout."""

import ast
import hashlib
from functools import cache
from pathlib import Path

# What these do cannot change a result: logs, progress, error sentences, and the checking of
# settings that were already found valid when the workflow started.
WITHOUT_EFFECT = frozenset(
    {"tracecal.job", "tracecal.progress", "tracecal.errors", "tracecal.schema"}
)


@cache
def code_hash(script: Path) -> str:
    """Hash of a script and of every module of the package it imports, directly or not."""
    digest = hashlib.sha256(_canonical(script).encode())
    for path in import_closure(script):
        digest.update(f"\n{path.relative_to(script.parent)}\n{_canonical(path)}".encode())
    return digest.hexdigest()[:16]


def text_hash(path: Path) -> str:
    """Hash of a file that is not code: a template, a table of numbers."""
    return hash_of(path.read_text(encoding="utf-8"))


def hash_of(text: str) -> str:
    """Hash of a text, short enough to read in a list of reasons."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def import_closure(script: Path) -> list[Path]:
    """The package files that `script` (in the package's parent folder) imports, sorted."""
    root, found, unseen = script.parent, set(), [script]
    while unseen:
        for path in _imports(unseen.pop(), root):
            if path not in found:
                found.add(path)
                unseen.append(path)
    return sorted(found)


@cache
def _imports(path: Path, root: Path) -> frozenset[Path]:
    modules = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from tracecal.operate import operators` may name a module or a thing in one.
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    files = {root / f"{module.replace('.', '/')}.py" for module in modules - WITHOUT_EFFECT}
    return frozenset(file for file in files if file.is_file())


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def _canonical(path: Path) -> str:
    return _serialise(_tree(path))


def _serialise(node: object) -> str:
    """The syntax tree as text, the same for every Python version that parses it alike.

    Unlike `ast.dump`, whose form changes between versions; empty fields are left out, so that
    fields which newer versions add change nothing.
    """
    if isinstance(node, ast.AST):
        fields = [
            f"{name}={_serialise(_without_docstring(node, name, value))}"
            for name, value in ast.iter_fields(node)
            if value not in (None, [])
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_serialise, node))}]"
    return repr(node)


def _without_docstring(node: ast.AST, name: str, value: object) -> object:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    if name == "body" and isinstance(node, documented) and ast.get_docstring(node) is not None:
        return value[1:]
    return value
