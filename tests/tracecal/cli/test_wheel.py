"""The package as people install it: a wheel that is imported from elsewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.checkout import MADE_FROM, repository_files
from support.labelled_answers import answers
from support.wheel import REPOSITORY, install

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the installed package and its command, built without a network."""
    folder = tmp_path_factory.mktemp("package")
    wheel = install(folder, folder / "site")
    return folder, wheel


def run(folder, *command):
    environment = os.environ | {"PYTHONPATH": str(folder / "site"), "HOME": str(folder)}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, check=True
    ).stdout


def test_the_wheel_holds_the_packages_whole_and_what_runs_are_made_from(installed):
    _, wheel = installed
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    folder = "workflow_scripts/"
    expected = {"trace_workflow/checkout/setup.py"}
    for name in filter(lambda name: name.split("/")[0] in MADE_FROM, repository_files()):
        if name.startswith((f"{folder}tracecal/", f"{folder}trace_workflow/")):
            expected.add(name.removeprefix(folder))
        elif Path(name).name not in ("README.md", "__main__.py", "make.py"):
            expected.add(f"trace_workflow/checkout/{name}")
    assert {"tracecal/py.typed", "trace_workflow/checkout/rules/start.smk"} <= held
    assert held == expected


def test_the_command_calibrates_and_scores_where_there_is_no_checkout(installed):
    folder, _ = installed
    answers(120).write_ndjson(folder / "answers.jsonl")
    command = [sys.executable, str(folder / "site" / "bin" / "tracecal")]
    read = ["--answers", "answers.jsonl"]
    run(folder, *command, "calibrate", *read, "--task", "t", "--output", "C.json")
    told = run(folder, *command, "score", *read, "--calibrator", "C.json")
    rows = [json.loads(line) for line in told.split("\n") if line]
    assert len(rows) == 120
    assert all(0 < row["probability"] < 1 for row in rows)
    where = run(folder, sys.executable, "-c", "import tracecal; print(tracecal.__file__)")
    assert Path(where.strip()).is_relative_to(folder / "site")


PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
USES = """
import tracecal
calibrator = tracecal.calibrate("answers.jsonl", "t")
calibrator.save("own.json")
calibrator.report().save("report.html")
tracecal.explore("answers.jsonl", "page.html", calibrator=calibrator)
tracecal.plan(0.3, accuracy=0.8, auroc=0.8, most=50, draws=2).picture()
with tracecal.Monitors(calibrator, "state.db") as monitors:
    monitors.watch("answers.jsonl")
"""
OF_SKLEARN = """
import tracecal
from tracecal.sklearn import LogRidgeClassifier, TraceFeatures
answers = tracecal.read_answers("answers.jsonl")
matrix = TraceFeatures("log_ridge").fit_transform(answers)
LogRidgeClassifier().fit(matrix, answers["correct"]).predict(matrix)
"""
# What needs an extra, and its name.
NEEDS = {
    "serve": ["label answers.jsonl", "serve --upstream http://localhost:1 --calibrator C.json"],
}


def interpreter(name):
    """One on the path, or of pyenv, which puts only chosen ones there; null where none runs."""
    of_pyenv = Path.home().glob(f".pyenv/versions/*/bin/{name}")
    for found in filter(None, (shutil.which(name), *map(str, of_pyenv))):
        if subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("versions", ["newest", "lowest"])
@pytest.mark.parametrize("python", ["python3.11", "python3.12", "python3.13"])
def test_it_is_installed_and_used_in_an_empty_environment(installed, tmp_path, python, versions):
    """The lowest versions have no wheels for the newest Python; that pairing is left out."""
    if versions == "lowest" and python != "python3.11":
        pytest.skip("lowest versions are tried with the lowest Python")
    found = interpreter(python)
    if found is None:
        pytest.skip(f"there is no {python}")
    _, wheel = installed
    subprocess.run([found, "-m", "venv", str(tmp_path / "env")], check=True)
    own = tmp_path / "env" / "bin"
    needed = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["sklearn"]]
    lowest = [re.sub(">=", "==", one) for one in needed]
    (tmp_path / "versions.txt").write_text("\n".join(lowest if versions == "lowest" else []))
    pip = [str(own / "python"), "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "-c", str(tmp_path / "versions.txt"), str(wheel)], check=True)
    answers(60).write_ndjson(tmp_path / "answers.jsonl")

    def ran(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    used = ran(str(own / "python"), "-c", USES)
    assert used.returncode == 0, used.stderr
    read = ["--answers", "answers.jsonl"]
    tracecal = str(own / "tracecal")
    assert ran(tracecal, "calibrate", *read, "--task", "t", "--output", "C.json").returncode == 0
    assert (tmp_path / "own.json").read_bytes() == (tmp_path / "C.json").read_bytes()
    assert ran(tracecal, "score", *read, "--calibrator", "C.json").returncode == 0
    assert ran(tracecal, "--version").stdout == f"tracecal {PROJECT['version']}\n"
    told = ran(str(own / "python"), "-c", OF_SKLEARN)
    assert told.stderr.endswith("not installed: pip install 'tracecal[sklearn]'\n"), told.stderr
    further = [*pip, "-c", str(tmp_path / "versions.txt"), f"{wheel}[sklearn]"]
    subprocess.run(further, check=True)
    used = ran(str(own / "python"), "-c", OF_SKLEARN)
    assert used.returncode == 0, used.stderr
    for extra, commands in NEEDS.items():
        for command in commands:
            told = ran(tracecal, *command.split())
            assert told.returncode == 1
            assert told.stderr.endswith(f"pip install 'tracecal[{extra}]'\n"), told.stderr


@pytest.mark.parametrize(
    ("statement", "extra", "libraries"),
    [
        ("tracecal.replay([{'answer': '5', 'prompt': '2 + 3'}], 'w')", "replay", ["transformers"]),
        ("import tracecal.sklearn", "sklearn", ["sklearn", "sklearn.base"]),
    ],
)
def test_an_extra_that_is_missing_is_said_where_it_is_loaded(statement, extra, libraries):
    program = f"""
import sys
sys.modules.update(dict.fromkeys({libraries!r}))
import tracecal.cli.main
from tracecal.errors import InputError
try:
    {statement}
except InputError as error:
    print(error)
"""
    environment = {"PYTHONPATH": str(REPOSITORY / "workflow_scripts")}
    told = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.endswith(f"which is not installed: pip install 'tracecal[{extra}]'\n")
    assert extra in PROJECT["optional-dependencies"]
