"""The workflow as a module of another one, in a folder whose name has a space."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.checkout import REPOSITORY, SMOKE, Checkout, copied_repository

pytestmark = pytest.mark.workflow

OUTER = """
module trace:
    snakefile: {snakefile}
    config: config

use rule * from trace{renamed}
"""


def test_the_working_directory_can_be_another_folder(checkout, tmp_path):
    folder, target = tmp_path / "else where {x}", "results/smoke/tables/trace_plus_features.csv"
    checkout.snakemake(target, "--directory", str(folder))
    assert "decayed_entropy_conf_2" in (folder / target).read_text(encoding="utf-8")


def test_braces_in_the_workflows_own_folder_are_refused_in_a_sentence(tmp_path):
    process = copied_repository(tmp_path / "a{b}").snakemake("--dry-run", check=False)
    assert process.returncode == 1
    assert "Snakemake reads braces as wildcards; rename the folder" in process.stdout


@pytest.mark.parametrize("name", ["my projects", "bob's"])
def test_a_path_of_python_that_a_shell_would_split_is_refused_in_a_sentence(tmp_path, name):
    copy = copied_repository(tmp_path / name)
    (copy.root / ".venv").symlink_to(Path(sys.executable).parents[1])
    run = [copy.root / ".venv/bin/python", "-m", "snakemake", "--dry-run"]
    process = subprocess.run(run, cwd=copy.root, capture_output=True, text=True)
    assert process.returncode == 1
    assert "passes the path of Python to a shell without quotes" in process.stdout + process.stderr
    make = ["make", "-W", "envs/requirements.txt", ".venv/installed"]
    process = subprocess.run(make, cwd=copy.root, capture_output=True, text=True)
    assert process.returncode == 2
    assert "cannot run in a folder with spaces or quotes" in process.stderr


def outer_workflow(folder, snakefile, renamed="", more=""):
    """A workflow that uses this one, with the smoke configuration as its own."""
    folder.mkdir()
    (folder / "Snakefile").write_text(OUTER.format(snakefile=snakefile, renamed=renamed) + more)
    (folder / "config.yaml").write_bytes((REPOSITORY / SMOKE).read_bytes())
    return Checkout(folder)


def run_some(outer):
    target = "results/smoke/tables/trace_plus_features.csv"
    outer.snakemake(target, "results/smoke/config.yaml", config="config.yaml")
    assert "decayed_entropy_conf_2" in (outer.root / target).read_text(encoding="utf-8")


@pytest.mark.parametrize("renamed", ["", " as trace_*"])
def test_rules_of_the_module_run_and_write_below_the_outer_workflow(checkout, tmp_path, renamed):
    snakefile = repr(str(checkout.root / "Snakefile"))
    outer = outer_workflow(tmp_path / "my workflow", snakefile, renamed)
    run_some(outer)
    listed = outer.snakemake("--dry-run", config="config.yaml").stdout
    assert f"{renamed.strip().removeprefix('as ').removesuffix('*')}calibrate" in listed


ALL = """
rule all:
    default_target: True
    input: rules.trace_all.input
"""


def test_the_outer_workflow_can_ask_for_all_that_the_module_makes(checkout, tmp_path):
    snakefile = repr(str(checkout.root / "Snakefile"))
    outer = outer_workflow(tmp_path / "outer", snakefile, " as trace_*", ALL)
    listed = outer.snakemake("--dry-run", config="config.yaml").stdout
    jobs = dict(re.findall(r"^trace_(\w+) +(\d+)$", listed, re.M))
    assert (jobs["control_risk"], jobs["write_table"], jobs["draw_figure"]) == ("3", "27", "10")


def test_a_module_from_a_git_url_stops_with_what_to_do(tmp_path, monkeypatch):
    """As `snakedeploy deploy-workflow` writes it; git reads the address from a folder instead."""
    origin = copied_repository(tmp_path / "origin")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    origin.call("git", "init", "--quiet")
    origin.call("git", "add", "--all")
    origin.call("git", *identity, "commit", "--quiet", "--message", "All")
    commit = origin.call("git", "rev-parse", "HEAD").stdout.strip()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{origin.root.as_uri()}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/owner/trace")
    snakefile = f'github("owner/trace", path="Snakefile", commit="{commit}")'
    outer = outer_workflow(tmp_path / "my workflow", snakefile)
    process = outer.snakemake("--dry-run", config="config.yaml", check=False)
    assert process.returncode == 1
    assert (
        "clone the repository, or add it as a submodule, and name its Snakefile" in process.stdout
    )
