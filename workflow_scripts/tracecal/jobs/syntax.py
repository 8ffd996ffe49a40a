"""What counts of a source file: what can change a result, and what it imports.

Every start of the workflow asks for that of the whole package. It is kept in the working directory,
by the files' content, so that only what was edited is parsed again.
"""

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tracecal.errors import InputError
from tracecal.jobs.sources import source

KEPT = Path(".snakemake/tracecal/code.json")
MOST = 3000  # sources of which it is kept
# Calls whose arguments are messages, and the call whose `description` alone is one.
SENTENCES = frozenset({"InputError", "unreadable"})
DESCRIBED = "Field"
PARSED: dict[str, "Code"] = {}  # by this process, by a hash of the content and package


class Code(NamedTuple):
    """A hash of what can change a result, and the names that are imported: absolutely, relatively,
    or by importlib with a constant name.
    """

    hash: str
    imports: list[str]


def hash_of(text: str) -> str:
    """The first 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


NOTHING = hash_of("Module()")  # of a file that runs nothing


@cache
def code_of(path: Path, package: str) -> Code:
    """What counts of a source file, with the package from which its relative imports start.

    Raises `InputError` where the file is not Python.
    """
    content = source(path)
    key = hashlib.sha256(content + b"\0" + package.encode()).hexdigest()
    if key in _kept():
        return Code(*_kept()[key])
    syntax = _parsed(path, content)
    text: list[str] = []
    _serialise(syntax, text)
    imports = sorted(_imported(syntax, content, package.split(".") if package else ()))
    PARSED[key] = Code(hash_of("".join(text)), imports)
    return PARSED[key]


@cache
def _kept() -> dict[str, Sequence]:
    """What earlier processes parsed; nothing that was damaged or that another version kept."""
    try:
        check, _, code = KEPT.read_text(encoding="ascii").partition("\n")
    except (OSError, ValueError):
        return {}
    return json.loads(code) if check == _check(code) else {}


def keep() -> None:
    """Keep what this process parsed for the next, where there may be files at all."""
    if not PARSED:
        return
    code = json.dumps(dict([*_kept().items(), *PARSED.items()][-MOST:]))
    own = Path(f"{KEPT}.{os.getpid()}")
    with suppress(OSError):
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        try:
            own.write_text(f"{_check(code)}\n{code}", encoding="ascii")
            own.replace(KEPT)
        finally:
            own.unlink(missing_ok=True)


def _check(code: str) -> str:
    """A hash of what is kept and of this file, which says what counts."""
    return hash_of(source(Path(__file__).resolve()).decode() + code)


def _parsed(path: Path, content: bytes) -> ast.Module:
    try:
        return ast.parse(content, filename=str(path))
    except SyntaxError as error:
        raise InputError(f"{path} is not Python (line {error.lineno}: {error.msg}).") from error


def _imported(syntax: ast.Module, content: bytes, package: Sequence[str]) -> set[str]:
    modules: set[str] = set()
    # Only imports by a call are in expressions; few modules have any.
    by_name = any(word in content for word in (b"import_module", b"__import__"))
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
    return modules


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The statements among `nodes`, and those within them; expressions hold no import."""
    for node in nodes:
        yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from _statements(getattr(node, name, []))


_WORDY = frozenset({"args", "keywords", "body", "orelse", "finalbody"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _serialise(node: object, text: list[str]) -> None:
    """Append the syntax tree to `text`, in a form that is the same for every Python version.

    That of `ast.dump` changes between versions. Empty fields are left out, so fields that newer
    versions add change nothing.
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
