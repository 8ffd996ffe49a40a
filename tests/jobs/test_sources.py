"""What runs is what was hashed, whatever Python's caches, clocks and people do to the files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracecal.jobs.provenance import code_version

PACKAGE = Path(__file__).resolve().parents[2] / "workflow_scripts/tracecal"
SCRIPT = """
from types import SimpleNamespace
from tracecal.room import VALUE
{later}from tracecal.jobs.job import job
import sys
class Params(dict):
    __getattr__ = dict.__getitem__
snakemake = SimpleNamespace(log=["logs/a.log"], threads=1, params=Params(code=sys.argv[1]))
with job(snakemake):
    {body}
"""


@pytest.fixture
def root(tmp_path):
    """A package of its own with what jobs need, and a module that computes."""
    for name in ("__init__.py", "errors.py", "jobs"):
        copy = shutil.copytree if (PACKAGE / name).is_dir() else shutil.copyfile
        copy(PACKAGE / name, _made(tmp_path / "tracecal") / name)
    (tmp_path / "tracecal/room.py").write_text("VALUE = 1\n")
    (tmp_path / "tracecal/late.py").write_text("LATE = 1\n")
    return tmp_path


def _made(folder):
    folder.mkdir(exist_ok=True)
    return folder


def environment(root, **more):
    """That of a process below `root`; compiled code is kept, as by default."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"PYTHONPATH": str(root)} | more


def run(root, body="print(VALUE)", later="", version=None, job="1"):
    script = root / "script.py"
    script.write_text(SCRIPT.format(body=body, later=later))
    return subprocess.run(
        [sys.executable, script, version or code(root)],
        cwd=root,
        text=True,
        capture_output=True,
        env=environment(root, **{"TRACECAL_JOB": job} if job else {}),
    )


def code(root):
    """The version of the script on disk, by a process that has read nothing before."""
    program = (
        "from pathlib import Path; from tracecal.jobs.provenance import code_version; "
        "print(code_version(Path('script.py').resolve()))"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        text=True,
        capture_output=True,
        check=True,
        env=environment(root),
    ).stdout.strip()


def edit(path, text):
    """Other content of the same size, with the old time, as `cp -p` and archives leave it."""
    before = path.stat()
    assert before.st_size == len(text)
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("first", ["", "1"], ids=["compiled by Python", "compiled by a job"])
def test_no_cache_runs_old_code_whatever_its_time(root, first):
    assert run(root, job=first).stdout == "1\n"
    assert list((root / "tracecal/__pycache__").glob("room.*.pyc"))
    edit(root / "tracecal/room.py", "VALUE = 2\n")
    assert run(root).stdout == "2\n"


def test_what_a_job_compiled_serves_the_next_one_and_python_itself(root):
    run(root)
    (compiled,) = (root / "tracecal/__pycache__").glob("room.*.pyc")
    before = compiled.stat().st_mtime_ns
    assert run(root).stdout == run(root, job="").stdout == "1\n"
    assert compiled.stat().st_mtime_ns == before
    edit(root / "tracecal/room.py", "VALUE = 2\n")
    assert run(root, job="").stdout == "2\n", "checked by its source's hash"


def test_code_that_was_loaded_edited_and_put_back_is_refused(root):
    run(root)
    planned = code(root)
    (root / "tracecal/room.py").write_text("VALUE = 2\n")
    back = "__import__('pathlib').Path('tracecal/room.py').write_text('VALUE = 1\\n')\n"
    process = run(root, later=back)
    assert process.returncode == 0, "the version of this script, with the edit, is what ran"
    (root / "tracecal/room.py").write_text("VALUE = 2\n")
    process = run(root, later=back, version=planned.replace(planned.split(";")[0], _of(root, back)))
    assert (process.returncode, process.stdout) == (1, "")
    assert "the code of script.py was edited after this run had started" in process.stderr


def _of(root, back):
    """The code hash of the script with `back` and the module as it was."""
    (root / "script.py").write_text(SCRIPT.format(body="print(VALUE)", later=back))
    text = (root / "tracecal/room.py").read_text()
    (root / "tracecal/room.py").write_text("VALUE = 1\n")
    version = code(root).split(";")[0]
    (root / "tracecal/room.py").write_text(text)
    return version


def test_what_is_imported_late_is_what_was_checked_at_the_start(root):
    body = (
        "__import__('pathlib').Path('tracecal/late.py').write_text('LATE = 2\\n')\n"
        "    from tracecal.late import LATE\n    print(LATE)"
    )
    assert run(root, body).stdout == "1\n"


def test_the_copy_that_snakemake_runs_is_what_counts(root):
    script = root / "script.py"
    script.write_text(SCRIPT.format(body="print(VALUE)", later=""))
    copy = root / "started.py"
    begin = f"__real_file__ = __file__; __file__ = {str(script)!r}\n"
    begin += "######## snakemake preamble end #########\n"

    def run_copy(text):
        copy.write_text(begin + text)
        return subprocess.run(
            [sys.executable, copy, code(root)],
            cwd=root,
            text=True,
            capture_output=True,
            env=environment(root, TRACECAL_JOB="1"),
        )

    process = run_copy(script.read_text())
    assert process.stdout == "1\n", process.stderr
    assert "was edited" in run_copy(script.read_text().replace("print(VALUE)", "print(9)")).stderr


def test_versions_are_those_of_the_repositorys_own_scripts():
    assert code_version(PACKAGE.parent / "decode/generate.py")
