"""A frozen configuration says what the original said, and keeps saying it."""

from pathlib import Path

import pytest
import yaml

from tracecal.config.frozen import freeze, frozen_code
from tracecal.config.run import load_config, load_tasks, resolved_yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["config", "smoke", "paper"])
def test_the_copy_resolves_to_the_same_settings(tmp_path, name):
    value = yaml.safe_load((ROOT / f"config/{name}.yaml").read_text(encoding="utf-8"))
    copy = yaml.safe_load(freeze(value, ROOT, tmp_path, {}).read_text(encoding="utf-8"))

    def resolved(settings):
        config = load_config(settings, "config")
        return resolved_yaml(config, load_tasks(config, ROOT), [])

    assert resolved(copy) == resolved(value)


def test_an_edit_of_the_original_leaves_the_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = tmp_path / "mine.yaml"
    task.write_text("label: One\n", encoding="utf-8")
    value = {"run": "x", "tasks": [{"slug": "mine", "file": "mine.yaml"}]}
    first = freeze(value, tmp_path, tmp_path / "configs", {"a.py": "1"})
    task.write_text("label: Two\n", encoding="utf-8")
    second = freeze(value, tmp_path, tmp_path / "configs", {"a.py": "1"})
    assert first != second
    (entry,) = yaml.safe_load(first.read_text())["tasks"]
    assert Path(entry["file"]).read_text() == "label: One\n"


def test_the_code_that_a_run_starts_is_frozen_too(tmp_path):
    value = {"run": "x", "tasks": []}
    first, second = (freeze(value, tmp_path, tmp_path, {"a.py": one}) for one in "12")
    assert first != second
    assert frozen_code([first]) == {"a.py": "1"}


def test_a_module_of_another_workflow_has_nothing_frozen(tmp_path):
    assert frozen_code([]) == frozen_code([tmp_path / "config.yaml"]) == {}
