"""A frozen configuration says what the original said, and keeps saying it."""

from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from trace_workflow.config.frozen import freeze, merged
from trace_workflow.config.run import load_run
from tracecal.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


def as_snakemake(files):
    value = {}
    for file in files:
        update_config(value, yaml.safe_load(Path(file).read_text(encoding="utf-8")))
    return value


@pytest.mark.parametrize("names", [["config"], ["smoke"], ["paper"], ["config", "evening"]])
def test_the_copies_resolve_to_the_same_settings(tmp_path, names):
    files = [str(ROOT / f"config/{name}.yaml") for name in names]
    value = merged(files)
    assert value == as_snakemake(files)
    copies = freeze(files, [], value, ROOT, tmp_path)
    assert [path.name for path in copies[:-1]] == [f"{name}.yaml" for name in names]

    def resolved(settings):
        return load_run(settings, "config", ROOT).resolved

    assert resolved(as_snakemake(copies)) == resolved(value)


def test_settings_of_the_command_line_are_merged_last(tmp_path):
    (tmp_path / "a.yaml").write_text("seed: 1\naudit: {answers: 4, width: 2}\n")
    value = merged([str(tmp_path / "a.yaml")], ["seed=2", "audit={'answers': 5}", "run=x"])
    assert value == {"seed": 2, "audit": {"answers": 5, "width": 2}, "run": "x"}


def test_the_copies_hold_the_settings_of_the_command_line_as_yaml_reads_them(tmp_path):
    """Snakemake would read `null` as a text, and take the quotes away that make a date one."""
    files, settings = [str(ROOT / "config/smoke.yaml")], ['run="2026_01"', "beams=null"]
    value = merged(files, settings)
    copied = as_snakemake(freeze(files, settings, value, ROOT, tmp_path))
    assert copied | {"tasks": value["tasks"]} == value
    assert (value["run"], value["beams"]) == ("2026_01", None)


def test_an_edit_of_the_original_leaves_the_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task, file = tmp_path / "mine.yaml", tmp_path / "config.yaml"
    task.write_text("label: One\n", encoding="utf-8")
    file.write_text("run: x\ntasks: [{slug: mine, file: mine.yaml}]\n", encoding="utf-8")
    first, second, third = (
        freeze(["config.yaml"], [], merged(["config.yaml"]), tmp_path, "configs")
        for text in ("label: One\n", "label: One\n", "label: Two\n")
        if task.write_text(text, encoding="utf-8")
    )
    assert first == second != third
    (entry,) = as_snakemake(first)["tasks"]
    assert Path(entry["file"]).read_text() == "label: One\n"


def test_two_files_of_one_name_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "c.yaml").write_text("tasks: []\n")
    files = [str(tmp_path / folder / "c.yaml") for folder in ("a", "b")]
    with pytest.raises(InputError, match=r"two have one name; rename one"):
        freeze(files, [], {"tasks": []}, ROOT, tmp_path)


def test_a_configuration_without_settings_is_named(tmp_path):
    (tmp_path / "mine.yaml").write_text("- run\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml holds no settings; write keys and values"):
        merged([str(tmp_path / "mine.yaml")])
