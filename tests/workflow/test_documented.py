"""Every command of Snakemake that README, CONTRIBUTING, docs and comments of config/ give can be planned."""

import re
import shlex
import sys

import pytest
import yaml

from support.checkout import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
PAGES += [REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "config").glob("*.yaml"))]
# What follows two spaces after the last option, or a '#', is a remark.
COMMAND = re.compile(r"^(?:#? {2,4})?(snakemake .+?)(?: {3,}[^-]*| +#.*)?$", re.MULTILINE)
COMMANDS = sorted(
    {
        " ".join(command.split())
        for page in PAGES
        for command in COMMAND.findall(page.read_text(encoding="utf-8"))
        # These need plugins of another environment; tests/slurm and tests/cloud run them.
        if not re.search(
            r"profiles/(slurm|kubernetes|aws-batch)|--default-storage-provider", command
        )
    }
)


def test_there_are_commands():
    assert "snakemake --cores all --configfile config/mine.yaml" in COMMANDS
    assert "snakemake stage --cores 1 --configfile config/paper.yaml" in COMMANDS
    assert "snakemake --cores all --configfile config/config.yaml config/evening.yaml" in COMMANDS


# A plan costs seconds; the first is that of the page for whoever changes the rules.
PLANNED_FIRST = "snakemake -n --configfile config/smoke.yaml"
PARAMETERS = [
    pytest.param(command, marks=[] if command == PLANNED_FIRST else pytest.mark.runs)
    for command in COMMANDS
]


@pytest.mark.parametrize("command", PARAMETERS)
def test_it_can_be_planned(checkout, command):
    mine = yaml.safe_dump(checkout.smoke())
    (checkout.root / "config/mine.yaml").write_text(mine, encoding="utf-8")
    snakemake, *arguments = shlex.split(command)
    process = checkout.call(sys.executable, "-m", snakemake, *arguments, "--dry-run")
    assert process.returncode == 0, process.stdout[-3000:]
    assert "--unlock" in arguments or "This was a dry-run" in process.stdout


@pytest.mark.runs
def test_the_prompt_that_a_model_is_sent_is_shown(finished):
    page = (REPOSITORY / "docs/tutorials/own_model.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^python (workflow_scripts show_prompt MODEL TASK)", page, re.MULTILINE)
    line = line.replace("MODEL", "demo-small").replace("TASK", "arithmetic")
    process = finished.call(sys.executable, *line.split(), "--configfile", "config/smoke.yaml")
    assert process.returncode == 0, process.stdout
    assert process.stdout.strip()


def test_pages_that_are_linked_are_there():
    for page in PAGES[: 1 + len(list((REPOSITORY / "docs").rglob("*.md")))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
