"""Docstrings of both packages: their examples run, and the names in backquotes exist."""

import ast
import builtins
import doctest
import importlib
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from support.labelled_answers import answers
from tracecal.calibrator.schema import CalibratorFile

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow_scripts"
FILES = sorted(
    path for package in ("tracecal", "trace_workflow") for path in (SCRIPTS / package).rglob("*.py")
)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
# A name, or a path of names, in single backquotes.
QUOTED = re.compile(r"(?<![`\w])`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)")


def module_name(path):
    return ".".join(path.relative_to(SCRIPTS).with_suffix("").parts).removesuffix(".__init__")


WITH_EXAMPLES = [path for path in FILES if ">>> " in path.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def example_files(tmp_path_factory, content):
    """A folder with the files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    answers(120).write_ndjson(folder / "labelled.jsonl")
    answers(6, seed=1).with_columns(correct=None).write_ndjson(folder / "new.jsonl")
    fitted_on = content["fitted_on"] | {"vocabulary": 100_000}
    content = content | {"fitted_on": fitted_on}
    CalibratorFile.parse(content, "C.json").write(folder / "C.json")
    return folder


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_name)
def test_the_examples_of_a_module_run(path, example_files, tmp_path, monkeypatch, request):
    """Each in a folder of its own, where it finds the files that it names."""
    module = importlib.import_module(module_name(path))
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        folder = shutil.copytree(example_files, tmp_path / example.name)
        monkeypatch.chdir(folder)
        example.globs["getfixture"] = request.getfixturevalue
        assert runner.run(example).failed == 0, example.name


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings(path):
    """Each docstring of a file, with the name of what it describes."""
    for node in ast.walk(parsed(path)):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", path.stem), text


def words_of(tree):
    """Every identifier of a tree, and every text in it that is one, such as a column's name."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name", "asname", "module"):
            if isinstance(word := getattr(node, field, None), str):
                yield from word.split(".")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield from re.findall(r"\w+", node.value)


@cache
def defined():
    """All names that a module or a class of the packages defines, and the modules themselves."""
    names = {part for path in FILES for part in module_name(path).split(".")}
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {t.id for target in targets for t in ast.walk(target) if hasattr(t, "id")}
                names |= {
                    t.attr for target in targets for t in ast.walk(target) if hasattr(t, "attr")
                }
    return names


@cache
def members():
    """By the name of a module or class the names that it holds."""
    held = {}
    for path in FILES:
        tree = parsed(path)
        held.setdefault(path.stem, set()).update(words_of(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                held.setdefault(node.name, set()).update(words_of(node), bases)
    return held


def is_known(name, path):
    """Whether a file uses a name, or the packages define it; of a path, its last two names."""
    head, _, rest = name.rpartition(".")
    if not head:
        return name in defined() or name in {*words_of(parsed(path)), *dir(builtins)}
    if any(f".{module_name(module)}".endswith(f".{name}") for module in FILES):
        return True
    owner = head.rpartition(".")[2]
    if owner in members():
        return rest in members()[owner]
    return is_known(owner, path) and is_known(rest, path)


@pytest.mark.parametrize("package", ["tracecal", "trace_workflow"])
def test_names_in_backquotes_exist(package):
    unknown = [
        f"{path.relative_to(SCRIPTS)}: {described}: `{name}`"
        for path in FILES
        if path.is_relative_to(SCRIPTS / package)
        for described, text in docstrings(path)
        for name in QUOTED.findall(text.replace("``", "\0"))
        if not is_known(name, path)
    ]
    assert unknown == []
