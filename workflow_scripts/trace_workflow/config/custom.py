"""Correctness rules and estimators of a user's Python file, as a run uses them (docs/custom.md)."""

import ast
from collections.abc import Callable
from pathlib import Path

import polars as pl

from trace_workflow.jobs.code_hash import code_hash
from tracecal.errors import InputError
from tracecal.estimators.custom import custom_entries, declared_in
from tracecal.io.checksums import digest, hash_of
from tracecal.io.files import read_parquet
from tracecal.io.input_files import MOST_BYTES, MOST_SETTINGS, require_regular
from tracecal.io.traces import evaluated, read_traces


def custom_rules(path: str | None) -> dict[str, Callable]:
    """The correctness rules of a file by name; none without a file.

    Each takes the extracted answer and an `Example`, and returns whether the answer is correct.
    Raises `InputError` where the file does not run or a rule is not a function.
    """
    declared = declared_in(path, "RULES", "name: a function of the answer and the example")
    if wrong := [name for name, rule in declared.items() if not callable(rule)]:
        raise InputError(f"{path}: the rule {wrong[0]!r} is not a function; give one.")
    return declared


def custom_code(path: str) -> str:
    """Hash of a custom file's code, of what it imports from the package, and of its `FILES`.

    Raises `InputError` where the code reads files and names none.
    """
    require_regular(path, MOST_SETTINGS)
    code, names = code_hash(Path(path).resolve()), _named_files(path)
    digests = [digest(Path(path).parent / name) for name in names]
    return hash_of(" ".join([code, *digests])) if names else code


def _named_files(path: str) -> list[str]:
    """The list `FILES` of a custom file: what it reads, by paths beside it."""
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
    """Raise `InputError` unless a custom file's code still has the hash `expected`."""
    if custom_code(path) != expected:
        raise InputError(f"{path} has changed since the run started; run again.")


# Custom estimators: expressions over the columns of traces and features.


TRACE = ["example_id", "answer", "finish_reason", "tokens", "surprisal", "entropy"]


class _Computed(dict[str, pl.Expr]):
    """The scores that `answers` has computed, by their names."""

    def __missing__(self, name: str) -> pl.Expr:
        return pl.col(name)


SCORES = _Computed()


def answers(traces: str, features: str, task: str, file: str, held: str) -> pl.DataFrame:
    """`example_id` and the scores of the evaluated answers by the estimators of `file`.

    `held` is the hash of the file when the run started. Raises `InputError` where the
    file has changed since, or where an expression does not work on these columns.
    """
    require_unedited(file, held)
    columns = read_parquet(features, ["example_id"])
    frame = evaluated(read_traces(traces, TRACE), task)
    frame = frame.join(columns, on="example_id", how="left", validate="1:1")
    scores = {name: entry.score for name, entry in custom_entries(file).items()}
    try:
        return frame.select(
            "example_id", **{name: score.cast(pl.Float64) for name, score in scores.items()}
        )
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise InputError(
            f"{file}: the scores cannot be computed ({str(error).splitlines()[0]}); columns are "
            f"{', '.join(frame.columns)}."
        ) from error
