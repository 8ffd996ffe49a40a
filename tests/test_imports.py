"""Short jobs load no library that they do not use: loading takes longer than their work."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "workflow_scripts"
HEAVY = ("torch", "transformers", "sklearn", "scipy", "matplotlib", "pandas", "datasets")


def loaded(*modules):
    """The heavy libraries that importing `modules` loads, in a process of its own."""
    lines = ["import sys", *modules, f"print([one for one in {HEAVY!r} if one in sys.modules])"]
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ast.literal_eval(run.stdout)


@pytest.mark.parametrize(
    "script",
    [
        "operate/compute_features",
        "estimate/estimate_family",
        "calibrate/calibrate",
        "calibrate/measure",
        "calibrate/collect_metrics",
    ],
)
def test_a_job_loads_nothing_heavy(script):
    tree = ast.parse((SCRIPTS / f"{script}.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert loaded(*map(ast.unparse, imports)) == []


def test_what_is_heavy_would_be_seen():
    assert loaded("import scipy") == ["scipy"]
