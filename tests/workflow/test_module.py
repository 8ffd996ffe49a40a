"""The workflow as a module of another one, in a folder whose name has a space."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.checkout import REPOSITORY, SMOKE, Checkout, copied_repository
from support.wheel import install

pytestmark = pytest.mark.runs

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


@pytest.mark.parametrize("name", ["my projects", "bob's", "a\\b", "a`b"])
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
    assert "cannot run in a folder whose path has spaces" in process.stderr


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


HOST = """
import os
import sys

os.environ["PYTHONPATH"] = "/my/modules"
BEFORE = dict(os.environ)

configfile: "config.yaml"
"""
IMPORTED = """
module {name}:
    snakefile: {snakefile}
    config: config["trace"]
    prefix: "{name}"

use rule * from {name} as {name}_*
"""
MINE = """
if os.environ != BEFORE or any("workflow_scripts" in path for path in sys.path):
    raise ValueError("the host's environment was changed")

rule mine:
    input: expand("{name}/results/smoke/labels/demo-small/arithmetic.parquet", name=["first", "second"])
    output: "mine.txt"
    shell: "printenv PYTHONPATH > {output}; printenv > variables.txt"
"""


def test_a_host_that_imports_a_run_twice_keeps_its_environment_and_its_own_keys(checkout, tmp_path):
    snakefile = repr(str(checkout.root / "Snakefile"))
    imports = [IMPORTED.format(name=name, snakefile=snakefile) for name in ("first", "second")]
    (tmp_path / "Snakefile").write_text("".join([HOST, *imports, MINE]))
    settings = {"trace": yaml.safe_load((REPOSITORY / SMOKE).read_text()), "mine": {"key": 1}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    host = Checkout(tmp_path)
    said = host.snakemake("mine", config="config.yaml").stdout
    assert (tmp_path / "mine.txt").read_text() == "/my/modules\n"
    variables = (tmp_path / "variables.txt").read_text()
    assert not re.search("^(TRACECAL|MALLOC)", variables, re.M)
    assert "not present in the Snakefile" not in said
    assert {path.name for path in tmp_path.glob("*/results/smoke/work/journals")} == {"journals"}
    assert not (tmp_path / "results").exists()


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
    assert (jobs["control_risk"], jobs["write_table"], jobs["draw_figure"]) == ("3", "24", "7")


def test_a_file_that_the_outer_workflow_names_is_merged_named_and_can_be_replaced(
    checkout, tmp_path
):
    """The demo's encoders come from packages, and the smoke run's from folders."""
    snakefile = repr(str(checkout.root / "Snakefile"))
    outer = outer_workflow(tmp_path / "outer", snakefile)
    (outer.root / "demo.yaml").write_bytes((REPOSITORY / "config/config.yaml").read_bytes())
    path = outer.root / "Snakefile"
    path.write_text('configfile: "demo.yaml"\n' + path.read_text())
    process = outer.snakemake("--dry-run", config="config.yaml", check=False)
    assert process.returncode == 1
    assert "\nconfig.yaml, demo.yaml: encoders.similarity.source: give exactly" in process.stdout
    replacing = ["--dry-run", "--replace-workflow-config"]
    assert "This was a dry-run" in outer.snakemake(*replacing, config="config.yaml").stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder in which the package is installed."""
    folder = tmp_path_factory.mktemp("package")
    install(folder, folder / "site")
    return folder / "site"


@pytest.fixture
def published(tmp_path, monkeypatch):
    """The repository, of which git reads a folder in place of https://github.com/owner/trace; `release`
    commits what it holds under the tag v1, and returns the `snakefile:` of a module."""
    origin = copied_repository(tmp_path / "origin")

    def release():
        origin.call("git", "init", "--quiet")
        origin.call("git", "add", "--all")
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        origin.call("git", *identity, "commit", "--quiet", "--message", "All")
        origin.call("git", "tag", "--force", "v1")
        # As `snakedeploy deploy-workflow` writes it.
        return 'github("owner/trace", path="Snakefile", tag="v1")'

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{origin.root.as_uri()}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/owner/trace")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    origin.release = release
    return origin


INSTALL = (
    "pip install --force-reinstall 'tracecal[workflow] @ git+https://github.com/owner/trace@v1'"
)


def test_a_module_from_a_git_url_runs_with_the_installed_package(
    published, package, tmp_path, monkeypatch
):
    outer = outer_workflow(tmp_path / "my workflow", published.release())
    monkeypatch.setenv("PYTHONPATH", str(package))
    run_some(outer)
    # With a clone's rules nothing is made again: the hashes of code are the same.
    monkeypatch.delenv("PYTHONPATH")
    checkout = copied_repository(tmp_path / "checkout")
    snakefile = repr(str(checkout.root / "Snakefile"))
    (outer.root / "Snakefile").write_text(OUTER.format(snakefile=snakefile, renamed=""))
    target = "results/smoke/tables/trace_plus_features.csv"
    triggers = ["--rerun-triggers", "mtime", "params", "input"]  # as profiles/default has them
    said = outer.snakemake("--dry-run", target, *triggers, config="config.yaml").stdout
    assert "Nothing to be done" in said


def test_jobs_of_other_environments_find_the_packages_alone(package):
    """As with --sdm conda, whose environments have the libraries and not the package."""
    scripts = package / "trace_workflow/checkout/workflow_scripts"
    program = (
        "import sys, os; sys.path.append(sys.argv[1]); import trace_job, tracecal; from pathlib import "
        "Path; folder = Path(tracecal.__file__).parents[1]; print(sorted(os.listdir(folder))); "
        "print(folder, os.environ['PYTHONPATH'], trace_job.job.__module__)"
    )
    command = [sys.executable, "-c", program, str(scripts)]
    lines = subprocess.check_output(command, env={}, text=True).splitlines()
    assert lines[0] == "['trace_workflow', 'tracecal']"
    folder, path, module = lines[1].split()
    assert (path, module) == (folder, "trace_workflow.jobs.job")
    assert not Path(folder).exists(), "the links stay after the job"


def test_a_module_from_a_git_url_stops_without_the_package_and_says_what_to_type(
    published, tmp_path
):
    outer = outer_workflow(tmp_path / "my workflow", published.release())
    process = outer.snakemake("--dry-run", config="config.yaml", check=False)
    assert process.returncode == 1
    assert f"type {INSTALL}, or name the Snakefile of a clone" in process.stdout


def test_a_module_from_a_git_url_stops_where_the_package_is_of_another_commit(
    published, package, tmp_path, monkeypatch
):
    with (published.root / "workflow_scripts/generate.py").open("a") as script:
        script.write("# another\n")
    outer = outer_workflow(tmp_path / "my workflow", published.release())
    monkeypatch.setenv("PYTHONPATH", str(package))
    process = outer.snakemake("--dry-run", config="config.yaml", check=False)
    assert process.returncode == 1
    said = f"generate.py of the git URL is not that of the installed package: type {INSTALL}"
    assert said in process.stdout


@pytest.mark.parametrize("place", ["checkout", "package"])
def test_init_writes_a_folder_in_which_the_workflow_runs(
    place, checkout, package, tmp_path, monkeypatch
):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    command = [str(checkout.root / "workflow_scripts")]
    if place == "package":
        monkeypatch.setenv("PYTHONPATH", str(package))
        command = ["-m", "trace_workflow"]
    folder = tmp_path / "my run"
    command = [sys.executable, *command, "init", str(folder), "--configfile", "config/smoke.yaml"]
    process = Checkout(tmp_path).call(*command)
    assert process.stdout.endswith(f"cd '{folder}' && {sys.executable} -m snakemake --cores all\n")
    again = Checkout(tmp_path).call(*command)
    assert (
        again.stdout == f"error: {folder}/Snakefile is there already; name a folder without it.\n"
    )
    outer = Checkout(folder)
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "2"]
    listed = outer.call(*snakemake, "--dry-run")
    assert re.search(r"^write_table +24$", listed.stdout, re.M), listed.stdout
    target = "results/smoke/tables/trace_plus_features.csv"
    process = outer.call(*snakemake, target, "results/smoke/config.yaml")
    assert process.returncode == 0, process.stdout
    assert "decayed_entropy_conf_2" in (folder / target).read_text(encoding="utf-8")
    formatted = [sys.executable, "-m", "snakefmt", "--check", "Snakefile"]
    assert outer.call(*formatted).returncode == 0
