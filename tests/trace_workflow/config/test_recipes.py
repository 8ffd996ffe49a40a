"""What a comment of config/ says one can write works as it stands."""

import json
import re
from pathlib import Path

import pytest
import yaml

from trace_workflow.config.config import load_config
from trace_workflow.config.run import load_tasks
from trace_workflow.config.task_tables import load

ROOT = Path(__file__).resolve().parents[3]
LOCAL = re.compile(r"#\s+tasks: (\[\{.*\])")
RECIPES = [
    (path.relative_to(ROOT).as_posix(), recipe)
    for path in sorted((ROOT / "config").rglob("*.yaml"))
    for recipe in LOCAL.findall(path.read_text(encoding="utf-8"))
]
# A line of example.yaml that is a setting but for its "# ".
SETTING = re.compile(r"^( *)# ( *(?:[a-z_]+:( |$)|- \{slug))", re.MULTILINE)


def task_of(recipe):
    """The one task of a recipe, put into the example's configuration."""
    tasks = yaml.safe_load(recipe)
    value = yaml.safe_load((ROOT / "config/example.yaml").read_text(encoding="utf-8"))
    value["study"] = {"main": {"models": ["my-model"], "tasks": [one["slug"] for one in tasks]}}
    (spec,) = load_tasks(load_config(value | {"tasks": tasks}, "c"), ROOT).values()
    return spec


def row(fields, number):
    """A row in which every field that is named has a value."""
    made = {}
    for name in ("id", "question", "context", "references", "distractors"):
        given = getattr(fields, name)
        for path in [given] if isinstance(given, str) else given or []:
            *outer, last = path.split(".")
            inner = made
            for key in outer:
                inner = inner.setdefault(key, {})
            inner[last] = f"{name} {number}"
    return made


def test_there_are_recipes():
    files = {name for name, _ in RECIPES}
    names = ("mlqa", "svamp", "triviaqa", "truthfulqa")
    assert files >= {
        f"config/tasks/{where}{name}.yaml" for where in ("", "laptop/") for name in names
    }
    assert any("xquad" in recipe for _, recipe in RECIPES)


@pytest.mark.parametrize(("file", "recipe"), RECIPES)
def test_local_files_stand_in_for_the_hub(monkeypatch, tmp_path, file, recipe):
    monkeypatch.chdir(ROOT)
    spec = task_of(recipe)
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(spec.local_files()):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        rows = [row(spec.fields, f"{place} {number}") for number in range(3)]
        Path(name).write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    table = load(spec, spec.local_files(), seed=1)
    roles = {"evaluation"} | ({"training"} if spec.source.training_split else set())
    assert set(table["role"]) == roles
    assert table.height == 3 * len(spec.local_files())


@pytest.mark.parametrize("recipe", [recipe for _, recipe in RECIPES])
def test_the_benchmarks_own_rows_are_read_by_it(monkeypatch, shared_data, tmp_path, recipe):
    """Where the real files are named as the recipe names them."""
    monkeypatch.chdir(ROOT)
    spec = task_of(recipe)
    monkeypatch.chdir(tmp_path)
    Path("data").symlink_to(shared_data)
    if missing := [name for name in spec.local_files() if not Path(name).exists()]:
        pytest.skip(f"no {missing[0]}")
    assert load(spec, spec.local_files(), seed=1).height


def test_every_setting_that_the_example_leaves_out_is_valid():
    text = (ROOT / "config/example.yaml").read_text(encoding="utf-8")
    more = SETTING.sub(r"\1\2", text)
    said, before = (yaml.safe_load(one) for one in (more, text))
    assert set(said) >= set(before) | {"encoders", "estimators", "beams", "splits", "probe", "lars"}
    assert said["models"][0].keys() >= {"gpus", "memory_gb", "hours"}
    config = load_config(said, "c")
    assert load_tasks(config, ROOT)["svamp"].local_files()[0] == "data/svamp/test.jsonl"
    assert config.study.cross is not None
