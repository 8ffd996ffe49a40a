"""The command `run` says in one sentence why a run cannot start."""

import subprocess
import sys
from importlib.util import find_spec

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


@pytest.mark.parametrize(
    ("arguments", "install"),
    [
        (
            ["--workflow-profile", str(REPOSITORY / "profiles/slurm")],
            "-r envs/requirements-slurm.txt",
        ),
        (["--executor", "no-such-cluster"], "snakemake-executor-plugin-no-such-cluster"),
    ],
)
def test_an_executor_whose_plugin_is_missing(tmp_path, arguments, install):
    if "slurm" in install and find_spec("snakemake_executor_plugin_slurm"):
        pytest.skip("SLURM's plugin is installed here")
    ended = start(tmp_path, *arguments)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: Snakemake's plugin for the executor ")
    assert ended.stderr.endswith(f"is not installed here: pip install {install}\n")
    assert ended.stderr.count("\n") == 1
