"""A user's Python file of correctness rules or estimators: docs/guides/extend.md."""

import ast
from collections.abc import Callable
from pathlib import Path

from trace_workflow.jobs.code_hash import code_hash, syntax_hash
from tracecal.errors import InputError
from tracecal.io.digests import digest, hash_of
from tracecal.io.input_files import MOST_BYTES, MOST_SETTINGS, read_python_table, require_regular


def custom_rules(path: str | None) -> dict[str, Callable]:
    """The correctness rules of a file, by name; empty without a file.

    Each takes the extracted answer and an `Example`, and returns whether the answer is correct.
    Raises `InputError` where the file does not run or a rule is not a function.
    """
    declared = read_python_table(path, "RULES", "name: a function of the answer and the example")
    if wrong := [name for name, rule in declared.items() if not callable(rule)]:
        raise InputError(f"{path}: the rule {wrong[0]!r} is not a function; give one.")
    return declared


def custom_code(path: str, score: str = "") -> str:
    """A hash of a custom file's code, of what it imports from the package, and of its `FILES`.

    For a `score` only what its entry in ESTIMATORS uses counts. Raises `InputError` where the code
    reads files and names none.
    """
    require_regular(path, MOST_SETTINGS)
    file, names = Path(path).resolve(), _named_files(path)
    code = syntax_hash(_used_by(ast.parse(file.read_bytes()), score)) if score else code_hash(file)
    digests = [digest(Path(path).parent / name) for name in names]
    return hash_of(" ".join([code, *digests])) if names else code


def _used_by(syntax: ast.Module, score: str) -> ast.Module:
    """The statements of a file that a score's entry in ESTIMATORS uses, and the entry.

    All of them, unless ESTIMATORS is written as one dictionary.
    """
    tables = [node for node in syntax.body if isinstance(getattr(node, "value", None), ast.Dict)]
    table = next((node for node in tables if _defined(node) == {"ESTIMATORS"}), None)
    keys = [getattr(key, "value", None) for key in table.value.keys] if table else []
    if score not in keys or None in keys:
        return syntax
    entry = ast.Expr(table.value.values[keys.index(score)])
    statements = [node for node in syntax.body if node is not table]
    uses = _names(entry).union(*(_names(node) for node in statements if not _defined(node)))
    more = True
    while more:
        more = {
            name
            for node in statements
            if not _defined(node).isdisjoint(uses)
            for name in _names(node) - uses
        }
        uses |= more
    statements_used = [
        node for node in statements if not _defined(node) or not _defined(node).isdisjoint(uses)
    ]
    return ast.Module([*statements_used, entry], [])


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement defines; none where it may do something else, too."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.partition(".")[0] for alias in names} - {"*"}
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _named_files(path: str) -> list[str]:
    """The list `FILES` of a custom file: the files beside it that it reads."""
    syntax = ast.parse(Path(path).read_bytes())
    for node in syntax.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "FILES":
            names = ast.literal_eval(node.value)
            for name in names:
                require_regular(Path(path).parent / name, MOST_BYTES)
            return sorted(names)
    called = (node.func for node in ast.walk(syntax) if isinstance(node, ast.Call))
    for name in (getattr(func, "attr", getattr(func, "id", "")) for func in called):
        if name == "open" or name.startswith(("read_", "scan_")):
            raise InputError(
                f"{path} reads a file ({name}): name all that it reads, by paths beside it, so "
                "that an edit of them counts: FILES = ['names.txt']"
            )
    return []


def require_unedited(path: str, expected: str, score: str = "") -> None:
    """Raise `InputError` where the hash of a custom file's code is no longer `expected`."""
    if custom_code(path, score) != expected:
        raise InputError(f"{path} has changed since the run started; run again.")
