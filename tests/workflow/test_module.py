"""The workflow as a module of another one, in a folder whose name has a space."""

import pytest
import yaml

from workflow.checkout import REPOSITORY, Checkout, copied_repository

pytestmark = pytest.mark.workflow

OUTER = """
module trace:
    snakefile: {snakefile!r}
    config: config

use rule * from trace{renamed}
"""


def test_the_working_directory_can_be_another_folder(tmp_path):
    folder, target = tmp_path / "else where {x}", "results/smoke/tables/trace_plus_features.csv"
    outer = Checkout(REPOSITORY)
    outer.snakemake(target, "--directory", str(folder))
    assert "decayed_entropy_conf_2" in (folder / target).read_text(encoding="utf-8")


def test_braces_in_the_workflows_own_folder_are_refused_in_a_sentence(tmp_path):
    process = copied_repository(tmp_path / "a{b}").snakemake("--dry-run", check=False)
    assert process.returncode == 1
    assert "Snakemake reads braces as wildcards; rename the folder" in process.stdout


@pytest.mark.parametrize("renamed", ["", " as trace_*"])
def test_rules_of_the_module_run_and_write_below_the_outer_workflow(tmp_path, renamed):
    folder = tmp_path / "my workflow"
    folder.mkdir()
    snakefile = str(REPOSITORY / "Snakefile")
    (folder / "Snakefile").write_text(OUTER.format(snakefile=snakefile, renamed=renamed))
    smoke = yaml.safe_load((REPOSITORY / "config/smoke.yaml").read_text(encoding="utf-8"))
    (folder / "config.yaml").write_text(yaml.safe_dump(smoke), encoding="utf-8")
    outer, target = Checkout(folder), "results/smoke/tables/trace_plus_features.csv"
    outer.snakemake(target, "results/smoke/config.yaml", config="config.yaml")
    assert "decayed_entropy_conf_2" in (folder / target).read_text(encoding="utf-8")
    listed = outer.snakemake("--dry-run", config="config.yaml").stdout
    assert f"{renamed.strip().removeprefix('as ').removesuffix('*')}calibrate" in listed
