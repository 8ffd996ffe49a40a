"""The command `run` says in one sentence why a run cannot start."""

import subprocess
import sys

import pytest

from support.checkout import REPOSITORY

SMOKE = str(REPOSITORY / "config/smoke.yaml")


def start(folder, *more):
    command = [sys.executable, str(REPOSITORY / "workflow_scripts"), "run", "--configfile", SMOKE]
    return subprocess.run([*command, *more], cwd=folder, capture_output=True, text=True)


def test_results_that_cannot_be_written(tmp_path):
    (tmp_path / "results").write_text("no folder")
    ended = start(tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and "results" in ended.stderr
    assert "Traceback" not in ended.stderr and ended.stderr.count("\n") == 1


@pytest.mark.parametrize("setting", ["run=[", "seed: 1"])
def test_a_setting_that_is_no_value(tmp_path, setting):
    ended = start(tmp_path, "--config", setting)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and "Traceback" not in ended.stderr
