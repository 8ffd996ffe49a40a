"""What the plugins import of the library is there, checked without Inspect and the harness."""

import ast
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS_FOLDER = ROOT / "workflow_scripts/tracecal/integrations"
PLUGINS = [PLUGINS_FOLDER / "inspect_scorer.py", PLUGINS_FOLDER / "lm_eval_models.py"]


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.stem)
def test_what_a_plugin_imports_is_there(path):
    imports = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("tracecal.")
    ]
    assert imports
    for node in imports:
        module = import_module(node.module)
        assert all(hasattr(module, alias.name) for alias in node.names), node.module


def test_inspects_entry_point_names_the_scorer():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    value = text.partition("[project.entry-points.inspect_ai]\n")[2].partition('"')[2]
    entry = EntryPoint("tracecal", value.partition('"')[0], "inspect_ai")
    assert ROOT / "workflow_scripts" / f"{entry.module.replace('.', '/')}.py" in PLUGINS
