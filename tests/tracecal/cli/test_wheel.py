"""The package as people install it: a wheel that is imported from elsewhere."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.made import answers
from support.wheel import REPOSITORY, install


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


def test_the_wheel_holds_the_package_whole_and_nothing_else(installed):
    _, wheel = installed
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = REPOSITORY / "workflow_scripts"
    expected = {
        path.relative_to(package).as_posix()
        for path in (package / "tracecal").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
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
