"""Importing the package changes nothing in the process that imports it."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "workflow_scripts"
PROGRAM = """
import gc, importlib, logging, os, signal, sys, threading, warnings
{libraries}

def state():
    torch = sys.modules.get("torch")
    return {{
        "gc": (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()),
        "environment": dict(os.environ),
        "path": (list(sys.path), list(sys.path_hooks), list(sys.meta_path)),
        "logging": (logging.root.level, list(logging.root.handlers), logging.raiseExceptions),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(one) for one in sorted(signal.valid_signals())],
        "threads": (threading.active_count(), torch and torch.get_num_threads()),
        "hooks": (sys.excepthook, sys.displayhook, sys.getswitchinterval()),
    }}

before = state()
for name in {modules!r}:
    importlib.import_module(name)
after = state()
for what in before:
    assert before[what] == after[what], (what, before[what], after[what])
"""
LIBRARIES = (
    "import numpy, polars, pyarrow, orjson, pydantic, scipy.stats, sklearn.linear_model, yaml, tqdm"
)
# What needs Torch, and what evaluators load beside their packages
ELSEWHERE = (
    "tracecal.capture.",
    "tracecal.integrations.inspect_scorer",
    "tracecal.integrations.lm_eval_models",
)
MODULES = [
    name
    for path in sorted((SCRIPTS / "tracecal").rglob("[!_]*.py"))
    if not (name := ".".join(path.relative_to(SCRIPTS).with_suffix("").parts)).startswith(ELSEWHERE)
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("libraries", "modules"),
    [
        (LIBRARIES + ", aiohttp.web", MODULES),
        (LIBRARIES + ", torch, transformers.modeling_utils", ["tracecal.capture.capture"]),
    ],
    ids=["scoring", "with a model"],
)
def test_the_process_is_as_before(libraries, modules):
    """The libraries that the package needs are there before, as they change this and that."""
    program = PROGRAM.format(libraries=libraries, modules=modules)
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(SCRIPTS)}, check=True)
