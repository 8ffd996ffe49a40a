"""The code hash sees what can change a result, and nothing else."""

import ast
import os
from importlib.metadata import version

import pytest

from tracecal.errors import InputError
from tracecal.jobs import syntax
from tracecal.jobs.provenance import code_hash, code_version, import_closure, require_code
from tracecal.jobs.sources import CONTENTS

SCRIPT = (
    '"""Doc."""\nfrom tracecal.room import one\nimport tracecal.jobs.job, tracecal.asked\n'
    "from importlib import import_module\nimport tracecal.near.by\n"
    'import_module("tracecal.named")\none.run(1)\n'
)
ASKED = """\
limit = Field(1, description="words")
if limit > 2:
    LOGGER.info("a sentence")
    raise InputError("a sentence")
"""
ONE = '"""Doc."""\nfrom tracecal.deep.two import VALUE\n\ndef run(x):\n    """Doc."""\n    return x + VALUE\n'


def forget():
    """Be as a process that has read nothing."""
    CONTENTS.clear()
    syntax.PARSED.clear()
    for known in (code_hash, import_closure, syntax.code_of, syntax._kept):
        known.cache_clear()


def written(root, files):
    # A new folder each time: files are cached by path within one process.
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def hashed(root, files):
    return code_hash(written(root, files) / "script.py")


FILES = {
    "script.py": SCRIPT,
    "tracecal/room/one.py": ONE,
    "tracecal/deep/two.py": "VALUE = 1\n",
    "tracecal/jobs/job.py": "def job():\n    pass\n",
    "tracecal/other.py": "X = 1\n",
    "tracecal/room/__init__.py": "",
    "tracecal/asked.py": ASKED,
    "tracecal/near/__init__.py": "SCALE = 1\n",
    "tracecal/near/by.py": "from . import side\nfrom .side import Y\n",
    "tracecal/near/side.py": "Y = 1\n",
    "tracecal/named.py": "Z = 1\n",
}


@pytest.fixture
def before(tmp_path):
    return hashed(tmp_path / "before", FILES)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("script.py", SCRIPT.replace("Doc.", "Documentation.")),
        ("script.py", SCRIPT.replace("one.run(1)", "# why\none.run(\n    1,\n)")),
        ("tracecal/room/one.py", ONE.replace('    """Doc."""\n', "")),
        ("tracecal/jobs/job.py", "def job():\n    return 1\n"),
        ("tracecal/other.py", "X = 2\n"),
        ("tracecal/asked.py", ASKED.replace("words", "other words")),
        ("tracecal/asked.py", ASKED.replace("a sentence", "another sentence")),
        ("tracecal/asked.py", ASKED.replace('    LOGGER.info("a sentence")\n', "")),
    ],
)
def test_what_changes_no_result_changes_no_hash(tmp_path, before, file, text):
    assert hashed(tmp_path / "after", FILES | {file: text}) == before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("script.py", SCRIPT.replace("run(1)", "run(2)")),
        ("script.py", SCRIPT.replace("run(1)", "run('1')")),
        ("tracecal/room/one.py", ONE.replace("x + VALUE", "x - VALUE")),
        ("tracecal/deep/two.py", "VALUE = 1.0\n"),
        ("tracecal/deep/two.py", "if True:\n    VALUE = 1\n"),
        ("tracecal/room/__init__.py", "X = 1\n"),
        ("tracecal/near/__init__.py", "SCALE = 2\n"),
        ("tracecal/near/side.py", "Y = 2\n"),
        ("tracecal/named.py", "Z = 2\n"),
        ("tracecal/asked.py", ASKED.replace("Field(1", "Field(2")),
        ("tracecal/asked.py", ASKED.replace("limit > 2", "limit > 3")),
        ("tracecal/asked.py", ASKED.replace("raise InputError", "raise TypeError")),
        ("tracecal/asked.py", ASKED.replace('LOGGER.info("a sentence")', 'print("a sentence")')),
    ],
)
def test_what_can_change_a_result_changes_the_hash(tmp_path, before, file, text):
    assert hashed(tmp_path / "after", FILES | {file: text}) != before


def test_imports_are_found_inside_functions_and_cycles_end(tmp_path):
    files = {
        "script.py": "def f():\n    import tracecal.a\n",
        "tracecal/a.py": "from tracecal import b\n",
        "tracecal/b.py": "import tracecal.a\nimport json\n",
    }
    hashed(tmp_path, files)
    closure = import_closure(tmp_path / "script.py")
    assert [path.name for path in closure] == ["a.py", "b.py"]


def test_libraries_are_named_with_their_versions(tmp_path):
    script = "import json, polars\nfrom sklearn.metrics import auc\nimport not_installed\n"
    hashed(tmp_path, {"script.py": script, "tracecal/a.py": ""})
    code, libraries = code_version(tmp_path / "script.py").split("; ")
    assert code == code_hash(tmp_path / "script.py")
    assert libraries == f"polars {version('polars')}, scikit-learn {version('scikit-learn')}"


def test_a_module_that_is_loaded_by_name_is_code_too(tmp_path):
    hashed(tmp_path, FILES)
    script = tmp_path / "script.py"
    stated = code_version(script, "tracecal.other")
    assert stated.startswith(f"{code_hash(script, 'tracecal.other')} tracecal.other;")
    require_code(script, stated)
    (tmp_path / "tracecal/other.py").write_text("X = 2\n")
    require_code(script, stated)  # what has been read is what runs, whatever happens to the file
    forget()
    with pytest.raises(InputError, match=r"script\.py was edited after this run had started"):
        require_code(script, stated)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """What is kept of FILES by a process that was the first in a folder."""
    monkeypatch.chdir(tmp_path)
    forget()
    before = hashed(tmp_path / "own", FILES)
    syntax.keep()
    forget()
    yield before
    forget()


def test_what_is_known_of_sources_is_not_parsed_again(tmp_path, kept, monkeypatch):
    written = syntax.KEPT.read_bytes()
    parsed = []
    monkeypatch.setattr(
        syntax, "_parsed", lambda path, content: parsed.append(path.name) or ast.parse(content)
    )
    script = tmp_path / "own/script.py"
    assert code_hash(script) == kept
    assert not parsed
    syntax.keep()
    assert syntax.KEPT.read_bytes() == written
    assert [path.name for path in syntax.KEPT.parent.iterdir()] == [syntax.KEPT.name]

    forget()
    edited = tmp_path / "own/tracecal/deep/two.py"
    times = edited.stat()
    edited.write_text("VALUE = 2\n")  # of the same size and time
    os.utime(edited, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert code_hash(script) != kept
    assert parsed == ["two.py"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-10],
        lambda text: "[]",
        lambda text: f"another version's{text[text.index(chr(10)) :]}",
        lambda text: text.replace('": ["', '": ["0', 1),
    ],
    ids=["empty", "cut", "other JSON", "of another version", "another hash"],
)
def test_what_is_kept_otherwise_is_made_again(tmp_path, kept, damage):
    syntax.KEPT.write_text(damage(syntax.KEPT.read_text()))
    assert code_hash(tmp_path / "own/script.py") == kept


def test_where_nothing_can_be_kept_all_is_as_without(tmp_path, kept):
    syntax.KEPT.unlink()
    syntax.KEPT.parent.rmdir()
    syntax.KEPT.parent.write_text("a file where the folder would be")
    assert code_hash(tmp_path / "own/script.py") == kept
    syntax.keep()


def test_equal_files_of_two_packages_import_what_is_beside_them(tmp_path):
    rooms = ("near", "far")
    files = {f"tracecal/{room}/by.py": "from . import side\n" for room in rooms}
    files |= {f"tracecal/{room}/side.py": f"Y = {room!r}\n" for room in rooms}
    written(tmp_path, files | {f"{room}.py": f"import tracecal.{room}.by\n" for room in rooms})
    for room in rooms:
        closure = import_closure(tmp_path / f"{room}.py")
        names = [path.relative_to(tmp_path / "tracecal").as_posix() for path in closure]
        assert names == [f"{room}/by.py", f"{room}/side.py"]
