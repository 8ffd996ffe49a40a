"""The command `run` says in one sentence why a run cannot start."""

import fcntl
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from support.checkout import MADE_FROM, REPOSITORY
from trace_workflow.commands import run as run_module
from trace_workflow.commands.init import write_folder
from trace_workflow.commands.run import COPIED, is_copied, opened_log, with_memory
from tracecal.errors import InputError

SMOKE = str(REPOSITORY / "config/smoke.yaml")
SLURM = str(REPOSITORY / "profiles/slurm")


def start(folder, *more, **variables):
    command = [sys.executable, str(REPOSITORY / "workflow_scripts"), "run", "--configfile", SMOKE]
    environment = {**os.environ, **variables}
    return subprocess.run(
        [*command, *more], cwd=folder, capture_output=True, text=True, env=environment
    )


def test_results_that_cannot_be_written(tmp_path):
    (tmp_path / "results").write_text("no folder")
    ended = start(tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and "results" in ended.stderr
    assert "Traceback" not in ended.stderr and ended.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["smoke", "smoke/config.yaml"])
def test_a_result_that_is_a_link_to_itself(tmp_path, name):
    link = tmp_path / "results" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(link.name)
    ended = start(tmp_path, "--dry-run")
    assert ended.returncode == 1
    assert ended.stderr == f"error: results/{name}: Too many levels of symbolic links.\n"


@pytest.mark.parametrize("occupied", [".", "file", "Snakefile"], ids=["file", "inner", "dangling"])
def test_a_folder_that_init_cannot_write_is_a_sentence(tmp_path, occupied):
    if occupied == "Snakefile":
        (tmp_path / "run").mkdir()
        (tmp_path / "run/Snakefile").symlink_to("missing")
    else:
        (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match=r"cannot be written: Not a directory|is there already"):
        write_folder(tmp_path / "run" / occupied.removesuffix("Snakefile"), SMOKE)
    assert not (tmp_path / "run/missing").exists()


@pytest.mark.parametrize("setting", ["run=[", "seed: 1"])
def test_a_setting_that_is_no_value(tmp_path, setting):
    ended = start(tmp_path, "--config", setting)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ") and "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_setting_that_yaml_reads_as_a_number(tmp_path):
    ended = start(tmp_path, "--config", "run=2026_01")
    where = f"error: {SMOKE}, --config run=2026_01: run: "
    assert ended.stderr.startswith(f"{where}must be text; YAML reads 202601 otherwise: put it in")
    snakefile = ["--snakefile", str(REPOSITORY / "Snakefile")]
    ended = start(tmp_path, *snakefile, "--summary", "--config", 'run="2026_01"')
    assert "results/2026_01/config.yaml\t" in ended.stdout, "what it was to list is shown, too"


def test_help_is_shown_and_starts_nothing(tmp_path):
    ended = start(tmp_path, "--help")
    assert ended.returncode == 0
    assert "--verify looks at every" in ended.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "variables", "install"),
    [
        (["--workflow-profile", SLURM], {}, "-r envs/requirements-slurm.txt"),
        ([], {"SNAKEMAKE_PROFILE": SLURM}, "-r envs/requirements-slurm.txt"),
        (["--executor", "no-such-cluster"], {}, "snakemake-executor-plugin-no-such-cluster"),
    ],
)
def test_an_executor_whose_plugin_is_missing(tmp_path, arguments, variables, install):
    if "slurm" in install and find_spec("snakemake_executor_plugin_slurm"):
        pytest.skip("SLURM's plugin is installed here")
    ended = start(tmp_path, *arguments, **variables)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: Snakemake's plugin for the executor ")
    assert ended.stderr.endswith(f"is not installed here: pip install {install}\n")
    assert ended.stderr.count("\n") == 1


def test_a_second_run_leaves_the_first_ones_log(tmp_path):
    log = tmp_path / "logs/run.log"
    with opened_log(log) as first:
        print("of the first", file=first, flush=True)
        for _ in range(2):
            with pytest.raises(InputError, match="another run"):
                opened_log(log)
        assert log.read_text() == "of the first\n"
        # A job that a killed run left holds the log too.
        job = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, stdout=first)
    with pytest.raises(InputError, match="a job that one left"):
        opened_log(log)
    job.communicate(b"\n")
    with opened_log(log):
        assert log.read_text() == ""


def test_a_file_system_without_locks_runs(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with opened_log(tmp_path / "run.log") as log:
        assert log.name.endswith("run.log")


@pytest.mark.parametrize(
    ("config", "planned", "copied"),
    [
        ("run: a\n", run_module.PLANNED, False),  # an edit: Snakemake has a record of what was
        ("run: a\n", "Nothing to be done", True),
        ("run: b\n", "Nothing to be done", False),
        (None, "Nothing to be done", False),
    ],
)
def test_results_of_another_configuration_without_a_record_are_noticed(
    tmp_path, monkeypatch, config, planned, copied
):
    monkeypatch.setattr(run_module, "SNAKEMAKE", [sys.executable, "-c", f"print({planned!r})"])
    if config:
        (tmp_path / "config.yaml").write_text(config)
    arguments = ["--cores", "1", "tables", "--configfile", "b.yaml"]
    assert is_copied(arguments, tmp_path, "run: b\n") is copied
    (tmp_path / COPIED).parent.mkdir()
    (tmp_path / COPIED).touch()
    assert is_copied([], tmp_path, "run: b\n"), "until all of them were found to be its own"


@pytest.mark.slow
def test_copied_results_are_named_and_verified(tmp_path):
    """As `cp -a results/a results/b`; only the resolved configuration is made here."""
    for name in MADE_FROM:
        (tmp_path / name).symlink_to(REPOSITORY / name)
    config = tmp_path / "b.yaml"
    config.write_text(
        (REPOSITORY / "config/smoke.yaml").read_text().replace("run: smoke", "run: b")
    )
    made = tmp_path / "results/smoke/config.yaml"
    assert start(tmp_path, "--cores", "1", str(made.relative_to(tmp_path))).returncode == 0
    shutil.copytree(tmp_path / "results/smoke", tmp_path / "results/b")
    command = [
        sys.executable,
        str(REPOSITORY / "workflow_scripts"),
        "run",
        "--configfile",
        "b.yaml",
    ]
    target = "results/b/config.yaml"
    ended = subprocess.run([*command, "-n", target], cwd=tmp_path, capture_output=True, text=True)
    assert "results/b were made under another name or configuration" in ended.stdout
    assert f"{target} is made again" in ended.stdout and ended.returncode == 0
    assert run_module.PLANNED in ended.stdout


def test_a_run_of_this_machine_knows_its_memory(monkeypatch):
    monkeypatch.setattr(run_module, "machine_memory_mb", lambda: 16000)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    given = ["--cores", "8", "--configfile", "a.yaml"]
    # The option replaces the profile's resources.
    assert with_memory(given) == [*given, "--resources", "uses_gpus=1", "mem_mb=16000"]
    for elsewhere in (["--workflow-profile", SLURM], ["-e", "slurm"], ["--resources", "mem_mb=9"]):
        assert with_memory([*elsewhere, *given]) == [*elsewhere, *given]


def test_after_a_kill_the_message_says_what_to_type(tmp_path):
    (tmp_path / "Snakefile").write_text("rule a:\n    output: 'a.txt'\n    shell: 'touch a.txt'\n")
    locks = tmp_path / ".snakemake/locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("a.txt\n")
    ended = start(tmp_path, "--cores", "1")
    assert ended.returncode == 1
    typed = f"type: python workflow_scripts run --unlock --configfile {SMOKE} --cores 1; then start"
    assert typed in ended.stdout
    assert start(tmp_path, "--unlock", "--cores", "1").returncode == 0
    assert start(tmp_path, "--cores", "1").returncode == 0
    assert (tmp_path / "a.txt").exists()
