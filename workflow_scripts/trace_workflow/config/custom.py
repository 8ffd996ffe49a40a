"""A user's Python file of correctness rules or estimators: docs/guides/extend.md."""

import ast
from collections.abc import Callable
from pathlib import Path

from trace_workflow.jobs.code_hash import code_hash
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


def custom_code(path: str) -> str:
    """A hash of a custom file's code, of what it imports from the package, and of its `FILES`.

    Raises `InputError` where the code reads files and names none.
    """
    require_regular(path, MOST_SETTINGS)
    code, names = code_hash(Path(path).resolve()), _named_files(path)
    digests = [digest(Path(path).parent / name) for name in names]
    return hash_of(" ".join([code, *digests])) if names else code


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


def require_unedited(path: str, expected: str) -> None:
    """Raise `InputError` where the hash of a custom file's code is no longer `expected`."""
    if custom_code(path) != expected:
        raise InputError(f"{path} has changed since the run started; run again.")
