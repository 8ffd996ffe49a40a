"""The description of the configuration is complete, and in step with the code."""

import json
import runpy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from maintenance.describe_config import keys
from trace_workflow.config.config import Config
from trace_workflow.config.tasks import TaskSpec

ROOT = Path(__file__).resolve().parents[2]
DESCRIBED = runpy.run_path(str(ROOT / "maintenance/describe_config.py"))["described"]()


@pytest.mark.parametrize("path", DESCRIBED, ids=lambda path: path.name)
def test_the_files_are_what_the_code_says(path):
    assert path.read_text(encoding="utf-8") == DESCRIBED[path], "run: make reference"


def test_every_key_is_listed_once():
    paths = [key.path for key in keys(Config)]
    assert len(paths) == len(set(paths))
    assert {"run", "models[].slug", "models[].source.hub", "study.main.tasks", "splits.count"} <= {
        *paths
    }


@pytest.mark.parametrize("schema", [Config, TaskSpec])
def test_every_key_says_what_it_means(schema):
    assert [key.path for key in keys(schema) if not key.meaning] == []


def test_required_keys_have_no_default():
    required = {key.path for key in keys(Config) if not key.default}
    assert {"run", "models[].slug", "study.main.tasks"} <= required
    assert "seed" not in required


@pytest.mark.parametrize("name", ["config", "smoke", "example", "paper"])
def test_the_shipped_configurations_fit_the_schema_that_editors_use(name):
    schema = json.loads((ROOT / "config/schema.json").read_text(encoding="utf-8"))
    value = yaml.safe_load((ROOT / f"config/{name}.yaml").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(value)] == []
    assert list(validator.iter_errors(value | {"modles": []}))


def test_the_shipped_task_files_fit_their_schema():
    schema = json.loads((ROOT / "config/task.schema.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    files = sorted((ROOT / "config/tasks").glob("*.yaml"))
    assert files
    for path in files:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert [error.message for error in validator.iter_errors(value)] == [], path.name


def test_the_task_schema_lists_the_question():
    assert any("question" in key.path for key in keys(TaskSpec))
