"""The code hash sees what can change a result, and nothing else."""

from importlib.metadata import version

import pytest

from trace_workflow.jobs.code_hash import (
    _code,
    _files,
    code_hash,
    code_version,
    import_closure,
    require_code,
)
from tracecal.errors import InputError

SCRIPT = (
    '"""Doc."""\nfrom tracecal.room import one\nimport trace_workflow.jobs.job, tracecal.asked\n'
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
    for known in (code_hash, code_version, import_closure, _code, _files):
        known.cache_clear()


def written(root, files):
    # A new folder each time: files are cached by path within one process.
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def hashed(root, files):
    return code_hash(written(root, files) / "script.py", root=root)


FILES = {
    "script.py": SCRIPT,
    "tracecal/room/one.py": ONE,
    "tracecal/deep/two.py": "VALUE = 1\n",
    "trace_workflow/jobs/job.py": "def job():\n    pass\n",
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
        ("trace_workflow/jobs/job.py", "def job():\n    return 1\n"),
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
    closure = import_closure(tmp_path / "script.py", root=tmp_path)
    assert [path.name for path in closure] == ["a.py", "b.py"]


def test_what_counts_is_all_that_lies_below_the_root_whatever_its_package(tmp_path):
    files = {
        "script.py": "from trace_workflow.contents import contents\nimport elsewhere, polars\n",
        "trace_workflow/__init__.py": '"""The workflow."""\n',
        "trace_workflow/contents/contents.py": "from tracecal.io import files\nfrom .. import __init__\n",
        "tracecal/io/files.py": "X = 1\n",
        "tracecal/io/other.py": "X = 1\n",
        "helpers.py": "",
    }
    before = hashed(tmp_path / "one", files)
    closure = import_closure(tmp_path / "one/script.py", root=tmp_path / "one")
    assert [path.name for path in closure] == ["contents.py", "files.py"]
    assert hashed(tmp_path / "two", files | {"tracecal/io/files.py": "X = 2\n"}) != before
    assert hashed(tmp_path / "three", files | {"tracecal/io/other.py": "X = 2\n"}) == before
    stated = code_version(tmp_path / "one/script.py", root=tmp_path / "one")
    assert stated.endswith(f"; polars {version('polars')}"), "our packages are no libraries"


def test_libraries_are_named_with_their_versions(tmp_path):
    script = "import json, polars\nfrom sklearn.metrics import auc\nimport not_installed\n"
    code = hashed(tmp_path, {"script.py": script, "tracecal/a.py": ""})
    stated, libraries = code_version(tmp_path / "script.py", root=tmp_path).split("; ")
    assert stated == f"script.py {code}"
    assert libraries == f"polars {version('polars')}, scikit-learn {version('scikit-learn')}"


def test_a_module_that_is_loaded_by_name_is_code_too(tmp_path):
    hashed(tmp_path, FILES)
    script = tmp_path / "script.py"
    stated = code_version(script, "tracecal.other", root=tmp_path)
    code = code_hash(script, "tracecal.other", root=tmp_path)
    assert stated.startswith(f"script.py {code} tracecal.other;")
    require_code(stated, root=tmp_path)
    (tmp_path / "tracecal/other.py").write_text("X = 2\n")
    forget()
    with pytest.raises(InputError, match=r"script\.py was edited after this run had started"):
        require_code(stated, root=tmp_path)


def test_a_file_that_is_not_python_is_named(tmp_path):
    with pytest.raises(InputError, match=r"a\.py is not Python \(line 1: "):
        hashed(tmp_path, {"script.py": "import tracecal.a\n", "tracecal/a.py": "def\n"})


def test_equal_files_of_two_packages_import_what_is_beside_them(tmp_path):
    rooms = ("near", "far")
    files = {f"tracecal/{room}/by.py": "from . import side\n" for room in rooms}
    files |= {f"tracecal/{room}/side.py": f"Y = {room!r}\n" for room in rooms}
    written(tmp_path, files | {f"{room}.py": f"import tracecal.{room}.by\n" for room in rooms})
    for room in rooms:
        closure = import_closure(tmp_path / f"{room}.py", root=tmp_path)
        names = [path.relative_to(tmp_path / "tracecal").as_posix() for path in closure]
        assert names == [f"{room}/by.py", f"{room}/side.py"]
